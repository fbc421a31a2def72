//! From the names of arrays to layers: the number in a name, where there is just one that can be meant.

use super::layout::Layout;
use crate::trace::{Head, StreamLabel};

/// The prefix of native tensors, which name layer and head.
const NATIVE: &str = "attention.";

/// What the name of an array says of its layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LayerName {
    /// The layer's number.
    Number(u32),
    /// No number.
    Nothing,
    /// Several numbers, and none behind the word "layer".
    Unclear,
}

/// The layer that a name tells: the number behind "layer", or the only number.
fn layer(name: &str) -> LayerName {
    if let Some(number) = behind_layer(name) {
        return LayerName::Number(number);
    }
    let mut numbers = numbers(name);
    match (numbers.next(), numbers.next()) {
        (None, _) => LayerName::Nothing,
        (Some(only), None) => only.parse().map_or(LayerName::Unclear, LayerName::Number),
        _ => LayerName::Unclear,
    }
}

/// Layer and head of an array named as native tensors are.
fn native(name: &str) -> Option<StreamLabel> {
    name.strip_prefix(NATIVE).and_then(StreamLabel::parse)
}

/// The label of the first stream in an array; `alone` says that the trace has no other array.
///
/// # Errors
/// When there are several arrays and the name does not tell the layer of this one.
pub(super) fn first_label(name: &str, layout: &Layout, alone: bool) -> Result<StreamLabel, String> {
    let layers = layout.layers.len;
    if let Some(label) = native(name).filter(|_| layers * layout.heads.len == 1) {
        return Ok(label);
    }
    let layer = match layer(name) {
        LayerName::Number(number) if layers == 1 => number,
        _ if alone => 0,
        LayerName::Unclear => return Err("the name holds several numbers: name arrays by layer, as layer.0".to_owned()),
        _ => return Err("the name tells no layer: name arrays by layer, as layer.0".to_owned()),
    };
    Ok(StreamLabel { layer, head: Head::Number(0) })
}

fn behind_layer(name: &str) -> Option<u32> {
    let lower = name.to_ascii_lowercase();
    let (_, rest) = lower.split_once("layer")?;
    let rest = rest.strip_prefix('s').unwrap_or(rest).trim_start_matches(['.', '_', '-', ' ', '/', '[']);
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn numbers(name: &str) -> impl Iterator<Item = &str> {
    name.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_behind_layer_or_the_only_number_is_the_layer() {
        let cases = [
            ("model.layers.15.self_attn.0", 15),
            ("layer_3_fp16", 3),
            ("Layer7", 7),
            ("arr_12", 12),
            ("blocks.3.attn.hook_pattern", 3),
            ("007", 7),
        ];
        for (name, number) in cases {
            assert_eq!(layer(name), LayerName::Number(number), "{name}");
        }
    }

    #[test]
    fn a_name_without_a_clear_number_tells_nothing() {
        assert_eq!(layer("attention"), LayerName::Nothing);
        assert_eq!(layer(""), LayerName::Nothing);
        assert_eq!(layer("a1.b2"), LayerName::Unclear);
        assert_eq!(layer("99999999999"), LayerName::Unclear);
    }

    #[test]
    fn a_native_name_tells_the_head_too() {
        let found = native("attention.3.mean").expect("native");
        assert_eq!(found.to_string(), "3.mean");
        assert_eq!(native("attention.3"), None);
        assert_eq!(native("weights.3.1"), None);
    }
}
