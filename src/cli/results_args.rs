//! The result files that a command reads, and which of their lines.

use super::notes;
use super::output::read_input;
use anyhow::Result;
use clap::Args;
use kvsim::error::Error;
use kvsim::report::read::read;
use kvsim::report::results::Results;
use kvsim::report::schema::Role;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Which results are read.
#[derive(Args)]
pub struct ResultsArgs {
    /// Result files, or - for standard input
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,

    /// Keep only lines with this value; can be given several times
    #[arg(long, value_name = "COLUMN=VALUE")]
    filter: Vec<String>,

    /// No notes
    #[arg(short, long)]
    pub quiet: bool,
}

impl ResultsArgs {
    /// The files.
    pub fn inputs(&self) -> Vec<&OsStr> {
        self.results.iter().map(|path| path.as_os_str()).collect()
    }

    /// An error about what the files hold.
    pub fn error(&self, problem: String) -> Error {
        let names: Vec<String> = self.results.iter().map(|path| path.display().to_string()).collect();
        Error::data(names.join(", "), problem)
    }

    /// The lines that were asked for, joined by the names of their columns.
    ///
    /// # Errors
    /// When a file cannot be read or holds no results, or no line is left.
    pub fn read(&self) -> Result<Results> {
        let mut all = Results::default();
        let mut files: Vec<(String, Results)> = Vec::new();
        for path in &self.results {
            let name = path.display().to_string();
            let results = read(&read_input(path)?).map_err(|problem| Error::data(&name, problem))?;
            all.join(results.clone());
            files.push((name, results));
        }
        let silent = |(name, file)| silent_keys(&all, file).map(|keys| (name, keys));
        for (name, keys) in files.iter().map(|(name, file)| (name, file)).filter_map(silent) {
            notes::note(self.quiet, name, &[format!("it does not say {keys}, as other files do: taken to agree")]);
        }
        all.filter(&self.filters()?).map_err(|problem| self.error(problem))?;
        Ok(all)
    }

    fn filters(&self) -> Result<Vec<(String, String)>, Error> {
        let split = |filter: &String| {
            let split = filter.split_once('=').map(|(column, value)| (column.to_owned(), value.to_owned()));
            split.ok_or_else(|| Error::usage(format!("--filter {filter:?}: write column=value")))
        };
        self.filter.iter().map(split).collect()
    }
}

/// The keys that a file leaves unsaid and others say.
fn silent_keys(all: &Results, file: &Results) -> Option<String> {
    let is_silent = |name: &str| file.find(name).is_none();
    let keys = all.columns().iter().filter(|column| column.role == Role::Replayed && is_silent(&column.name));
    let keys: Vec<&str> = keys.map(|column| &*column.name).collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}
