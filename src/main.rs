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
            eprintln!("error: {error:#}");
            cli::exit_code(&error)
        }
    }
}
