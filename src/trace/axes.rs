//! What the indices of an array count, as a user writes it: `layer,head,query,key`. Knows no shapes.

use std::fmt;
use std::str::FromStr;

/// What an index of an array counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AxisName {
    /// Layers of the model.
    Layer,
    /// Sequences; the index is that of the one that is read, where there are several.
    Batch(Option<usize>),
    /// Query heads of a layer.
    Head,
    /// Decode steps, each with a row of its own.
    Step,
    /// Tokens that attend: the rows.
    Query,
    /// Tokens that are attended to: the columns, always the last index.
    Key,
}

/// The meaning of every index of an array, in order; made from text such as `layer,head,query,key`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axes(Vec<AxisName>);

impl Axes {
    /// The axes in order.
    pub fn names(&self) -> &[AxisName] {
        &self.0
    }
}

impl AxisName {
    fn parse(text: &str) -> Result<AxisName, String> {
        match text {
            "layer" => Ok(AxisName::Layer),
            "batch" => Ok(AxisName::Batch(None)),
            "head" => Ok(AxisName::Head),
            "step" => Ok(AxisName::Step),
            "query" => Ok(AxisName::Query),
            "key" => Ok(AxisName::Key),
            _ => match text.strip_prefix("batch=").map(str::parse) {
                Some(Ok(index)) => Ok(AxisName::Batch(Some(index))),
                _ => Err(format!(
                    "{text:?} is not an axis: write layer, batch (or batch=0 for the first of several), head, step, \
                     query or key, in the order of the array's indices"
                )),
            },
        }
    }

    fn is_like(self, other: AxisName) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl FromStr for Axes {
    type Err = String;

    /// Reads names between commas; the last is `key`, and one of the others `query` or `step`.
    fn from_str(text: &str) -> Result<Axes, String> {
        let names: Vec<AxisName> =
            text.split(',').map(|name| AxisName::parse(name.trim())).collect::<Result<_, _>>()?;
        for (at, name) in names.iter().enumerate() {
            if names[..at].iter().any(|other| other.is_like(*name)) {
                return Err(format!("{name} is there twice: each axis has a name of its own"));
            }
        }
        if names.last() != Some(&AxisName::Key) {
            return Err("the last axis must be key: save the array with its keys last".to_owned());
        }
        if !names.iter().any(|name| matches!(name, AxisName::Query | AxisName::Step)) {
            return Err("no axis is query: the rows are missing".to_owned());
        }
        Ok(Axes(names))
    }
}

impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(AxisName::to_string).collect();
        f.write_str(&names.join(","))
    }
}

impl fmt::Display for AxisName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisName::Layer => f.write_str("layer"),
            AxisName::Batch(None) => f.write_str("batch"),
            AxisName::Batch(Some(index)) => write!(f, "batch={index}"),
            AxisName::Head => f.write_str("head"),
            AxisName::Step => f.write_str("step"),
            AxisName::Query => f.write_str("query"),
            AxisName::Key => f.write_str("key"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_read_in_order() {
        let axes: Axes = "layer, batch=1,head,query,key".parse().expect("sound");
        assert_eq!(axes.to_string(), "layer,batch=1,head,query,key");
        assert_eq!(axes.names()[1], AxisName::Batch(Some(1)));
    }

    #[test]
    fn axes_that_leave_something_open_are_refused() {
        let refused = |text: &str| text.parse::<Axes>().expect_err("refused");
        assert!(refused("layers,head,query,key").contains("\"layers\" is not an axis"));
        assert!(refused("batch=x,query,key").contains("\"batch=x\" is not an axis"));
        assert!(refused("batch=1,batch,query,key").contains("twice"));
        assert!(refused("head,key,query").contains("last axis must be key"));
        assert!(refused("layer,head,key").contains("no axis is query"));
        assert!(refused("").contains("is not an axis"));
    }
}
