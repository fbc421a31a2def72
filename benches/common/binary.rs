//! Running the built `kvsim` as a user does.

use super::rounds::time;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvsim"));
    command.args(args).stdout(Stdio::null());
    command
}

/// Wall time of a whole process, from start to end.
pub fn wall_time(args: &[&str]) -> Duration {
    let mut command = command(args);
    time(|| {
        let status = command.status().expect("the binary starts");
        assert!(status.success(), "kvsim {args:?} ends with {status}");
    })
}

/// The most private memory seen while a process runs, in bytes; `None` where the system does not tell.
pub fn peak_private_memory(args: &[&str]) -> Option<u64> {
    let mut child = command(args).spawn().expect("the binary starts");
    let mut most = None;
    while child.try_wait().expect("it is a child of this process").is_none() {
        most = most.max(private_memory(&child));
        std::thread::sleep(Duration::from_micros(500));
    }
    most
}

fn private_memory(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(1024 * kibibytes)
}
