//! Runs the built binary and keeps what it said.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The folder of the package, where traces/ and vectors/ are.
pub const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// What a finished command left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The binary with these arguments, in the folder of the package.
pub fn command<A: AsRef<OsStr>>(args: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kvsim"));
    command.args(args).current_dir(PACKAGE).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// Runs the binary in the folder of the package.
pub fn kvsim<A: AsRef<OsStr>>(args: &[A]) -> Ran {
    Ran::of(command(args).output().expect("the binary starts"))
}

/// Runs the binary in another folder.
pub fn kvsim_in<A: AsRef<OsStr>>(folder: &Path, args: &[A]) -> Ran {
    Ran::of(command(args).current_dir(folder).output().expect("the binary starts"))
}

/// Runs the binary with text on its standard input.
pub fn kvsim_reading<A: AsRef<OsStr>>(input: &str, args: &[A]) -> Ran {
    let mut command = command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // Whether it reads all of it is for the test to say.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Ran::of(child.wait_with_output().expect("the binary ends"))
}

impl Ran {
    fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("it exits, no signal ends it"),
            stdout: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
        }
    }

    /// Standard output of a command that succeeds without a word on standard error.
    #[track_caller]
    pub fn report(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The error of a command that prints one line and nothing else.
    #[track_caller]
    pub fn refusal(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (code, ""), "{}", self.stderr);
        assert_eq!(self.stderr.lines().count(), 1, "one line: {}", self.stderr);
        let line = self.stderr.trim_end();
        line.strip_prefix("error: ").unwrap_or_else(|| panic!("no error line: {line}"))
    }

    /// [`Ran::refusal`], which must hold each of these parts.
    #[track_caller]
    pub fn refuses(&self, code: i32, parts: &[&str]) {
        let line = self.refusal(code);
        parts.iter().for_each(|part| assert!(line.contains(part), "{part:?} is missing: {line}"));
    }
}

/// A CSV report without some of its columns: what two traces that hold the same rows, or two ways to ask
/// for the same, have in common.
#[track_caller]
pub fn without(report: &str, columns: &[&str]) -> String {
    let csv = Csv::parse(report);
    columns.iter().for_each(|name| assert!(csv.header.iter().any(|column| column == name), "no column {name}"));
    let kept: Vec<usize> = (0..csv.header.len()).filter(|at| !columns.contains(&&*csv.header[*at])).collect();
    let line = |cells: &Vec<String>| kept.iter().map(|at| cells[*at].clone()).collect::<Vec<_>>().join(",") + "\n";
    csv.rows.iter().map(line).collect()
}

/// A CSV report as maps from column name to text.
pub struct Csv {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    /// Parses a report.
    #[track_caller]
    pub fn parse(text: &str) -> Csv {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let strings = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let header = strings(reader.headers().expect("a header"));
        let rows = reader.records().map(|record| strings(&record.expect("a sound record"))).collect();
        Csv { header, rows }
    }

    /// Number of lines after the header.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// One line's text in a column.
    #[track_caller]
    pub fn text(&self, row: usize, column: &str) -> &str {
        let at = self.header.iter().position(|name| name == column);
        &self.rows[row][at.unwrap_or_else(|| panic!("no column {column}"))]
    }

    /// One line's number in a column.
    #[track_caller]
    pub fn number(&self, row: usize, column: &str) -> f64 {
        self.text(row, column).parse().expect("a number")
    }

    /// All texts of a column, spaced.
    #[track_caller]
    pub fn column(&self, column: &str) -> String {
        (0..self.len()).map(|row| self.text(row, column)).collect::<Vec<_>>().join(" ")
    }
}
