//! Commands that a signal ends at any moment leave nothing behind.
#![cfg(unix)]

use crate::common::binary::{command, kvsim};
use crate::common::files::Folder;
use kvsim::trace::rng::Xoshiro128;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIGNALS: [(&str, i32); 3] = [("INT", 2), ("TERM", 15), ("KILL", 9)];

/// The names of files that commands write; what they hold before a command runs.
const OUTPUTS: [&str; 2] = ["out", "steps.csv"];
const BEFORE: &str = "as it was";

/// A folder for outputs and one for temporary files.
struct Place {
    outputs: Folder,
    temporary: Folder,
    input: String,
}

impl Place {
    fn new() -> Place {
        let outputs = Folder::new();
        let rows =
            (1..400).map(|step| serde_json::json!({"step": step, "attn": vec![1.0 / f64::from(step); step as usize]}));
        let input = rows.map(|row| format!("{row}\n")).collect();
        OUTPUTS.iter().for_each(|name| drop(outputs.write(name, BEFORE)));
        Place { outputs, temporary: Folder::new(), input }
    }

    /// A command that writes one file or two; every other one copies its standard input first.
    fn start(&self, round: usize) -> Child {
        let [out, steps] = OUTPUTS.map(|name| self.outputs.at(name));
        let convert = ["convert", "-", "-o", &out];
        let replay = [
            "replay",
            "-",
            "-p",
            "h2o,tova",
            "-b",
            "40",
            "--per-step",
            &steps,
            "-o",
            &out,
            "-f",
            "csv",
            "--threads",
            "1",
        ];
        let mut command = command(if round.is_multiple_of(2) { &convert[..] } else { &replay });
        command.env("TMPDIR", self.temporary.path()).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        let (mut stdin, input) = (child.stdin.take().expect("it is piped"), self.input.clone());
        // The reader may be killed at any time.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        child
    }

    /// How long a command takes that nobody interrupts.
    fn time(&self, round: usize) -> Duration {
        let started = Instant::now();
        assert!(self.start(round).wait().expect("it ends").success());
        OUTPUTS.iter().for_each(|name| drop(self.outputs.write(name, BEFORE)));
        started.elapsed()
    }

    /// What is there besides the outputs.
    fn leftovers(&self) -> Vec<String> {
        let mut names = self.outputs.names();
        names.retain(|name| !OUTPUTS.contains(&name.as_str()));
        names.extend(self.temporary.names());
        names
    }

    /// Every output is as it was, or whole: the command may have been faster than the signal.
    fn check_outputs(&self, round: usize) {
        for name in OUTPUTS {
            let content = std::fs::read(self.outputs.path().join(name)).expect("an output that was there is there");
            let is_whole = content.len() > 10_000 || content.ends_with(b"\n") || content == BEFORE.as_bytes();
            assert!(is_whole, "round {round}: {name} has {} bytes", content.len());
        }
    }
}

/// Interrupts a command, and says whether the signal was what ended it.
fn interrupt(place: &Place, round: usize, (signal, number): (&str, i32), after: Duration) -> bool {
    let mut child = place.start(round);
    std::thread::sleep(after);
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).stderr(Stdio::null()).status();
    sent.expect("kill is there");
    child.wait().expect("it ends").signal() == Some(number)
}

/// Interrupts commands at random moments; returns how many the signal ended.
fn interrupt_many(count: usize) -> usize {
    let (place, mut random) = (Place::new(), Xoshiro128::new(5));
    let times = [place.time(0), place.time(1)];
    let mut ended = 0;
    for round in 0..count {
        let signal = SIGNALS[round % SIGNALS.len()];
        let after = times[round % 2].mul_f64(f64::from(random.below(1000)) / 1000.0);
        ended += usize::from(interrupt(&place, round, signal, after));
        let leftovers = place.leftovers();
        if signal.0 == "KILL" {
            assert!(leftovers.iter().all(|name| name.starts_with(".kvsim-")), "round {round}: {leftovers:?}");
            assert!(leftovers.len() <= OUTPUTS.len(), "round {round}: {leftovers:?}");
            kvsim(&["convert", "traces/smollm2-prose-512.safetensors", "-q", "-o", &place.outputs.at("out")]).report();
            assert_eq!(place.leftovers(), [""; 0], "round {round}: the next command removes them");
        } else {
            assert_eq!(leftovers, [""; 0], "round {round}: SIG{} after {after:?}", signal.0);
        }
        place.check_outputs(round);
    }
    ended
}

#[test]
fn a_command_that_is_interrupted_leaves_nothing_behind() {
    interrupt_many(12);
}

/// Takes half a minute: `cargo test --release --test suite two_hundred -- --ignored --nocapture`.
#[test]
#[ignore = "half a minute"]
fn two_hundred_interrupted_commands_leave_nothing_behind() {
    let ended = interrupt_many(200);
    println!("200 signals, {ended} of them before the command was done");
    assert!(ended > 50, "{ended} commands were interrupted");
}
