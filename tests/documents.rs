//! The README and the pages of docs/: every command in them runs as written, every generated table is up
//! to date, every link leads somewhere, and the Python example writes a trace.
//!
//! `KVSIM_REFRESH=1 cargo test --release --test documents` writes the tables anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A copy of what the commands read, so that what they write is thrown away.
struct Sandbox(tempfile::TempDir);

impl Sandbox {
    fn new() -> Sandbox {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for part in ["README.md", "docs", "traces", "vectors"] {
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

/// A page and its text.
struct Document {
    name: String,
    text: String,
}

fn document(name: &str) -> Document {
    let text = fs::read_to_string(Path::new(ROOT).join(name)).expect("a readable page");
    Document { name: name.to_owned(), text }
}

/// The README and every page of docs/, by name.
fn documents() -> Vec<Document> {
    let pages = fs::read_dir(Path::new(ROOT).join("docs")).expect("docs/");
    let mut names: Vec<String> =
        pages.map(|page| format!("docs/{}", page.expect("a page").file_name().to_string_lossy())).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    names.insert(0, "README.md".to_owned());
    names.iter().map(|name| document(name)).collect()
}

/// The fenced blocks of a language.
fn fences(document: &str, language: &str) -> Vec<String> {
    let open = format!("```{language}\n");
    document.split(&open).skip(1).map(|rest| rest.split("```").next().unwrap_or("").to_owned()).collect()
}

/// The commands of a page that use the tool, without the comments behind them.
fn commands(document: &Document) -> Vec<String> {
    let lines = fences(&document.text, "sh").concat();
    let commands = lines.lines().filter(|line| line.starts_with("kvsim "));
    commands.map(|line| line.split(" #").next().unwrap_or("").trim().to_owned()).collect()
}

fn makes_a_table(command: &str) -> bool {
    command.contains("--into ")
}

#[test]
fn every_command_runs_as_written_and_every_table_is_up_to_date() {
    let refresh = std::env::var_os("KVSIM_REFRESH").is_some();
    let sandbox = Sandbox::new();
    let mut stale = Vec::new();
    for command in documents().iter().flat_map(commands) {
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
    let remedy = "refresh with: KVSIM_REFRESH=1 cargo test --release --test documents";
    assert!(stale.is_empty(), "{remedy}\n{}", stale.join("\n"));
}

#[test]
fn every_generated_block_has_its_command_and_every_command_its_block() {
    let name = |text: &str| text.split_whitespace().next().unwrap_or("").to_owned();
    for document in documents() {
        let mut blocks: Vec<String> = document.text.split("<!-- kvsim:begin ").skip(1).map(name).collect();
        let made = commands(&document).into_iter().filter(|command| makes_a_table(command));
        let mut made: Vec<String> = made.map(|command| into_and_block(&command)).collect();
        blocks.iter_mut().for_each(|block| *block = format!("{} {block}", document.name));
        blocks.sort();
        made.sort();
        assert_eq!(blocks, made);
    }
}

/// The page and the block that a command writes.
fn into_and_block(command: &str) -> String {
    let after = |flag: &str| command.split(flag).nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap_or("");
    format!("{} {}", after("--into "), after("--block "))
}

#[test]
fn every_link_between_pages_leads_to_a_file() {
    for document in documents() {
        let folder = Path::new(ROOT).join(&document.name).parent().expect("a folder").to_owned();
        for link in document.text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or("");
            let here = file.is_empty() || file.contains("://");
            assert!(here || folder.join(file).exists(), "{}: {link} leads nowhere", document.name);
        }
    }
}

#[test]
fn what_a_command_is_shown_to_print_is_what_it_prints() {
    let sandbox = Sandbox::new();
    for document in documents() {
        for shown in fences(&document.text, "text").iter().filter(|shown| shown.starts_with("$ ")) {
            let (command, printed) = shown[2..].split_once('\n').expect("a command and what it prints");
            let output = sandbox.run(command);
            let found = String::from_utf8_lossy(&output.stdout);
            assert_eq!(printed, found, "{} shows other lines than `{command}` prints", document.name);
        }
    }
}

#[test]
fn the_python_example_writes_a_trace() {
    let example = fences(&document("README.md").text, "python").concat();
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
    let text = fences(&document("README.md").text, "sh").concat();
    assert!(text.contains("cargo run --release -- replay --policy scissorhands --budget 512"));
    assert!(text.contains("cargo test --release"));
}
