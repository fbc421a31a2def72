//! `kvsim completions` and `kvsim man`: what shells and readers of manuals want, from the definitions of the flags.

use super::command;
use super::output::Output;
use anyhow::{Context, Result};
use clap::Args;
use clap_complete::Shell;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the completions of a shell
///
/// A shell that has read them completes commands, flags and their words on Tab. Packages install them; by
/// hand they go where your shell looks.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim completions bash > ~/.local/share/bash-completion/completions/kvsim\n  \
    kvsim completions zsh > \"${fpath[1]}/_kvsim\"\n  \
    kvsim completions fish > ~/.config/fish/completions/kvsim.fish")]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

impl CompletionsArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut command(), "kvsim", &mut text);
        print(&text)
    }
}

/// Write the manual, one page for each command
#[derive(Args)]
pub struct ManArgs {
    /// Folder for all pages [default: the first of them, to standard output]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl ManArgs {
    pub fn run(&self) -> Result<ExitCode> {
        if let Some(folder) = &self.folder {
            let written = clap_mangen::generate_to(command(), folder);
            written.with_context(|| format!("cannot write the manual to {:?}", folder.display()))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = Vec::new();
        clap_mangen::Man::new(command()).render(&mut text)?;
        print(&text)
    }
}

fn print(text: &[u8]) -> Result<ExitCode> {
    let mut output = Output::open(None)?;
    output.write_all(text)?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}
