//! `kvsim generate`: a synthetic trace as a native file.

use super::output::{Output, refuse_overlap, written};
use super::progress::Progress;
use super::words::words;
use anyhow::Result;
use clap::Args;
use kvsim::error::Error;
use kvsim::trace::Source;
use kvsim::trace::safetensors::{StoredType, write};
use kvsim::trace::spec::{MixtureSpec, built_in_names};
use kvsim::trace::synthetic::SyntheticTrace;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a synthetic trace to a file
///
/// A spec is a small JSON file that describes a mixture of sinks, a local band, heavy hitters and
/// noise. Two are built in: decode-4096, the canonical one, and control-2048, nothing but noise, in
/// which no position matters more than another.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    kvsim generate decode-4096 -o decode-4096.safetensors\n  \
    kvsim generate decode-4096 -o long.safetensors --seq-len 16384 --dtype f16")]
pub struct GenerateArgs {
    /// A spec file, or a built-in name
    #[arg(value_name = "SPEC|NAME")]
    spec: PathBuf,

    /// The file to write, which appears whole or not at all
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How weights are stored
    #[arg(long, value_parser = words::<StoredType>(), default_value = "f32")]
    dtype: StoredType,

    /// Seed, instead of the spec's
    #[arg(long, value_name = "N")]
    seed: Option<u32>,

    /// Number of positions, instead of the spec's
    #[arg(long, value_name = "N")]
    seq_len: Option<usize>,

    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

impl GenerateArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let trace = SyntheticTrace::new(self.spec()?);
        refuse_overlap(&[self.spec.as_os_str()], &[&self.output])?;
        let mut output = Output::open(Some(&self.output))?;
        let progress = Progress::new(&[("writing", trace.info().weights())], self.quiet);
        written(write(&trace, self.dtype, &mut output, &|weights| progress.add(0, weights)))?;
        output.finish()?;
        Ok(ExitCode::SUCCESS)
    }

    fn spec(&self) -> Result<MixtureSpec, Error> {
        let mut spec = match self.spec.to_str().and_then(MixtureSpec::built_in) {
            Some(spec) => spec,
            None => read_spec(&self.spec)?,
        };
        spec.seed = self.seed.unwrap_or(spec.seed);
        spec.positions = self.seq_len.unwrap_or(spec.positions);
        spec.check().map_err(|problem| Error::usage(format!("{}: {problem}", spec.name)))?;
        Ok(spec)
    }
}

fn read_spec(path: &Path) -> Result<MixtureSpec, Error> {
    if path.exists() {
        return MixtureSpec::read(path);
    }
    let names = built_in_names().collect::<Vec<_>>().join(", ");
    Err(Error::data(path.display().to_string(), format!("no such file, and no built-in spec ({names})")))
}
