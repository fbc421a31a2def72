//! Parameters of policies: names, values, defaults and the text forms that they are read from.

use std::fmt;

/// A parameter that policies may have. Each name means the same in every policy.
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
}

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Count(usize),
    /// A number.
    Real(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => count.fmt(f),
            Value::Real(real) => real.fmt(f),
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
            Kind::Count { least, odd } => {
                let count: usize = text.parse().map_err(|_| format!("{text:?} is no whole number"))?;
                if count < least {
                    return Err(format!("{count} is too small, at least {least} is needed"));
                }
                if odd && count.is_multiple_of(2) {
                    return Err(format!("{count} is even, an odd number is needed"));
                }
                Ok(Value::Count(count))
            }
            Kind::Real { least, most } => {
                let real: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
                if !(least..=most).contains(&real) {
                    return Err(format!("{text} is out of range, {least} to {most} is possible"));
                }
                Ok(Value::Real(real))
            }
        }
    }
}

/// Newest slots that a policy never evicts.
pub const RECENT_WINDOW: Parameter = Parameter {
    name: "recent-window",
    column: "recent_window",
    vector_key: "recentWindow",
    summary: "newest slots that are never evicted",
    kind: Kind::Count { least: 0, odd: false },
};

/// First positions that a policy never evicts.
pub const SINKS: Parameter = Parameter {
    name: "sinks",
    column: "sinks",
    vector_key: "sinks",
    summary: "first positions that are never evicted",
    kind: Kind::Count { least: 0, odd: false },
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
    summary: "neighbouring slots that a score is the maximum over (odd)",
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

/// Every parameter, in the order of report columns.
pub const PARAMETERS: &[&Parameter] = &[&RECENT_WINDOW, &SINKS, &OBS_WINDOW, &POOL_KERNEL, &PYRAMID_RATIO, &SEED];

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

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().copied()
    }
}
