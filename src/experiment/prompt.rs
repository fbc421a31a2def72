//! What happens to the prompt of a trace.

use crate::error::{Error, Result};
use crate::position::Position;
use crate::trace::TraceInfo;

/// What happens to the prompt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Prompt {
    /// The budget holds from the first row.
    #[default]
    Stream,
    /// The rows of the prompt are observed with nothing evicted, then the cache is cut to the budget
    /// at once, as serving engines do; figures are over the rows after it.
    Block {
        /// Positions of the prompt; `None`: as the trace says.
        len: Option<usize>,
    },
}

impl Prompt {
    /// The first position after a prompt that is cut down at once; 0 where the budget holds from the
    /// first row.
    ///
    /// # Errors
    /// When nobody says how long the prompt is, or it is longer than the trace.
    pub fn end(self, info: &TraceInfo) -> Result<Position> {
        let Prompt::Block { len } = self else { return Ok(Position(0)) };
        let (name, positions) = (&info.name, info.positions);
        match len.or(info.facts.prompt_len) {
            None => Err(Error::usage(format!(
                "{name}: it does not say how long its prompt is: --prompt block needs --prompt-len"
            ))),
            Some(len) if len > positions => {
                Err(Error::usage(format!("{name}: a prompt of {len} positions is longer than its {positions}")))
            }
            Some(len) => Ok(Position(len as u32)),
        }
    }

    /// What is said here against the trace's own word.
    pub fn note(self, info: &TraceInfo) -> Option<String> {
        let Prompt::Block { len: Some(said) } = self else { return None };
        let known = info.facts.prompt_len.filter(|known| *known != said)?;
        Some(format!("its metadata says that the prompt has {known} positions: --prompt-len makes it {said}"))
    }
}
