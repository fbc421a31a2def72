//! The one error type of the library: what went wrong, where, and what kind of answer it calls for.

use std::path::{Path, PathBuf};

/// A result of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can stop a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request does not make sense: an unknown name, a parameter out of range.
    #[error("{0}")]
    Usage(String),
    /// A trace, vector or report file holds something that it must not.
    #[error("{place}: {problem}")]
    Data {
        /// File, and as near as known: line, stream, row, column.
        place: String,
        /// What is wrong there, and what to do about it.
        problem: String,
    },
    /// The operating system refused.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file in question.
        path: PathBuf,
        /// What the operating system said.
        error: std::io::Error,
    },
    /// A policy broke its contract: a bug in the policy, never in the data.
    #[error("policy {policy:?} broke its contract at step {step}: {problem}")]
    Contract {
        /// Name of the policy.
        policy: String,
        /// Position of the row after which it was asked to evict.
        step: u32,
        /// What it did, with the counts.
        problem: String,
    },
}

impl Error {
    /// Bad data at a place.
    pub fn data(place: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Data { place: place.into(), problem: problem.into() }
    }

    /// An operating-system error on a file. Lengths are checked when a file is opened, so that one that ends
    /// too early has been cut since.
    pub fn io(path: &Path, error: std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::cut(path),
            _ => Error::Io { path: path.to_owned(), error },
        }
    }

    fn cut(path: &Path) -> Error {
        Error::data(
            path.display().to_string(),
            "ends early: it changed while it was read (copy it, or wait for its writer)",
        )
    }

    /// A request that does not make sense.
    pub fn usage(problem: impl Into<String>) -> Error {
        Error::Usage(problem.into())
    }
}
