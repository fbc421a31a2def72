//! The README: every command in it runs as written, every generated table is up to date, its Python
//! example writes a trace.
//!
//! `KVSIM_REFRESH=1 cargo test --release --test readme` writes the tables anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A copy of what the commands read, so that what they write is thrown away.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Sandbox {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for part in ["README.md", "traces", "vectors"] {
            copy(&Path::new(ROOT).join(part), &folder.path().join(part));
        }
        Sandbox(folder)
    }

    fn run(&self, command: &str) -> Output {
        run_in(self.0.path(), command)
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).expect("copied");
        return;
    }
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        copy(&entry.path(), &to.join(entry.file_name()));
    }
}

fn run_in(folder: &Path, command: &str) -> Output {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_kvsim"));
    let mut path = vec![binary.parent().expect("a folder").to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(path).expect("sound paths");
    let command = format!("set -e\n{command}");
    Command::new("sh").args(["-c", &command]).current_dir(folder).env("PATH", path).output().expect("sh runs")
}

fn readme() -> String {
    fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README.md")
}

/// The fenced blocks of a language.
fn fences(document: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    document.split(&open).skip(1).map(|rest| rest.split("```").next().unwrap_or("").to_owned()).collect()
}

/// The commands of the README that use the tool, without the comments behind them.
fn commands() -> Vec<String> {
    let lines = fences(&readme(), "sh").concat();
    let commands = lines.lines().filter(|line| line.starts_with("kvsim "));
    commands.map(|line| line.split(" #").next().unwrap_or("").trim().to_owned()).collect()
}

fn makes_a_table(command: &str) -> bool {
    command.contains("--into README.md")
}

#[test]
fn every_command_runs_as_written_and_every_table_is_up_to_date() {
    let refresh = std::env::var_os("KVSIM_REFRESH").is_some();
    let sandbox = Sandbox::new();
    let mut stale = Vec::new();
    for command in commands() {
        if command.contains("$KVSIM_SHARED") && std::env::var_os("KVSIM_SHARED").is_none() {
            eprintln!("skipped, since KVSIM_SHARED names no folder of longer recordings: {command}");
            continue;
        }
        let output = match makes_a_table(&command) {
            true if refresh => run_in(Path::new(ROOT), &command),
            true => sandbox.run(&format!("{command} --check")),
            false => sandbox.run(&command),
        };
        if !output.status.success() {
            stale.push(format!("{command}\n    {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    let remedy = "refresh with: KVSIM_REFRESH=1 cargo test --release --test readme";
    assert!(stale.is_empty(), "{remedy}\n{}", stale.join("\n"));
}

#[test]
fn every_generated_block_has_its_command_and_every_command_its_block() {
    let readme = readme();
    let name = |text: &str| text.split_whitespace().next().unwrap_or("").to_owned();
    let mut blocks: Vec<String> = readme.split("<!-- kvsim:begin ").skip(1).map(name).collect();
    let made = commands().into_iter().filter(|command| makes_a_table(command));
    let mut made: Vec<String> = made.map(|command| name(command.split("--block ").nth(1).unwrap_or(""))).collect();
    blocks.sort();
    made.sort();
    assert_eq!(blocks, made);
}

#[test]
fn what_a_command_is_shown_to_print_is_what_it_prints() {
    let sandbox = Sandbox::new();
    for shown in fences(&readme(), "text").iter().filter(|shown| shown.starts_with("$ ")) {
        let (command, printed) = shown[2..].split_once('\n').expect("a command and what it prints");
        let output = sandbox.run(command);
        let found = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed, found, "the README shows other lines than `{command}` prints");
    }
}

#[test]
fn the_python_example_writes_a_trace() {
    let example = fences(&readme(), "python").concat();
    let sandbox = Sandbox::new();
    if !sandbox.run("command -v python3").status.success() {
        println!("skipped: there is no python3 here");
        return;
    }
    fs::write(sandbox.0.path().join("example.py"), example).expect("written");
    let output = sandbox.run("python3 example.py && kvsim replay mine.safetensors --policy full --format csv");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = String::from_utf8_lossy(&output.stdout);
    assert_eq!(report.lines().count(), 2, "{report}");
}

#[test]
fn the_cargo_commands_name_real_targets() {
    let text = fences(&readme(), "sh").concat();
    assert!(text.contains("cargo run --release -- replay --policy scissorhands --budget 512"));
    assert!(text.contains("cargo test --release"));
}
