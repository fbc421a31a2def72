//! What a part of the program needs of a replay: one declaration for policies, bounds, meters and
//! observers, and for what a trace can give.
//!
//! The run takes the union of what is needed, refuses by name what the trace does not hold, and
//! leaves out everything else: what nobody asked for is not there to be read.

use std::fmt;

/// A set of things that a step of a replay can bring.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs(u32);

impl Needs {
    /// Nothing.
    pub const NOTHING: Needs = Needs(0);
    /// A lane that holds positions: a policy's, not a bound's.
    pub const KEPT_SET: Needs = Needs(1);
    /// The weights of the kept positions; for a policy the mean over the cache's query heads.
    pub const KEPT_WEIGHTS: Needs = Needs(1 << 1);
    /// The kept weights of each query head of a cache.
    pub const HEAD_ROWS: Needs = Needs(1 << 2);
    /// Whole rows, kept or not.
    pub const WHOLE_ROWS: Needs = Needs(1 << 3);
    /// The query of the token that attends.
    pub const QUERIES: Needs = Needs(1 << 4);
    /// The keys of tokens.
    pub const KEYS: Needs = Needs(1 << 5);
    /// The values of tokens.
    pub const VALUES: Needs = Needs(1 << 6);
    /// The rows to come.
    pub const FUTURE: Needs = Needs(1 << 7);
    /// The caches of several layers, step by step.
    pub const LAYERS: Needs = Needs(1 << 8);
    /// A record of what each lane did in every step.
    pub const STEP_RECORDS: Needs = Needs(1 << 9);
    /// The rows at the end of a prompt.
    pub const PROMPT_END: Needs = Needs(1 << 10);
    /// A lane that says which of a row's marked positions it has: a policy's or a selector's.
    pub const HITS: Needs = Needs(1 << 11);
    /// A lane that chooses what is read of each row: a selector's.
    pub const READS: Needs = Needs(1 << 12);
    /// In that record, what each position was judged by where something was evicted.
    pub const SCORES: Needs = Needs(1 << 13);
    /// The positions that are held after each step.
    pub const HELD_POSITIONS: Needs = Needs(1 << 14);
    /// The projection behind the heads of a layer.
    pub const PROJECTION: Needs = Needs(1 << 15);
    /// Gradients at the outputs of heads.
    pub const GRADIENTS: Needs = Needs(1 << 16);

    /// What a trace may hold besides rows.
    pub const OF_TRACES: Needs =
        Needs::QUERIES.and(Needs::KEYS).and(Needs::VALUES).and(Needs::PROJECTION).and(Needs::GRADIENTS);

    /// Both.
    pub const fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }

    /// What is in both.
    pub const fn common(self, other: Needs) -> Needs {
        Needs(self.0 & other.0)
    }

    /// What is in this and not in the other.
    pub const fn without(self, other: Needs) -> Needs {
        Needs(self.0 & !other.0)
    }

    /// Whether all of the other is in this.
    pub const fn has(self, other: Needs) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of the other is in this.
    pub const fn has_any(self, other: Needs) -> bool {
        self.0 & other.0 != 0
    }

    /// What is needed that a trace does not hold, in words; `None` where it holds all of it.
    pub fn missing_in(self, offered: Needs) -> Option<String> {
        let missing = self.common(Needs::OF_TRACES).without(offered);
        (missing != Needs::NOTHING).then(|| missing.to_string())
    }
}

/// Every thing by its name.
const NAMES: [(Needs, &str); 17] = [
    (Needs::KEPT_SET, "a kept set"),
    (Needs::KEPT_WEIGHTS, "the weights of kept positions"),
    (Needs::HEAD_ROWS, "the rows of single query heads"),
    (Needs::WHOLE_ROWS, "whole rows"),
    (Needs::QUERIES, "queries"),
    (Needs::KEYS, "keys"),
    (Needs::VALUES, "values"),
    (Needs::FUTURE, "the rows to come"),
    (Needs::LAYERS, "several layers side by side"),
    (Needs::STEP_RECORDS, "a record of every step"),
    (Needs::PROMPT_END, "the rows at the end of a prompt"),
    (Needs::HITS, "the hits of every row"),
    (Needs::READS, "a choice of what is read"),
    (Needs::SCORES, "what positions were judged by"),
    (Needs::HELD_POSITIONS, "the positions held after each step"),
    (Needs::PROJECTION, "the projections behind its heads"),
    (Needs::GRADIENTS, "gradients at the outputs of its heads"),
];

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&str> = NAMES.iter().filter(|(need, _)| self.has(*need)).map(|(_, name)| *name).collect();
        f.write_str(&named.join(", "))
    }
}

impl fmt::Debug for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Needs({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_trace_does_not_hold_is_named_and_nothing_else_is() {
        let needs = Needs::KEPT_WEIGHTS.and(Needs::KEYS).and(Needs::VALUES);
        assert_eq!(needs.missing_in(Needs::WHOLE_ROWS).as_deref(), Some("keys, values"));
        assert_eq!(needs.missing_in(Needs::KEYS).as_deref(), Some("values"));
        assert_eq!(needs.missing_in(Needs::KEYS.and(Needs::VALUES)), None);
        assert_eq!(Needs::KEPT_SET.and(Needs::FUTURE).missing_in(Needs::NOTHING), None, "the engine's affair");
    }
}
