//! The columns of a meter: sums, which merge exactly, and figures, which are read from sums.

/// A value that is counted or added up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// A whole number.
    Count(u64),
    /// A number.
    Real(f64),
}

impl Number {
    /// The value as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Count(count) => count as f64,
            Number::Real(real) => real,
        }
    }

    fn plus(self, other: Number) -> Number {
        match (self, other) {
            (Number::Count(a), Number::Count(b)) => Number::Count(a + b),
            (a, b) => Number::Real(a.as_f64() + b.as_f64()),
        }
    }
}

/// How the values of two caches, or of two runs over different traces, become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merge {
    /// They are added.
    Add,
    /// The least is kept.
    Least,
    /// The greatest is kept.
    Most,
}

impl Merge {
    /// What becomes of two values, both of the same kind.
    pub fn of(self, a: Number, b: Number) -> Number {
        let first = match self {
            Merge::Add => return a.plus(b),
            Merge::Least => a.as_f64() <= b.as_f64(),
            Merge::Most => a.as_f64() >= b.as_f64(),
        };
        if first { a } else { b }
    }
}

/// Whether a sum holds whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whole numbers.
    Count,
    /// Floats, added in an order that does not depend on the machine.
    Real,
}

/// Which direction of a figure is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// It describes, without better or worse.
    Neither,
}

/// A sum or an extreme that a meter keeps: what results merge from.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Name in reports.
    pub name: &'static str,
    /// What it counts in.
    pub unit: &'static str,
    /// Whole numbers or floats.
    pub kind: Kind,
    /// How two values become one.
    pub merge: Merge,
    /// One line.
    pub meaning: &'static str,
}

/// How a figure is read from sums, by their names.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// The first over the sum of the others; blank where that is 0.
    Ratio(&'static str, &'static [&'static str]),
    /// A sum as it stands.
    Value(&'static str),
}

/// A figure that people read.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name in reports.
    pub name: &'static str,
    /// What it counts in.
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// How it is read from sums.
    pub reading: Reading,
    /// One line.
    pub meaning: &'static str,
}

impl Sum {
    /// A count that adds up.
    pub const fn count(name: &'static str, unit: &'static str, meaning: &'static str) -> Sum {
        Sum { name, unit, kind: Kind::Count, merge: Merge::Add, meaning }
    }

    /// A float that adds up.
    pub const fn real(name: &'static str, unit: &'static str, meaning: &'static str) -> Sum {
        Sum { name, unit, kind: Kind::Real, merge: Merge::Add, meaning }
    }

    /// The same, merged in another way.
    pub const fn merged_by(self, merge: Merge) -> Sum {
        Sum { merge, ..self }
    }
}

impl Figure {
    /// A figure that describes.
    pub const fn new(name: &'static str, unit: &'static str, reading: Reading, meaning: &'static str) -> Figure {
        Figure { name, unit, better: Better::Neither, reading, meaning }
    }

    /// A figure of which more is better.
    pub const fn higher_is_better(self) -> Figure {
        Figure { better: Better::Higher, ..self }
    }

    /// A figure of which less is better.
    pub const fn lower_is_better(self) -> Figure {
        Figure { better: Better::Lower, ..self }
    }
}
