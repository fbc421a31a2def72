//! `kvsim table`: comparison tables from replay results.

use super::block_args::BlockArgs;
use super::output::read_input;
use anyhow::Result;
use clap::{Args, ValueEnum};
use kvsim::error::Error;
use kvsim::experiment::list;
use kvsim::report::pivot::{PivotPlan, Results};
use std::path::PathBuf;
use std::process::ExitCode;

/// Turn replay results into a comparison table
///
/// Reads CSV that `kvsim replay --format csv` wrote and lays it out: rows by columns, one or more
/// figures in each cell. A cell that several lines would fill is refused.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim replay --policy scissorhands,h2o --budget 256,512 --format csv | kvsim table - --difference scissorhands,h2o\n  \
    kvsim table results.csv --rows recent_window --columns policy --filter budget=256\n  \
    kvsim table results.csv --into README.md --block policies --check")]
pub struct TableArgs {
    /// Result files, or - for standard input
    #[arg(value_name = "CSV", required = true)]
    results: Vec<PathBuf>,

    /// Columns whose values become rows
    #[arg(long, value_name = "LIST", default_value = "policy", value_delimiter = ',')]
    rows: Vec<String>,

    /// Column whose values become columns
    #[arg(long, value_name = "NAME", default_value = "budget")]
    columns: String,

    /// Figures in each cell
    #[arg(long, value_name = "LIST", default_value = "retained_mass,heavy_recall", value_delimiter = ',')]
    values: Vec<String>,

    /// Keep only lines with this value; can be given several times
    #[arg(long, value_name = "COLUMN=VALUE")]
    filter: Vec<String>,

    /// Add a row with the absolute difference of two rows
    #[arg(long, value_name = "A,B")]
    difference: Option<String>,

    /// Do not set the best figure of each column in bold (markdown only)
    #[arg(long)]
    no_bold: bool,

    /// Output format
    #[arg(short, long, value_enum, default_value = "markdown")]
    format: Format,

    #[command(flatten)]
    block: BlockArgs,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// A markdown table
    Markdown,
    /// Aligned columns
    Text,
}

impl TableArgs {
    pub fn run(&self) -> Result<ExitCode> {
        self.block.write(&self.table()?)
    }

    fn table(&self) -> Result<String> {
        let plan = self.plan()?;
        let mut results = Results::default();
        for path in &self.results {
            let text = read_input(path)?;
            results.append(&text).map_err(|problem| Error::data(path.display().to_string(), problem))?;
        }
        let table = results.pivot(&plan).map_err(|problem| Error::data(self.names(), problem))?;
        Ok(if self.format == Format::Markdown { table.markdown() } else { table.aligned() })
    }

    fn names(&self) -> String {
        self.results.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    fn plan(&self) -> Result<PivotPlan, Error> {
        let split = |filter: &String| {
            let (column, value) =
                filter.split_once('=').ok_or_else(|| format!("--filter {filter:?}: write column=value"))?;
            Ok((column.to_owned(), value.to_owned()))
        };
        let difference = |text: &String| match &list::expand(text)?[..] {
            [a, b] => Ok((a.clone(), b.clone())),
            _ => Err(format!("--difference {text:?}: write two rows, A,B")),
        };
        Ok(PivotPlan {
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            values: self.values.clone(),
            filters: self.filter.iter().map(split).collect::<Result<_, String>>().map_err(Error::Usage)?,
            difference: self.difference.as_ref().map(difference).transpose().map_err(Error::Usage)?,
            bold: self.format == Format::Markdown && !self.no_bold,
        })
    }
}
