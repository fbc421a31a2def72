//! The flags that put a generated table into a block of a document, shared by the commands that make
//! tables.

use super::output::{Output, print};
use anyhow::{Context, Result, bail};
use clap::Args;
use kvsim::error::Error;
use kvsim::report::block;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where a table goes.
#[derive(Args, Clone, Debug)]
pub struct BlockArgs {
    /// Write the table into a block of this file, between its marks
    #[arg(long, value_name = "FILE", requires = "block")]
    into: Option<PathBuf>,

    /// Name of the block: <!-- kvsim:begin NAME --> to <!-- kvsim:end NAME -->
    #[arg(long, value_name = "NAME", requires = "into")]
    block: Option<String>,

    /// Change nothing; exit with 1 when the block is not up to date
    #[arg(long, requires = "into")]
    check: bool,
}

impl BlockArgs {
    /// Writes the table where it belongs: into the block, or to standard output.
    pub fn write(&self, table: &str) -> Result<ExitCode> {
        match (&self.into, &self.block) {
            (Some(path), Some(name)) => self.write_block(path, name, table),
            _ => print(table),
        }
    }

    /// The document that holds the block.
    pub fn document(&self) -> Option<&Path> {
        self.into.as_deref()
    }

    fn write_block(&self, path: &Path, name: &str, table: &str) -> Result<ExitCode> {
        let _lock = lock_beside(path);
        let document = std::fs::read_to_string(path).with_context(|| format!("cannot read {:?}", path.display()))?;
        let place = path.display().to_string();
        let new = block::replace(&document, name, table).map_err(|problem| Error::data(&place, problem))?;
        if new == document {
            return Ok(ExitCode::SUCCESS);
        }
        if self.check {
            bail!("{place}: block {name:?} is out of date (run the same command without --check to refresh it)");
        }
        let mut output = Output::open(Some(path))?;
        output.write_all(new.as_bytes())?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Holds off other commands that write a block in the same folder until it is dropped, so that none writes
/// over what another has just written. A folder that cannot be locked is written to all the same.
fn lock_beside(path: &Path) -> Option<File> {
    let path = path.canonicalize().ok()?;
    let folder = File::open(path.parent()?).ok()?;
    folder.lock().ok()?;
    Some(folder)
}
