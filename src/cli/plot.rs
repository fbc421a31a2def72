//! `kvsim plot`: curves from replay results, as a picture.

use super::notes;
use super::output::{Output, refuse_overlap};
use super::results_args::ResultsArgs;
use anyhow::Result;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use kvsim::error::Error;
use kvsim::picture::{self, Size};
use kvsim::report::curves::{CurvePlan, curves};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Draw curves from replay results as SVG or PNG
///
/// A panel for each figure, a curve for each value of the columns that tell lanes apart. Streams of one trace, or
/// several traces, that fall on one point are drawn as their mean with a band from the least to the greatest; where
/// results give an interval (columns FIGURE_low and FIGURE_high), that is the band. Policies without a budget are
/// level lines.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim replay --policy scissorhands,h2o,tova --budget 5%,10%,20%,40% -o sweep.csv\n  \
    kvsim plot sweep.csv -o sweep.svg\n  \
    kvsim plot sweep.csv --y retained_mass --by policy -o mass.png\n  \
    kvsim replay --policy h2o --budget 256 --recent-window 8..=128:8 -f csv | kvsim plot - --x recent_window -o window.svg")]
pub struct PlotArgs {
    #[command(flatten)]
    input: ResultsArgs,

    /// Column along the abscissa [default: the budget, or the first other number of lanes that differs]
    #[arg(long, value_name = "COLUMN")]
    x: Option<String>,

    /// Figures, each in a panel of its own [default: predicted_loss, peak_miss_rate and retained_mass, as far
    /// as the results have them]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    y: Vec<String>,

    /// Columns whose values make curves [default: policy and parameters, as far as they differ]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    by: Vec<String>,

    /// Of lines that differ in this column alone, draw the one whose first figure is best
    #[arg(long, value_name = "COLUMN", requires = "y")]
    best: Option<String>,

    /// Width of the picture in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = Size::default().width,
        value_parser = RangedU64ValueParser::<u32>::new().range(520..=8192))]
    width: u32,

    /// Height of each panel in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = Size::default().panel_height,
        value_parser = RangedU64ValueParser::<u32>::new().range(160..=8192))]
    height: u32,

    /// The picture, which appears whole or not at all: .svg or .png
    #[arg(short, long, value_name = "FIGURE")]
    output: PathBuf,
}

/// What a picture is written as.
#[derive(Clone, Copy)]
enum Kind {
    Svg,
    Png,
}

impl PlotArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let kind = self.kind()?;
        refuse_overlap(&self.input.inputs(), &[&self.output])?;
        let mut output = Output::open(Some(&self.output))?;
        let picture = self.picture(kind)?;
        output.write_all(&picture)?;
        output.finish()?;
        notes::remark(self.input.quiet, &format!("{} is drawn", self.output.display()));
        Ok(ExitCode::SUCCESS)
    }

    fn kind(&self) -> Result<Kind, Error> {
        match self.output.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Kind::Svg),
            Some("png") => Ok(Kind::Png),
            _ => Err(Error::usage(format!("{:?}: a picture ends in .svg or .png", self.output.display()))),
        }
    }

    fn picture(&self, kind: Kind) -> Result<Vec<u8>> {
        let place = |problem| self.input.error(problem);
        let mut results = self.input.read()?;
        if let (Some(key), Some(figure)) = (&self.best, self.y.first()) {
            results.keep_best(key, figure).map_err(place)?;
        }
        let plan = CurvePlan { x: self.x.clone(), y: self.y.clone(), by: self.by.clone() };
        let panels = curves(&results, &plan).map_err(place)?;
        let size = Size { width: self.width, panel_height: self.height };
        let drawn = match kind {
            Kind::Svg => picture::svg(&panels, size).map(String::into_bytes),
            Kind::Png => picture::png(&panels, size),
        };
        Ok(drawn.map_err(place)?)
    }
}
