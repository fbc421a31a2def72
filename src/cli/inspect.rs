//! `kvsim inspect`: what is in a trace.

use super::output::print;
use super::progress::Progress;
use super::read_args::{ReadArgs, quoted};
use anyhow::Result;
use clap::{Args, ValueEnum};
use kvsim::inspect::{StreamFigures, inspect_stream};
use kvsim::report::text_table::TextTable;
use kvsim::text::plain;
use kvsim::trace::{Source, TraceInfo};
use kvsim::word::Word;
use serde_json::json;
use std::ffi::OsString;
use std::process::ExitCode;

/// Characters of a metadata value that are shown.
const MOST_SHOWN: usize = 120;

/// Say what is in a trace
///
/// Streams, rows, stored type, metadata; for each stream the row sums, the share of weights that
/// are zero, and the shares of mass on the first four positions, on the newest 64 and on the token
/// itself. The last line is the command that replays the trace as it was understood.
#[derive(Args)]
#[command(after_help = "Example:\n  kvsim inspect traces/smollm2-prose-512.safetensors")]
pub struct InspectArgs {
    /// A trace file, a folder of them, a built-in name, or - for standard input; several files with --join
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<OsString>,

    #[command(flatten)]
    read: ReadArgs,

    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    format: Format,

    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

impl InspectArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let source = self.read.open(&self.traces, self.quiet)?;
        let about = source.about()?;
        let figures = self.figures(&*source)?;
        let (info, mut said) = (source.info(), said(&*source, &figures));
        said.extend(about.warnings.into_iter().map(|warning| ("warning", warning)));
        let command = self.replay_command(info, &figures);
        print(&match self.format {
            Format::Text => format!("{}\nreplay it with:\n  {command}\n", text(info, &about.lines, &figures, &said)),
            Format::Json => json(info, &about.lines, &figures, &said, &command),
        })
    }

    /// The command that replays the trace as it was understood: what was said of it, and what was found out.
    fn replay_command(&self, info: &TraceInfo, figures: &[StreamFigures]) -> String {
        let given = self.read.flags();
        let is_given = |flag: &String| given.iter().any(|given| given.split(' ').next() == flag.split(' ').next());
        let found = info.read_as.iter().filter(|flag| !is_given(flag)).cloned();
        let prompt = info.facts.prompt_len.filter(|len| (1..info.positions).contains(len));
        let traces = self.traces.iter().map(|trace| quoted(&trace.to_string_lossy()));
        let words = ["kvsim replay".to_owned()].into_iter().chain(traces).chain(given.iter().cloned()).chain(found);
        let bad = figures.iter().any(|stream| stream.bad_rows > 0);
        let further = [bad.then_some("--on-bad-row skip"), prompt.map(|_| "--prompt block")];
        words.chain(further.into_iter().flatten().map(str::to_owned)).collect::<Vec<_>>().join(" ")
    }

    fn figures(&self, source: &dyn Source) -> Result<Vec<StreamFigures>> {
        let progress = Progress::new(&[("reading", source.info().weights())], self.quiet);
        let add = |weights| progress.add(0, weights);
        let streams = 0..source.info().streams.len();
        Ok(streams.map(|stream| inspect_stream(source, stream, &add)).collect::<Result<_, _>>()?)
    }
}

/// Everything said about the trace: kind and text.
fn said(source: &dyn Source, figures: &[StreamFigures]) -> Vec<(&'static str, String)> {
    let of_trace = |kind: &'static str, texts: Vec<String>| texts.into_iter().map(move |text| (kind, text));
    let of_stream = |figures: &StreamFigures| {
        let stream = |text: &String| ("warning", format!("stream {}: {text}", figures.stream));
        figures.warnings.iter().map(stream).collect::<Vec<_>>()
    };
    let notes = of_trace("note", source.info().notes.clone()).chain(of_trace("warning", source.warnings()));
    notes.chain(of_trace("remark", source.remarks())).chain(figures.iter().flat_map(of_stream)).collect()
}

fn text(info: &TraceInfo, about: &[String], figures: &[StreamFigures], said: &[(&str, String)]) -> String {
    let mut text = format!(
        "{}: {}, self {}, {} positions, {} stream{}\n",
        plain(&info.name),
        info.format,
        info.self_attention.word(),
        info.positions,
        info.streams.len(),
        if info.streams.len() == 1 { "" } else { "s" }
    );
    text.extend(info.metadata.iter().map(|(key, value)| format!("  {}: {}\n", plain(key), shortened(&plain(value)))));
    text.extend(about.iter().map(|line| format!("{}\n", plain(line))));
    text.push('\n');
    text.push_str(&table(figures).aligned());
    if !said.is_empty() {
        text.push('\n');
    }
    text.extend(said.iter().map(|(kind, what)| format!("{kind}: {}\n", plain(what))));
    text
}

/// Metadata such as the text of all tokens is cut for people; JSON has it whole.
fn shortened(value: &str) -> String {
    match value.char_indices().nth(MOST_SHOWN) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}... ({} characters)", &value[..end], value.chars().count()),
    }
}

fn table(figures: &[StreamFigures]) -> TextTable {
    let names = [
        "stream", "rows", "dtype", "null", "bad", "sum min", "sum mean", "sum max", "zeros", "first 4", "last 64",
        "self",
    ];
    let number = |figure: Option<f64>| figure.map_or("-".to_owned(), |figure| format!("{figure:.6}"));
    let row = |stream: &StreamFigures| {
        let words = [stream.stream.clone(), stream.rows.to_string(), stream.dtype.to_owned()];
        let counts = [stream.null_rows.to_string(), stream.bad_rows.to_string()];
        let shares = [
            stream.row_sum_min,
            stream.row_sum_mean,
            stream.row_sum_max,
            stream.zeros,
            stream.first_4,
            stream.last_64,
            stream.on_self,
        ];
        words.into_iter().chain(counts).chain(shares.map(number)).collect()
    };
    TextTable {
        header: names.map(str::to_owned).to_vec(),
        rows: figures.iter().map(row).collect(),
        right: (0..names.len()).map(|column| ![0, 2].contains(&column)).collect(),
    }
}

fn json(
    info: &TraceInfo,
    about: &[String],
    figures: &[StreamFigures],
    said: &[(&str, String)],
    command: &str,
) -> String {
    let value = json!({
        "trace": info.name,
        "format": info.format,
        "self": info.self_attention.word(),
        "positions": info.positions,
        "metadata": info.metadata,
        "about": about,
        "streams": figures,
        "said": said.iter().map(|(kind, what)| json!({ "kind": kind, "text": what })).collect::<Vec<_>>(),
        "replay": command,
    });
    format!("{value:#}\n")
}
