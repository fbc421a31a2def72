//! What a tensor of a native file is, by its name: `query.{layer}.{head}`, `output.{layer}`, ...

/// What a tensor is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Part {
    Query,
    Key,
    Value,
    /// The projection behind the heads.
    Output,
    /// The gain of a norm behind that projection.
    OutputNorm,
    /// Lengths of the residual stream as it enters the layer.
    ResidualNorm,
    /// Logits of learned sinks.
    Sink,
    /// Gradients at the outputs of heads.
    Gradient,
}

impl Part {
    const ALL: [Part; 8] = [
        Part::Query,
        Part::Key,
        Part::Value,
        Part::Output,
        Part::OutputNorm,
        Part::ResidualNorm,
        Part::Sink,
        Part::Gradient,
    ];

    /// The word in names.
    pub fn word(self) -> &'static str {
        match self {
            Part::Query => "query",
            Part::Key => "key",
            Part::Value => "value",
            Part::Output => "output",
            Part::OutputNorm => "output_norm",
            Part::ResidualNorm => "residual_norm",
            Part::Sink => "sink",
            Part::Gradient => "gradient",
        }
    }
}

/// The name of a tensor that belongs to such a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TensorName {
    pub part: Part,
    pub layer: u32,
    /// `None` where the tensor holds all heads, or is of none.
    pub head: Option<usize>,
}

impl TensorName {
    /// Reads a name; `None` where it is not one of these.
    pub fn parse(text: &str) -> Option<TensorName> {
        let (word, numbers) = text.split_once('.')?;
        let part = Part::ALL.into_iter().find(|part| part.word() == word)?;
        let (layer, head) = match numbers.split_once('.') {
            None => (numbers, None),
            Some((layer, head)) => (layer, Some(head.parse().ok()?)),
        };
        Some(TensorName { part, layer: layer.parse().ok()?, head })
    }
}

/// Whether metadata is about products and what stands behind heads: nothing that rows of attention keep.
pub(in crate::trace) fn is_of_products(key: &str) -> bool {
    let of_layers = ["scale", "softcap"]
        .iter()
        .any(|name| key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')));
    of_layers || ["kind", "output_norm_epsilon"].contains(&key) || key.starts_with("gradient_")
}

/// Words for what is added to logits or multiplied into them, which a product of queries and keys does not hold.
const BEYOND_THE_PRODUCT: &[&str] = &["bias", "alibi", "mask", "temperature"];

/// The word in a name of metadata or of a tensor that says that logits are more than products.
pub(super) fn beyond_the_product(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let words = || name.split(|letter: char| !letter.is_ascii_alphabetic());
    BEYOND_THE_PRODUCT.iter().copied().find(|beyond| words().any(|word| word == *beyond))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_part_layer_and_head() {
        let name = |part, layer, head| Some(TensorName { part, layer, head });
        assert_eq!(TensorName::parse("query.3.11"), name(Part::Query, 3, Some(11)));
        assert_eq!(TensorName::parse("output_norm.0"), name(Part::OutputNorm, 0, None));
        for other in ["query", "query.", "query.x.0", "query.3.", "query.3.0.1", "queries.3.0", "attention.3.0"] {
            assert_eq!(TensorName::parse(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_beyond_a_product_is_found_by_whole_words() {
        for name in ["attention_bias", "bias.3", "alibi_slopes", "query.3.bias", "ALiBi"] {
            assert!(beyond_the_product(name).is_some(), "{name}");
        }
        for name in ["query_heads", "unbiased", "softcap", "model"] {
            assert_eq!(beyond_the_product(name), None, "{name}");
        }
    }
}
