//! `kvsim vectors`: policies against files of recorded decisions.

use super::output::Output;
use anyhow::Result;
use clap::Args;
use kvsim::text::plain;
use kvsim::vectors::run_file;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Check policies against files of recorded decisions
///
/// Prints the first difference of each case that fails, and exits with 1 when there is one.
#[derive(Args)]
#[command(after_help = "Example:\n  kvsim vectors vectors/*.json")]
pub struct VectorsArgs {
    /// Vector files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl VectorsArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let mut output = Output::open(None)?;
        let mut failed = false;
        for path in &self.files {
            let report = run_file(path)?;
            failed |= !report.failures.is_empty();
            let passed = report.cases - report.failures.len();
            let head = format!("{}: {}: {passed} of {} cases agree", path.display(), report.policy, report.cases);
            writeln!(output, "{}", plain(&head))?;
            for failure in &report.failures {
                writeln!(output, "  {}", plain(&failure.to_string()))?;
            }
        }
        output.finish()?;
        Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }
}
