//! Where output goes: standard output, or a file that appears whole or not at all.

use super::unfinished::Unfinished;
use anyhow::{Context, Result};
use kvsim::error::Error;
use kvsim::trace::safetensors::WriteError;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::NamedTempFile;

/// An output that was opened before the work began.
pub struct Output {
    target: Target,
    unfinished: Unfinished,
}

enum Target {
    Stdout(BufWriter<std::io::Stdout>),
    /// Written beside its place and moved there at the end.
    Whole {
        file: Box<BufWriter<NamedTempFile>>,
        path: PathBuf,
    },
    /// A device or a pipe, which cannot be replaced.
    Direct {
        file: BufWriter<File>,
        path: PathBuf,
    },
}

impl Output {
    /// Opens standard output, or the file at `path`.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn open(path: Option<&Path>) -> Result<Output> {
        Output::open_among(Unfinished::default(), path)
    }

    /// Opens another output of the same command.
    ///
    /// # Errors
    /// As [`Output::open`].
    pub fn open_another(&self, path: &Path) -> Result<Output> {
        Output::open_among(self.unfinished.clone(), Some(path))
    }

    fn open_among(unfinished: Unfinished, path: Option<&Path>) -> Result<Output> {
        let target = match path {
            None => Target::Stdout(BufWriter::new(std::io::stdout())),
            Some(path) if is_stdout(path) => Target::Stdout(BufWriter::new(std::io::stdout())),
            Some(path) => open_file(path, &unfinished).with_context(|| format!("cannot write {:?}", path.display()))?,
        };
        Ok(Output { target, unfinished })
    }

    /// Puts everything in place.
    ///
    /// # Errors
    /// When the output refuses; then a file keeps what it was before.
    pub fn finish(self) -> Result<()> {
        match self.target {
            Target::Stdout(mut stdout) => stdout.flush()?,
            Target::Direct { mut file, path } => file.flush().with_context(|| cannot_write(&path))?,
            Target::Whole { file, path } => {
                let file =
                    file.into_inner().map_err(|error| error.into_error()).with_context(|| cannot_write(&path))?;
                file.persist(&path).map_err(|error| error.error).with_context(|| cannot_write(&path))?;
            }
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.writer().write(bytes);
        written.map_err(|error| self.name(error))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.writer().flush();
        flushed.map_err(|error| self.name(error))
    }
}

impl Output {
    /// Says where an error happened and keeps its kind.
    fn name(&self, error: std::io::Error) -> std::io::Error {
        let place = match &self.target {
            Target::Stdout(_) => "standard output".to_owned(),
            Target::Whole { path, .. } | Target::Direct { path, .. } => format!("{:?}", path.display()),
        };
        std::io::Error::new(error.kind(), format!("cannot write {place}: {error}"))
    }
}

/// The outcome of writing a trace, an error of the output as such, so that its kind is seen.
///
/// # Errors
/// As the writing of the trace.
pub fn written(outcome: std::result::Result<(), WriteError>) -> Result<()> {
    outcome.map_err(|error| match error {
        WriteError::Source(error) => error.into(),
        WriteError::Output(error) => error.into(),
    })
}

/// Prints a whole text on standard output.
///
/// # Errors
/// When it refuses.
pub fn print(text: &str) -> Result<ExitCode> {
    let mut output = Output::open(None)?;
    output.write_all(text.as_bytes())?;
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Whether a name stands for standard output. Opened anew, the device would be replaced by a file where it
/// leads to one.
pub fn is_stdout(path: &Path) -> bool {
    path == Path::new("/dev/stdout") || path == Path::new("-")
}

/// Refuses outputs that are the same file as an input or as another output.
///
/// # Errors
/// Names the file.
pub fn refuse_overlap(inputs: &[&OsStr], outputs: &[&Path]) -> std::result::Result<(), Error> {
    let real = |path: &Path| {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        path.canonicalize().ok().or_else(|| Some(folder.canonicalize().ok()?.join(path.file_name()?)))
    };
    let is_file = |path: &&Path| !is_stdout(path);
    let mut taken: Vec<PathBuf> = inputs.iter().map(Path::new).filter(is_file).filter_map(real).collect();
    for output in outputs.iter().copied().filter(is_file) {
        let Some(place) = real(output).filter(|place| !place.exists() || place.is_file()) else { continue };
        if taken.contains(&place) {
            let problem = "it is read or written by the same command: choose another name for the output";
            return Err(Error::usage(format!("{:?}: {problem}", output.display())));
        }
        taken.push(place);
    }
    Ok(())
}

impl Output {
    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.target {
            Target::Stdout(stdout) => stdout,
            Target::Whole { file, .. } => file,
            Target::Direct { file, .. } => file,
        }
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {:?}", path.display())
}

fn open_file(path: &Path, unfinished: &Unfinished) -> std::io::Result<Target> {
    let path = behind_links(path)?;
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => Err(std::io::Error::other("it is a directory")),
        Ok(found) if !found.is_file() => {
            let file = BufWriter::new(File::options().write(true).open(&path)?);
            Ok(Target::Direct { file, path })
        }
        found => open_beside(path, unfinished, found.ok().map(|found| found.permissions())),
    }
}

/// Links followed at most, as many as Linux follows.
const MOST_LINKS: usize = 40;

/// The file that a link leads to, which is replaced and the link kept; it need not be there yet.
fn behind_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(std::io::Error::other("it is a link that leads in a circle"))
}

/// A new file takes the place of the old one with its permissions.
fn open_beside(path: PathBuf, unfinished: &Unfinished, permissions: Option<Permissions>) -> std::io::Result<Target> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    std::fs::metadata(folder)?;
    let file = unfinished.create_in(folder, permissions.as_ref())?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(Target::Whole { file: Box::new(BufWriter::with_capacity(1 << 16, file)), path })
}

/// Reads a whole file, or standard input where the name is `-`.
///
/// # Errors
/// When it cannot be read.
pub fn read_input(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).context("cannot read standard input")?;
    } else {
        bytes = std::fs::read(path).with_context(|| format!("cannot read {:?}", path.display()))?;
    }
    Ok(bytes)
}
