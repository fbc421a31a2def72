//! `kvsim table`: comparison tables from replay results.

use super::block_args::BlockArgs;
use super::notes;
use super::output::{read_input, refuse_overlap};
use super::report_args::{self, ReportArgs};
use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use kvsim::error::Error;
use kvsim::experiment::list;
use kvsim::report::DECIMALS;
use kvsim::report::format::{Look, OutputFormat, Writer, Written};
use kvsim::report::pivot::{Pivot, PivotPlan};
use kvsim::report::read::read;
use kvsim::report::results::Results;
use kvsim::report::schema::Role;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Turn replay results into a comparison table
///
/// Reads results that `kvsim replay` wrote as CSV, JSON or JSON lines, of this version or another, joins
/// them by the names of their columns and lays them out: rows by columns, one or more figures in each
/// cell. A cell that several lines would fill is refused, and so are lines that do not compare, because
/// they differ in what was replayed or how it was measured and no row or column says so.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim replay --policy scissorhands,h2o --budget 256,512 --format csv | kvsim table - --difference scissorhands,h2o\n  \
    kvsim table results.csv --rows recent_window --columns policy --filter budget=256\n  \
    kvsim table a.csv b.jsonl --rows layer,policy --sort retained_mass:desc -o table.md\n  \
    kvsim table results.csv --best recent_window --values peak_miss_rate,retained_mass\n  \
    kvsim table results.csv --into README.md --block policies --check")]
pub struct TableArgs {
    /// Result files, or - for standard input
    #[arg(value_name = "RESULTS", required = true)]
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

    /// Sort the lines by a column before they are laid out, downwards with :desc; rows and columns come
    /// in the order of their first line
    #[arg(long, value_name = "COLUMN[:desc]")]
    sort: Option<String>,

    /// Of lines that differ in this column alone, show the one whose first figure is best, with the
    /// column's value in brackets: each policy at its own best window with --best recent_window
    #[arg(long, value_name = "COLUMN")]
    best: Option<String>,

    /// Add a row with the absolute difference of two rows
    #[arg(long, value_name = "A,B")]
    difference: Option<String>,

    /// Decimals of figures; counts have none
    #[arg(long, value_name = "N", default_value_t = DECIMALS, value_parser = RangedU64ValueParser::<usize>::new().range(0..=17))]
    precision: usize,

    /// Do not set the best figure of each column in bold (markdown only)
    #[arg(long)]
    no_bold: bool,

    #[command(flatten)]
    report: ReportArgs,

    #[command(flatten)]
    block: BlockArgs,

    /// No notes
    #[arg(short, long)]
    quiet: bool,
}

impl TableArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let format = self.report.format("markdown")?;
        let inputs: Vec<_> = self.results.iter().map(|path| path.as_os_str()).collect();
        let outputs: Vec<&Path> = self.report.file().into_iter().chain(self.block.document()).collect();
        refuse_overlap(&inputs, &outputs)?;
        if self.block.document().is_some() {
            return self.block.write(&self.table(format, Look::default())?.text);
        }
        let mut output = self.report.open()?;
        report_args::write(&self.table(format, self.report.look(format, false))?, &mut output, self.quiet)?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn table(&self, format: &OutputFormat, look: Look) -> Result<Written> {
        let plan = self.plan(format)?;
        let place = |problem| Error::data(self.names(), problem);
        let mut results = self.read()?;
        results.filter(&self.filters()?).map_err(place)?;
        if let Some(key) = &self.best {
            let first = self.values.first().ok_or_else(|| Error::usage("--best needs a figure in --values"))?;
            results.keep_best(key, first).map_err(place)?;
        }
        if let Some(sort) = &self.sort {
            let (column, descending) = sort.strip_suffix(":desc").map_or((&**sort, false), |column| (column, true));
            results.sort(column, descending).map_err(place)?;
        }
        let pivot = Pivot::new(&results, &plan).map_err(place)?;
        Ok(match format.writer {
            Writer::Programs(_) => format.write(&pivot.results(), look),
            Writer::People(write) => {
                let mut table = pivot.table();
                let left_out = look.width.map_or(Vec::new(), |width| table.fit(width, &pivot.spare()));
                Written { text: write(&table), left_out }
            }
        })
    }

    /// All lines, joined by the names of their columns.
    fn read(&self) -> Result<Results> {
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
        Ok(all)
    }

    fn names(&self) -> String {
        self.results.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    fn plan(&self, format: &OutputFormat) -> Result<PivotPlan, Error> {
        let difference = |text: &String| match &list::expand(text)?[..] {
            [a, b] => Ok((a.clone(), b.clone())),
            _ => Err(format!("--difference {text:?}: write two rows, A,B")),
        };
        Ok(PivotPlan {
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            values: self.values.clone(),
            aside: self.best.clone(),
            difference: self.difference.as_ref().map(difference).transpose().map_err(Error::Usage)?,
            bold: format.name == "markdown" && !self.no_bold,
            precision: self.precision,
        })
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
