//! Parameters of policies: names, values, defaults and the text forms that they are read from.

use super::share::Share;
use std::fmt;

/// A parameter that policies may have. Each name means the same in every policy, but for `alpha`, which the papers
/// call different things.
#[derive(Debug)]
pub struct Parameter {
    /// Name on the command line.
    pub name: &'static str,
    /// Name of the report column.
    pub column: &'static str,
    /// Name in vector files.
    pub vector_key: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// What values it takes.
    pub kind: Kind,
}

/// What values a parameter takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Whole numbers from `least` on; `odd` admits odd ones only.
    Count {
        /// The smallest value.
        least: usize,
        /// Whether even numbers are refused.
        odd: bool,
    },
    /// Numbers of a closed interval.
    Real {
        /// The smallest value.
        least: f64,
        /// The largest value.
        most: f64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number from `least` on, or a share of the budget such as `50%`.
    CountOrShare {
        /// The smallest value.
        least: usize,
    },
    /// A whole number from 1 on, or this word.
    CountOr(&'static str),
}

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Count(usize),
    /// A number.
    Real(f64),
    /// A word.
    Word(&'static str),
    /// A share of the budget.
    Share(Share),
}

impl Value {
    /// A whole number as it is, 0 for anything else.
    pub(super) fn count_or_0(self) -> usize {
        if let Value::Count(count) = self { count } else { 0 }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => count.fmt(f),
            Value::Real(real) => real.fmt(f),
            Value::Word(word) => word.fmt(f),
            Value::Share(share) => share.fmt(f),
        }
    }
}

impl Parameter {
    /// Reads a value, and checks it.
    ///
    /// # Errors
    /// Says what is wrong with the text, without naming the parameter.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self.kind {
            Kind::Count { least, odd } => parse_count(text, least, odd),
            Kind::Real { least, most } => parse_real(text, least, most),
            Kind::Word(words) => parse_word(text, words),
            Kind::CountOr(word) if text == word => Ok(Value::Word(word)),
            Kind::CountOr(word) => {
                parse_count(text, 1, false).map_err(|problem| format!("{problem} (the word {word} is possible too)"))
            }
            Kind::CountOrShare { .. } if text.ends_with('%') => Share::parse(text).map(Value::Share),
            Kind::CountOrShare { least } => parse_count(text, least, false)
                .map_err(|problem| format!("{problem} (a share of the budget is written as 50%)")),
        }
    }
}

fn parse_count(text: &str, least: usize, odd: bool) -> Result<Value, String> {
    let count: usize = text.parse().map_err(|_| format!("{text:?} is not a whole number"))?;
    if count < least {
        return Err(format!("{count} is too small, at least {least} is needed"));
    }
    if odd && count.is_multiple_of(2) {
        return Err(format!("{count} is even, an odd number is needed"));
    }
    Ok(Value::Count(count))
}

fn parse_real(text: &str, least: f64, most: f64) -> Result<Value, String> {
    let real: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if !(least..=most).contains(&real) {
        return Err(format!("{text} is out of range, {least} to {most} is possible"));
    }
    Ok(Value::Real(real))
}

fn parse_word(text: &str, words: &[&'static str]) -> Result<Value, String> {
    let known = words.iter().find(|word| **word == text);
    known.map(|word| Value::Word(word)).ok_or_else(|| format!("{text:?} is none of {}", words.join(", ")))
}

/// Newest slots that a policy never evicts.
pub const RECENT_WINDOW: Parameter = Parameter {
    name: "recent-window",
    column: "recent_window",
    vector_key: "recentWindow",
    summary: "newest slots that are never evicted: a count, or a share of the budget",
    kind: Kind::CountOrShare { least: 0 },
};

/// First positions that a policy never evicts.
pub const SINKS: Parameter = Parameter {
    name: "sinks",
    column: "sinks",
    vector_key: "sinks",
    summary: "first positions that are never evicted: a count, or a share of the budget",
    kind: Kind::CountOrShare { least: 0 },
};

/// Length of the ring of observed weights.
pub const OBS_WINDOW: Parameter = Parameter {
    name: "obs-window",
    column: "obs_window",
    vector_key: "obsWindow",
    summary: "observed rows that a score sums over",
    kind: Kind::Count { least: 1, odd: false },
};

/// Width of the pooling over neighbouring slots.
pub const POOL_KERNEL: Parameter = Parameter {
    name: "pool-kernel",
    column: "pool_kernel",
    vector_key: "poolKernel",
    summary: "neighbouring slots that a score is pooled over (odd)",
    kind: Kind::Count { least: 1, odd: true },
};

/// First layer's budget over the last one's.
pub const PYRAMID_RATIO: Parameter = Parameter {
    name: "pyramid-ratio",
    column: "pyramid_ratio",
    vector_key: "pyramidRatio",
    summary: "budget of the first layer over that of the last",
    kind: Kind::Real { least: 1.0, most: 1e6 },
};

/// Seed of the random baseline.
pub const SEED: Parameter = Parameter {
    name: "seed",
    column: "seed",
    vector_key: "seed",
    summary: "seed of the random choice",
    kind: Kind::Count { least: 0, odd: false },
};

/// How much of a score is left after a row.
pub const GAMMA: Parameter = Parameter {
    name: "gamma",
    column: "gamma",
    vector_key: "gamma",
    summary: "share of a score that the next row leaves of it",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// What a weight adds to a score.
pub const SIGNAL: Parameter = Parameter {
    name: "signal",
    column: "signal",
    vector_key: "signal",
    summary: "what a weight adds to a score",
    kind: Kind::Word(&["weight", "vote", "sqrt", "square"]),
};

/// Observed rows whose bits count.
pub const HISTORY_WINDOW: Parameter = Parameter {
    name: "history-window",
    column: "history_window",
    vector_key: "historyWindow",
    summary: "last observed rows that count",
    kind: Kind::Count { least: 1, odd: false },
};

/// Slots that go at once.
pub const DROP: Parameter = Parameter {
    name: "drop",
    column: "drop",
    vector_key: "drop",
    summary: "slots that go at once: a count, or a share of the budget",
    kind: Kind::CountOrShare { least: 1 },
};

/// What is counted over the history window.
pub const COUNT: Parameter = Parameter {
    name: "count",
    column: "count",
    vector_key: "count",
    summary: "evict the most lows, the fewest highs, or the largest fraction of lows",
    kind: Kind::Word(&["low", "high", "fraction"]),
};

/// What a weight is compared with.
pub const THRESHOLD: Parameter = Parameter {
    name: "threshold",
    column: "threshold",
    vector_key: "threshold",
    summary: "a weight is low up to the even share of the sequence, or of the kept positions",
    kind: Kind::Word(&["sequence", "kept"]),
};

/// How much attention touches a position.
pub const TOUCH: Parameter = Parameter {
    name: "touch",
    column: "touch",
    vector_key: "touch",
    summary: "a weight above this many even shares of the kept positions touches",
    kind: Kind::Real { least: 0.0, most: 1e6 },
};

/// How much counts what came before, under the name that the papers give it.
pub const ALPHA: Parameter = Parameter {
    name: "alpha",
    column: "alpha",
    vector_key: "alpha",
    summary: "the share of the importance of the layer before against the layer's own weights; what is left of a \
              carried score at a cut; or the part of its own slots that a head is sure of",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// What a position is scored by.
pub const SCORE: Parameter = Parameter {
    name: "score",
    column: "score",
    vector_key: "score",
    summary: "what a position is scored by: all that it received, or that by the rows that showed it",
    kind: Kind::Word(&["sum", "mean"]),
};

/// How much of the budget goes to what varies.
pub const STEADY: Parameter = Parameter {
    name: "steady",
    column: "steady",
    vector_key: "steady",
    summary: "share of the budget that stays because its weights vary most",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// Positions that are read of each row.
pub const TOP_K: Parameter = Parameter {
    name: "top-k",
    column: "top_k",
    vector_key: "topK",
    summary: "heaviest positions that are read of each row",
    kind: Kind::Count { least: 1, odd: false },
};

/// How much of a row's mass is read.
pub const TOP_P: Parameter = Parameter {
    name: "top-p",
    column: "top_p",
    vector_key: "topP",
    summary: "share of each row's mass that is read",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// What a weight has to exceed.
pub const WEIGHT_ABOVE: Parameter = Parameter {
    name: "weight-above",
    column: "weight_above",
    vector_key: "weightAbove",
    summary: "a position with more weight than this is read",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// The quantile that a law of thresholds is fitted to.
pub const QUANTILE: Parameter = Parameter {
    name: "quantile",
    column: "quantile",
    vector_key: "quantile",
    summary: "quantile of a row that a law of thresholds is fitted to",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// Rows that a law is fitted to.
pub const WARM_UP: Parameter = Parameter {
    name: "warm-up",
    column: "warm_up",
    vector_key: "warmUp",
    summary: "last rows of the prompt that a law is fitted to",
    kind: Kind::Count { least: 1, odd: false },
};

/// How neighbours are pooled.
pub const POOL: Parameter = Parameter {
    name: "pool",
    column: "pool",
    vector_key: "pool",
    summary: "how a score is pooled over neighbouring positions: their average, zeros beyond the ends, or maximum",
    kind: Kind::Word(&["avg", "max"]),
};

/// How slots are dealt out to the heads of a layer.
pub const DEAL: Parameter = Parameter {
    name: "deal",
    column: "deal",
    vector_key: "deal",
    summary: "how slots are dealt out: the same for each head, or shared within a layer by scores",
    kind: Kind::Word(&["even", "layer"]),
};

/// How much the variance between rows counts beside the mean.
pub const VARIANCE_WEIGHT: Parameter = Parameter {
    name: "variance-weight",
    column: "variance_weight",
    vector_key: "varianceWeight",
    summary: "how much the variance of a weight between rows counts beside its mean",
    kind: Kind::Real { least: 0.0, most: 1e9 },
};

/// How little a layer's entropy counts for its share.
pub const TAU_1: Parameter = Parameter {
    name: "tau1",
    column: "tau1",
    vector_key: "tau1",
    summary: "a layer's preference goes with its entropy to the power 1 / tau1",
    kind: Kind::Real { least: 0.01, most: 100.0 },
};

/// How little a layer's variance counts for its share.
pub const TAU_2: Parameter = Parameter {
    name: "tau2",
    column: "tau2",
    vector_key: "tau2",
    summary: "a layer's preference goes with its variance to the power 1 / tau2",
    kind: Kind::Real { least: 0.01, most: 100.0 },
};

/// When a layer is lazy.
pub const LAZY_ABOVE: Parameter = Parameter {
    name: "lazy-above",
    column: "lazy_above",
    vector_key: "lazyAbove",
    summary: "a layer with more mass than this on the first and the newest positions is lazy",
    kind: Kind::Real { least: 0.0, most: 1.0 },
};

/// First positions of a cache in blocks that stay.
pub const START_SIZE: Parameter = Parameter {
    name: "start-size",
    column: "start_size",
    vector_key: "startSize",
    summary: "first positions that stay, in whole blocks",
    kind: Kind::Count { least: 0, odd: false },
};

/// Newest positions of a cache in blocks that stay.
pub const RECENT_SIZE: Parameter = Parameter {
    name: "recent-size",
    column: "recent_size",
    vector_key: "recentSize",
    summary: "newest positions that stay, in whole blocks",
    kind: Kind::Count { least: 0, odd: false },
};

/// Positions that a cut leaves.
pub const MAX_SIZE: Parameter = Parameter {
    name: "max-size",
    column: "max_size",
    vector_key: "maxSize",
    summary: "positions that a cut leaves, in whole blocks; fit: the most whose peak is within the budget",
    kind: Kind::CountOr("fit"),
};

/// Positions of a block.
pub const BLOCK_SIZE: Parameter = Parameter {
    name: "block-size",
    column: "block_size",
    vector_key: "blockSize",
    summary: "positions of a block",
    kind: Kind::Count { least: 1, odd: false },
};

/// Last rows of a prompt that count.
pub const PROMPT_ROWS: Parameter = Parameter {
    name: "prompt-rows",
    column: "prompt_rows",
    vector_key: "promptRows",
    summary: "last rows of the prompt that count",
    kind: Kind::Count { least: 1, odd: false },
};

/// What a slot adds to the worth of its block.
pub const AGGREGATION: Parameter = Parameter {
    name: "aggregation",
    column: "aggregation",
    vector_key: "aggregation",
    summary: "what a slot is worth: the sum of its weights, or that over the rows that it was in",
    kind: Kind::Word(&["sum", "norm-sum"]),
};

/// The policy whose scores another one weighs.
pub const HOST: Parameter = Parameter {
    name: "host",
    column: "host",
    vector_key: "host",
    summary: "the policy whose scores are weighed",
    kind: Kind::Word(&["h2o", "scissorhands", "tova", "snapkv"]),
};

/// Queries that those to come are expected to be like.
pub const QUERY_WINDOW: Parameter = Parameter {
    name: "query-window",
    column: "query_window",
    vector_key: "queryWindow",
    summary: "last queries that those to come are expected to be like",
    kind: Kind::Count { least: 1, odd: false },
};

/// Every parameter, in the order of report columns.
pub const PARAMETERS: &[&Parameter] = &[
    &RECENT_WINDOW,
    &SINKS,
    &OBS_WINDOW,
    &POOL_KERNEL,
    &PYRAMID_RATIO,
    &SEED,
    &GAMMA,
    &SIGNAL,
    &HISTORY_WINDOW,
    &DROP,
    &COUNT,
    &THRESHOLD,
    &ALPHA,
    &TOUCH,
    &SCORE,
    &STEADY,
    &TOP_K,
    &TOP_P,
    &WEIGHT_ABOVE,
    &QUANTILE,
    &WARM_UP,
    &POOL,
    &DEAL,
    &VARIANCE_WEIGHT,
    &TAU_1,
    &TAU_2,
    &LAZY_ABOVE,
    &START_SIZE,
    &RECENT_SIZE,
    &MAX_SIZE,
    &BLOCK_SIZE,
    &PROMPT_ROWS,
    &AGGREGATION,
    &HOST,
    &QUERY_WINDOW,
];

/// The values of one lane's parameters, in the policy's own order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// Sets a value.
    pub fn set(&mut self, parameter: &Parameter, value: Value) {
        match self.0.iter_mut().find(|(name, _)| *name == parameter.name) {
            Some((_, held)) => *held = value,
            None => self.0.push((parameter.name, value)),
        }
    }

    /// The value of a parameter, if the policy has it.
    pub fn get(&self, parameter: &Parameter) -> Option<Value> {
        self.0.iter().find(|(name, _)| *name == parameter.name).map(|(_, value)| *value)
    }

    /// A whole number that the policy's line in the table promises.
    pub fn count(&self, parameter: &Parameter) -> usize {
        match self.get(parameter) {
            Some(Value::Count(count)) => count,
            other => panic!("the table of policies promises a count for {:?}, found {other:?}", parameter.name),
        }
    }

    /// A number that the policy's line in the table promises.
    pub fn real(&self, parameter: &Parameter) -> f64 {
        match self.get(parameter) {
            Some(Value::Real(real)) => real,
            other => panic!("the table of policies promises a number for {:?}, found {other:?}", parameter.name),
        }
    }

    /// A word that the policy's line in the table promises.
    pub fn word(&self, parameter: &Parameter) -> &'static str {
        match self.get(parameter) {
            Some(Value::Word(word)) => word,
            other => panic!("the table of policies promises a word for {:?}, found {other:?}", parameter.name),
        }
    }

    /// A count that the policy's line in the table promises, or the share of `whole` that stands for it.
    pub fn count_of(&self, parameter: &Parameter, whole: usize) -> usize {
        match self.get(parameter) {
            Some(Value::Share(share)) => share.of(whole),
            _ => self.count(parameter),
        }
    }

    /// The values at a budget: windows and sinks that were given as a share of it are counts, rounded down.
    pub fn at_budget(&self, budget: usize) -> Values {
        let mut values = self.clone();
        for parameter in [&RECENT_WINDOW, &SINKS] {
            if let Some(Value::Share(share)) = self.get(parameter) {
                values.set(parameter, Value::Count(share.floor_of(budget)));
            }
        }
        values
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().copied()
    }
}
