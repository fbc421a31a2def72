//! `kvsim table`: comparison tables from replay results.

use super::block_args::BlockArgs;
use super::output::refuse_overlap;
use super::report_args::{self, ReportArgs};
use super::results_args::ResultsArgs;
use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use kvsim::error::Error;
use kvsim::experiment::list;
use kvsim::report::DECIMALS;
use kvsim::report::curves::{CurvePlan, curves};
use kvsim::report::format::{Look, OutputFormat, Writer, Written};
use kvsim::report::pivot::{Pivot, PivotPlan};
use kvsim::report::results::Results;
use kvsim::report::text_chart::text_chart;
use std::path::Path;
use std::process::ExitCode;

/// Columns of a chart that does not go to a terminal.
const CHART_WIDTH: usize = 100;

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
    kvsim table results.csv --values retained_mass --chart\n  \
    kvsim table results.csv --into README.md --block policies --check")]
pub struct TableArgs {
    #[command(flatten)]
    input: ResultsArgs,

    /// Columns whose values become rows
    #[arg(long, value_name = "LIST", default_value = "policy", value_delimiter = ',')]
    rows: Vec<String>,

    /// Column whose values become columns
    #[arg(long, value_name = "NAME", default_value = "budget")]
    columns: String,

    /// Figures in each cell
    #[arg(long, value_name = "LIST", default_value = "retained_mass,heavy_recall", value_delimiter = ',')]
    values: Vec<String>,

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

    /// Draw the figures over --columns in text instead, a letter for each value of --rows
    #[arg(long, conflicts_with_all = ["difference", "no_bold"])]
    chart: bool,

    #[command(flatten)]
    block: BlockArgs,
}

impl TableArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let format = self.report.format("markdown")?;
        let outputs: Vec<&Path> = self.report.file().into_iter().chain(self.block.document()).collect();
        refuse_overlap(&self.input.inputs(), &outputs)?;
        if self.block.document().is_some() {
            return self.block.write(&self.table(format, Look::default())?.text);
        }
        let mut output = self.report.open()?;
        report_args::write(&self.table(format, self.report.look(format, false))?, &mut output, self.input.quiet)?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn table(&self, format: &OutputFormat, look: Look) -> Result<Written> {
        let plan = self.plan(format)?;
        let place = |problem| self.input.error(problem);
        let mut results = self.input.read()?;
        if let Some(key) = &self.best {
            let first = self.values.first().ok_or_else(|| Error::usage("--best needs a figure in --values"))?;
            results.keep_best(key, first).map_err(place)?;
        }
        if let Some(sort) = &self.sort {
            let (column, descending) = sort.strip_suffix(":desc").map_or((&**sort, false), |column| (column, true));
            results.sort(column, descending).map_err(place)?;
        }
        if self.chart {
            return Ok(self.drawn(&results).map_err(place)?);
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

    /// The figures as charts in text.
    fn drawn(&self, results: &Results) -> Result<Written, String> {
        let plan = CurvePlan { x: Some(self.columns.clone()), y: self.values.clone(), by: self.rows.clone() };
        let width = self.report.width().unwrap_or(CHART_WIDTH);
        let charts: Vec<String> = curves(results, &plan)?.iter().map(|panel| text_chart(panel, width)).collect();
        Ok(Written { text: charts.join("\n"), left_out: Vec::new() })
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
}
