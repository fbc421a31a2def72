//! How much private memory a command takes at most, sampled while it runs (Linux).
#![cfg(target_os = "linux")]

use crate::common::binary::{command, kvsim};
use crate::common::files::{Folder, safetensors};
use crate::common::shared;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Every policy with a budget, and the bound; five of them have a window.
const POLICIES: &str = "sliding-window,streaming-llm,random,h2o,scissorhands,tova,snapkv,pyramidkv,oracle";
const BUDGETS: &str = "128,256,384,512,768,1024";
const MIB: u64 = 1024;

/// Private memory of a running process in KiB; `None` when it has ended.
fn anonymous_memory(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Runs a command to its end; its exit code and the most private memory seen, in KiB.
fn peak(args: &[&str]) -> (Option<i32>, u64) {
    let mut command = command(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary starts");
    let mut most = 0;
    loop {
        most = most.max(anonymous_memory(&child).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("it is a child of this process") {
            return (status.code(), most);
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

#[track_caller]
fn assert_stays_below(limit: u64, code: i32, args: &[&str]) {
    let (found, most) = peak(args);
    println!("{most} KiB at most: kvsim {}", args.join(" "));
    assert_eq!(found, Some(code), "{args:?}");
    assert!(most < limit, "{most} KiB, {limit} allowed: {args:?}");
}

#[test]
fn sixty_lanes_on_a_recorded_trace_stay_below_64_mib() {
    let Some(path) = shared::trace("smollm2-prose-2048.safetensors") else { return };
    let path = path.to_str().expect("a plain name");
    let lanes = ["--policy", POLICIES, "--budget", BUDGETS, "--recent-window", "32,64", "--threads", "2"];
    let args = [&["replay", path, "-q"], &lanes[..]].concat();
    let report = kvsim(&args).report();
    assert!(report.lines().count() > 60, "at least sixty lanes");
    assert_stays_below(64 * MIB, 0, &args);
}

#[test]
fn a_trace_of_16384_positions_is_generated_and_replayed_below_80_mib() {
    let folder = Folder::new();
    let file = folder.at("long.safetensors");
    let generate = ["generate", "decode-4096", "--seq-len", "16384", "--dtype", "f16", "-o", &file];
    assert_stays_below(80 * MIB, 0, &generate);
    assert_eq!(std::fs::metadata(&file).expect("it was written").len() >> 20, 255, "268 million bytes");
    let lanes = ["--policy", POLICIES, "--budget", "512,1024", "--threads", "2"];
    assert_stays_below(80 * MIB, 0, &[&["replay", &file, "-q"], &lanes[..]].concat());
    assert_stays_below(80 * MIB, 0, &["inspect", &file]);
}

#[test]
fn hostile_files_take_little_memory() {
    let folder = Folder::new();
    let deep = "[".repeat(8 << 20);
    let claims = folder.write("claims.safetensors", [&99_999_999_u64.to_le_bytes()[..], b"{}"].concat());
    let nests = folder.write("nests.safetensors", safetensors(&deep, &[]));
    let lines = folder.write("nests.jsonl", format!("{{\"step\":1,\"attn\":{deep}"));
    let spec = folder.write("nests.json", &deep);
    for file in [&claims, &nests, &lines, &spec] {
        assert_stays_below(48 * MIB, 1, &["replay", file, "--policy", "tova"]);
    }
}
