//! The flags that say how a report is written and where: shared by the commands whose report is results.

use super::notes;
use super::output::{Output, is_stdout};
use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValue;
use kvsim::error::Error;
use kvsim::report::format::{self, FORMATS, Look, OutputFormat, Written};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where a report goes, and in which format.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// Output format [default: as the output's name ends; without a name, table on a terminal for
    /// replay and csv elsewhere, markdown for table]
    #[arg(short, long, value_name = "FORMAT", value_parser = format_names(), help_heading = "Output")]
    format: Option<String>,

    /// Write the report to a file, which appears whole or not at all; .csv, .json, .jsonl, .md and .txt
    /// choose the format
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

fn format_names() -> Vec<PossibleValue> {
    FORMATS.iter().map(|format| PossibleValue::new(format.name).help(format.summary).aliases(format.aliases)).collect()
}

impl ReportArgs {
    /// The file that is written, if it is one.
    pub fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| !is_stdout(path))
    }

    /// The format that was asked for, or that the output's name ends in, or else this one.
    ///
    /// # Errors
    /// When the name of a new file ends in something else.
    pub fn format(&self, default: &str) -> Result<&'static OutputFormat, Error> {
        let known = "the parser and the defaults name formats of the table only";
        match (&self.format, self.file()) {
            (Some(name), _) => Ok(format::find(name).expect(known)),
            (None, Some(path)) if !is_device(path) => format::by_ending(path).ok_or_else(|| {
                let endings: Vec<String> = FORMATS.iter().map(|format| format!(".{}", format.ending)).collect();
                let endings = endings.join(", ");
                Error::usage(format!("{:?}: its ending names no format ({endings}): add --format", path.display()))
            }),
            _ => Ok(format::find(default).expect(known)),
        }
    }

    /// Whether the report goes to a terminal.
    pub fn on_terminal(&self) -> bool {
        self.file().is_none() && std::io::stdout().is_terminal()
    }

    /// Opens the output, before the work begins.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn open(&self) -> Result<Output> {
        Output::open(self.output.as_deref())
    }

    /// How wide a line may be: as `COLUMNS` says, or the terminal; anything in a file.
    pub fn width(&self) -> Option<usize> {
        let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let terminal = || terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0));
        if self.file().is_some() { None } else { said.filter(|width| *width > 0).or_else(terminal) }
    }

    /// How an aligned table looks where this report goes.
    pub fn look(&self, format: &OutputFormat, sums: bool) -> Look {
        Look { sums, width: if format.name == "table" { self.width() } else { None } }
    }
}

/// A device or a pipe has no ending that would mean anything.
fn is_device(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file())
}

/// Writes a report, and says what was left out of it.
///
/// # Errors
/// When the output refuses.
pub fn write(written: &Written, output: &mut Output, quiet: bool) -> Result<()> {
    output.write_all(written.text.as_bytes())?;
    say_left_out(&written.left_out, quiet);
    Ok(())
}

/// Says which columns did not fit.
pub fn say_left_out(left_out: &[String], quiet: bool) {
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        notes::remark(quiet, &format!("left out to fit the terminal: {names} (--format csv has every column)"));
    }
}
