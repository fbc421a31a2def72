//! The `kvsim` binary: parse, run, and the one place that prints an error and picks the exit code.

mod cli;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = match cli::Cli::parse_arguments() {
        Ok(command) => command,
        Err(answer) => return print(&answer),
    };
    match command.run() {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// Help and version go to standard output, which may refuse them; a usage error to standard error.
fn print(answer: &clap::Error) -> ExitCode {
    let printed = answer.print().and_then(|()| std::io::stdout().flush());
    match printed {
        Err(error) if !answer.use_stderr() => fail(&anyhow::Error::new(error).context("cannot write standard output")),
        _ => ExitCode::from(u8::try_from(answer.exit_code()).unwrap_or(2)),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    if cli::is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    cli::to_stderr(&format!("error: {error:#}"));
    cli::exit_code(error)
}
