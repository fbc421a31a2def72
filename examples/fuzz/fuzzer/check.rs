//! Runs an input through everything that reads its kind, and says what must hold.

use super::corpus::Kind;
use super::random::Random;
use super::{results, traces};
use kvsim::error::Error;
use std::path::Path;

/// What became of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// An error says what is wrong with it.
    Refused,
    /// It was read to its end and its figures are sound.
    Accepted,
}

/// What became of an input, or what should not have happened.
pub type Checked = Result<Verdict, String>;

/// Runs an input.
pub fn check(kind: Kind, path: &Path, random: &mut Random) -> Checked {
    match kind {
        Kind::Trace => traces::check(path, random),
        Kind::Results => results::check(path, random),
        Kind::Vectors => results::check_vectors(path),
        Kind::ModelConfig => results::check_model_config(path),
        Kind::LayerBudgets => results::check_layer_budgets(path, random),
    }
}

/// An error names the file, is of bounded length, and is never a bug of a policy.
pub fn refused(error: &Error, path: &Path) -> Checked {
    let text = error.to_string();
    let is_request = matches!(error, Error::Usage(_));
    match error {
        Error::Contract { .. } => Err(format!("a policy broke its contract: {text}")),
        _ if !is_request && !text.contains(&*path.to_string_lossy()) => Err(format!("no file is named: {text:?}")),
        _ if text.len() > 2000 => Err(format!("a message of {} bytes: {text:.200}", text.len())),
        _ => Ok(Verdict::Refused),
    }
}
