//! `kvsim convert`: any trace as a native file.

use super::notes;
use super::output::{Output, refuse_overlap, written};
use super::progress::Progress;
use super::read_args::ReadArgs;
use super::words::words;
use anyhow::Result;
use clap::Args;
use kvsim::error::Error;
use kvsim::trace::TraceInfo;
use kvsim::trace::options::ReadOptions;
use kvsim::trace::safetensors::{StoredType, write, written_bytes};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write any trace as a native file
///
/// Reads a dump with all the flags that replay takes for it, and writes packed rows that need none
/// of them.
#[derive(Args)]
#[command(after_help = "Example:\n  kvsim convert attention.npy --self included -o attention.safetensors")]
pub struct ConvertArgs {
    /// A trace file, a folder of them, a built-in name, or - for standard input; several files with --join
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<OsString>,

    /// The file to write, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How weights are stored [default: as in the trace where it is f16 or bf16 and is
    /// not normalized, else f32]
    #[arg(long, value_parser = words::<StoredType>())]
    dtype: Option<StoredType>,

    #[command(flatten)]
    read: ReadArgs,

    /// No progress bar, no notes
    #[arg(short, long)]
    quiet: bool,
}

impl ConvertArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let inputs: Vec<&OsStr> = self.traces.iter().map(OsString::as_os_str).collect();
        refuse_overlap(&inputs, &[&self.output])?;
        let mut output = Output::open(Some(&self.output))?;
        let source = self.read.open(&self.traces, self.quiet)?;
        let info = source.info();
        if info.streams.is_empty() {
            return Err(Error::data(&info.name, "there is no stream to write").into());
        }
        notes::note(self.quiet, &info.name, &info.notes);
        let progress = Progress::new(&[("writing", info.weights())], self.quiet);
        let dtype = self.dtype.unwrap_or_else(|| stored_type(info, &self.read.options()));
        notes::note(self.quiet, &info.name, &size_note(info, dtype));
        written(write(&*source, dtype, &mut output, &|weights| progress.add(0, weights)))?;
        output.finish()?;
        drop(progress);
        notes::warn(self.quiet, &info.name, &source.warnings());
        Ok(ExitCode::SUCCESS)
    }
}

/// What rows will take that the trace holds no bytes of.
fn size_note(info: &TraceInfo, dtype: StoredType) -> Vec<String> {
    let (rows, streams) = (info.rows(), info.streams.len());
    let mib = written_bytes(info, dtype).div_ceil(1 << 20);
    let note = || format!("{rows} rows of {streams} query heads are rebuilt and take {mib} MiB in the file");
    info.rows_are_rebuilt().then(note).into_iter().collect()
}

/// The narrowest type that holds every weight of the trace as it is read.
fn stored_type(info: &TraceInfo, options: &ReadOptions) -> StoredType {
    let as_stored = options.normalize.is_none();
    let all = |dtype: &str| as_stored && info.streams.iter().all(|stream| stream.dtype == dtype);
    match () {
        () if all("f16") => StoredType::F16,
        () if all("bf16") => StoredType::Bf16,
        () => StoredType::F32,
    }
}
