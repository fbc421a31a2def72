//! The `kvsim` binary: parse, run, and the one place that prints an error and picks the exit code.

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = cli::Cli::parse();
    match command.run() {
        Ok(code) => code,
        Err(error) if cli::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            cli::to_stderr(&format!("error: {error:#}\n"));
            cli::exit_code(&error)
        }
    }
}
