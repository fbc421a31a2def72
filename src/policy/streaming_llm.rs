//! `streaming-llm`: keeps the first positions and the newest.
//!
//! *Idea.* Models park attention on the first tokens (attention sinks); keep those and slide a
//! window over the rest.
//! *Paper.* Xiao et al.: Efficient Streaming Language Models with Attention Sinks, ICLR 2024,
//! arXiv 2309.17453.
//! *How this differs from the paper.* The paper renumbers positions inside the cache; a replay of
//! recorded attention cannot show what that does.
//! *Parameters.* `sinks` (4).
//! *Cost.* No state; constant time per step besides the removal.

use super::choose::rank_by_age;
use super::entry::{Make, PolicyEntry};
use super::parameter::{SINKS, Value};
use super::{Overflow, Policy, choose_oldest};
use crate::needs::Needs;
use crate::position::{Position, Slot};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::new(
    "streaming-llm",
    "keeps the first positions and the newest",
    Make::Policy(|setting| Box::new(StreamingLlm::new(setting.values.count(&SINKS)))),
)
.paper("Xiao et al.: StreamingLLM, ICLR 2024, arXiv 2309.17453")
.parameters(&[(&SINKS, Value::Count(4))])
.ranked()
.needs(Needs::NOTHING);

/// Evicts the oldest position that is no sink.
pub struct StreamingLlm {
    sinks: usize,
}

impl StreamingLlm {
    /// Keeps positions below `sinks` out of reach.
    pub fn new(sinks: usize) -> StreamingLlm {
        StreamingLlm { sinks }
    }
}

impl Policy for StreamingLlm {
    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        choose_oldest(sink_slots(overflow, self.sinks), overflow, victims);
    }

    fn rank(&mut self, kept: &[Position], ranks: &mut Vec<Option<f64>>) {
        rank_by_age(self.sinks, kept, ranks);
    }
}

/// Number of slots, from the first on, that hold positions below `sinks`.
pub(super) fn sink_slots(overflow: Overflow<'_>, sinks: usize) -> usize {
    let held = overflow.kept.iter().take(sinks);
    held.take_while(|position| position.index() < sinks).count()
}
