//! The structured fuzzer as a program.
//!
//! ```text
//! cargo run --release --example fuzz -- --seed 1 --count 1000000
//! ```
//!
//! An execution that led to a finding is run again alone with `--seed S --from N --count 1`. Inputs are written
//! to the folder for temporary files: one in memory (`TMPDIR=/dev/shm`) is faster.

mod fuzzer;

use clap::Parser;
use fuzzer::{Plan, run};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Run damaged inputs of every format through kvsim, and say what went wrong
#[derive(Parser)]
struct Arguments {
    /// Decides, with the number of an execution, what is run
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Number of the first execution
    #[arg(long, default_value_t = 0)]
    from: u64,

    /// How many executions to run
    #[arg(long, default_value_t = 100_000)]
    count: u64,

    /// Folder for the inputs that led to a finding
    #[arg(long, default_value = "target/fuzz")]
    keep: PathBuf,
}

/// Executions between two lines of progress.
const LINE: u64 = 250_000;

fn main() -> ExitCode {
    let Arguments { seed, from, count, keep } = Arguments::parse();
    let started = Instant::now();
    let progress = |done: u64| {
        if done.is_multiple_of(LINE) {
            eprintln!("{done} executions, {:.0} a second", done as f64 / started.elapsed().as_secs_f64());
        }
    };
    let summary = run(&Plan { seed, from, count, keep }, &progress);
    summary.findings.iter().for_each(|finding| println!("{finding}"));
    println!(
        "seed {seed}, executions {from} to {}: {} refused, {} accepted, {} findings (and {} like them), {} KiB at most, {:.0} s",
        from + count,
        summary.refused,
        summary.accepted,
        summary.findings.len(),
        summary.repeated,
        summary.most_memory >> 10,
        started.elapsed().as_secs_f64(),
    );
    ExitCode::from(u8::from(!summary.findings.is_empty()))
}
