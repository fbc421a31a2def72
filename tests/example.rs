//! The program in `examples/`: what it prints is what the command line prints.

#[path = "../examples/sweep.rs"]
mod sweep;

use std::process::Command;

/// The lines of a table that are about h2o, with those that stand over them.
fn about_h2o(table: &str) -> Vec<&str> {
    table.lines().enumerate().filter(|(at, line)| *at == 0 || line.starts_with("h2o")).map(|(_, line)| line).collect()
}

#[test]
fn the_example_prints_the_table_of_the_command_line() {
    let table = sweep::sweep().expect("the trace is in the repository");
    // tova stands where the example has its own policy.
    let args = ["--policy", "h2o,scissorhands", "--budget", "48..96x2,50%", "--recent-window", "8,32", "-f", "table"];
    let replay = Command::new(env!("CARGO_BIN_EXE_kvsim"))
        .args(["replay", "traces/smollm2-prose-384.safetensors"])
        .args(args)
        .output()
        .expect("it starts");
    let printed = String::from_utf8(replay.stdout).expect("UTF-8");
    assert_eq!(about_h2o(&table).len(), 1 + 3 * 2, "{table}");
    let squeezed = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let columns = |table: &str| about_h2o(table).into_iter().map(squeezed).collect::<Vec<_>>();
    assert_eq!(columns(&table), columns(&printed));
    assert_eq!(table.lines().filter(|line| line.starts_with("peak")).count(), 3 * 2, "{table}");
}
