//! From the name of an array to layer, head and step: each number counts what the word before it says.

use super::layout::Layout;
use crate::trace::{Head, StreamLabel};

/// The prefix of native tensors, which name layer and head.
const NATIVE: &str = "attention.";

/// Words before a number that is neither layer, head nor step: number types and versions.
const NOISE: &[&str] = &["f", "fp", "bf", "float", "bfloat", "int", "v", "version", "of"];
/// Words before the number of a decode step.
const STEPS: &[&str] = &["step", "steps", "token", "tok", "pos", "position", "iter"];
/// Words before the number of a layer, besides those that end with "layer" or "layers".
const LAYERS: &[&str] = &["l", "block", "blocks", "blk"];
/// Words before the number of one of several sequences.
const SEQUENCES: &[&str] = &["prompt", "prompts", "sample", "batch", "example", "sequence", "seq", "request"];

/// What the numbers in a name count.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Name {
    layer: Option<u32>,
    /// Whether the layer's number follows a bare `h`, as in GPT-2, which elsewhere is a head.
    by_h: bool,
    head: Option<u32>,
    step: Option<u32>,
    /// Whether a number counts sequences.
    is_sequence: bool,
    /// Numbers of which no word says what they count.
    others: Vec<u32>,
}

/// A word, and the number that follows it.
struct Numbered {
    word: String,
    number: u32,
}

/// The label of an array's first stream, and what was assumed to find it.
pub(super) struct First {
    pub label: StreamLabel,
    pub note: Option<String>,
}

impl Name {
    /// Reads a name.
    pub(super) fn parse(name: &str) -> Name {
        let mut found = Name::default();
        let numbered = numbered(name);
        let says_layer = numbered.iter().any(|Numbered { word, .. }| is_layer(word));
        let layers = numbered.iter().filter(|Numbered { word, .. }| is_layer(word) || word == "h" && !says_layer);
        // "block.3.layer.0": the layers within a block are parts of it.
        found.layer = layers.clone().find(|layer| layer.word.starts_with("bl")).or(layers.clone().next()).map(number);
        found.by_h = !says_layer && found.layer.is_some();
        for Numbered { word, number } in &numbered {
            match word.as_str() {
                word if is_layer(word) || word == "h" && !says_layer || NOISE.contains(&word) => {}
                word if word.ends_with("head") || word.ends_with("heads") || word == "h" => found.head = Some(*number),
                word if STEPS.contains(&word) => found.step = Some(*number),
                word => {
                    found.is_sequence |= SEQUENCES.contains(&word);
                    found.others.push(*number);
                }
            }
        }
        found
    }

    /// The number that orders the arrays of one generation, as far as names tell: that of a step, or the only
    /// number of a name that tells no layer.
    pub(super) fn step(&self) -> Option<u32> {
        let only = match self.others[..] {
            [only] if self.layer.is_none() && self.head.is_none() && !self.is_sequence => Some(only),
            _ => None,
        };
        self.step.or(only)
    }

    /// Whether a word says that arrays are steps.
    pub(super) fn says_step(&self) -> bool {
        self.step.is_some()
    }

    /// Layer and head as far as words tell them: what the steps of one stream have in common.
    pub(super) fn stream(&self) -> (Option<u32>, Option<u32>) {
        (self.layer, self.head)
    }
}

/// The name without what only orders steps, for finding the layer and head that steps have in common.
pub(super) fn without_step(name: &str) -> String {
    let parsed = Name::parse(name);
    match parsed.stream() {
        (None, None) => String::new(),
        (layer, head) => {
            let number = |word: &str, number: Option<u32>| number.map(|number| format!("{word}_{number}"));
            [number("layer", layer), number("head", head)].into_iter().flatten().collect::<Vec<_>>().join("_")
        }
    }
}

fn number(numbered: &Numbered) -> u32 {
    numbered.number
}

fn is_layer(word: &str) -> bool {
    word.ends_with("layer") || word.ends_with("layers") || LAYERS.contains(&word)
}

/// The numbers of a name, each with the word right before it; numbers too large to count anything are left out.
fn numbered(name: &str) -> Vec<Numbered> {
    let (mut found, mut word) = (Vec::new(), String::new());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_same = |letter: char| {
            (letter.is_alphabetic(), letter.is_ascii_digit()) == (first.is_alphabetic(), first.is_ascii_digit())
        };
        let end = rest.find(|letter| !is_same(letter)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if first.is_ascii_digit() {
            found.extend(run.parse().ok().map(|number| Numbered { word: std::mem::take(&mut word), number }));
        } else if first.is_alphabetic() {
            word = run.to_lowercase();
        }
        rest = after;
    }
    found
}

/// Layer and head of an array named as native tensors are.
fn native(name: &str) -> Option<StreamLabel> {
    name.strip_prefix(NATIVE).and_then(StreamLabel::parse)
}

/// The label of the first stream in an array; `alone` says that the trace has no other array.
///
/// # Errors
/// When there are several arrays and the name does not tell the layer of this one, or it tells a head of an
/// array that holds several.
pub(super) fn first_label(name: &str, layout: &Layout, alone: bool) -> Result<First, String> {
    let (layers, heads) = (layout.layers.len, layout.heads.len);
    if let Some(label) = native(name).filter(|_| layers * heads == 1) {
        return Ok(First { label, note: None });
    }
    let parsed = Name::parse(name);
    let (layer, note) = layer(name, &parsed, layers, alone)?;
    let by_h = || format!("the {layer} behind \"h\" in {name:?} is taken for the layer");
    let note = note.or((parsed.by_h && layers * heads == 1).then(by_h));
    let (head, head_note) = head(name, &parsed, heads)?;
    let label = StreamLabel { layer, head: Head::Number(head) };
    Ok(First { label, note: note.or(head_note) })
}

fn layer(name: &str, parsed: &Name, layers: usize, alone: bool) -> Result<(u32, Option<String>), String> {
    match (parsed.layer, &parsed.others[..]) {
        (Some(layer), _) if layers == 1 => Ok((layer, None)),
        (None, []) if layers == 1 && parsed.head.is_some() => Ok((0, None)),
        (None, [only]) if layers == 1 && !parsed.is_sequence => Ok((*only, None)),
        (None, [_, _, ..]) if layers == 1 && alone => {
            Ok((0, Some(format!("which number in {name:?} is the layer cannot be told: called layer 0"))))
        }
        _ if alone => Ok((0, None)),
        _ if layers > 1 => Err(format!("holds {layers} layers, and other arrays hold more")),
        _ if parsed.is_sequence => Err("the name counts sequences: a trace is one sequence".to_owned()),
        (None, [_, _, ..]) => Err("the name holds several numbers: name arrays by layer, as layer.0".to_owned()),
        _ => Err("the name tells no layer: name arrays by layer, as layer.0".to_owned()),
    }
}

fn head(name: &str, parsed: &Name, heads: usize) -> Result<(u32, Option<String>), String> {
    match (parsed.head, &parsed.others[..]) {
        (Some(head), _) if heads == 1 => Ok((head, None)),
        // "heads_12": how many there are.
        (Some(count), _) if heads > 1 && count as usize != heads => {
            Err(format!("the name tells head {count}, the array holds {heads} heads: name the layer alone"))
        }
        (None, [only]) if heads == 1 && parsed.layer.is_some() && parsed.step.is_none() => {
            let note = format!("the {only} in {name:?} is taken for the head");
            Ok((*only, (*only > 0).then_some(note)))
        }
        (None, [_, _, ..]) if heads == 1 && parsed.layer.is_some() => {
            Ok((0, Some(format!("which number in {name:?} is the head cannot be told: called head 0"))))
        }
        _ => Ok((0, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::square::layout::layout;

    fn label(name: &str, shape: &[usize], alone: bool) -> Result<String, String> {
        let layout = layout(shape, false, alone).expect("attention");
        first_label(name, &layout, alone).map(|first| first.label.to_string())
    }

    #[track_caller]
    fn assert_label(name: &str, shape: &[usize], expected: &str) {
        assert_eq!(label(name, shape, false).as_deref(), Ok(expected), "{name}");
    }

    #[test]
    fn the_number_behind_a_word_for_layers_or_the_only_number_is_the_layer() {
        for (name, expected) in [
            ("model.layers.15.self_attn.0", "15.0"),
            ("layer_3_fp16", "3.0"),
            ("Layer7", "7.0"),
            ("arr_12", "12.0"),
            ("blocks.3.attn.hook_pattern", "3.0"),
            ("encoder.block.3.layer.0.SelfAttention", "3.0"),
            ("transformer.h.4.attn", "4.0"),
            ("blk.9.kq_soft_max", "9.0"),
            ("kq_soft_max-11", "11.0"),
            ("007", "7.0"),
        ] {
            assert_label(name, &[3, 8, 8], expected);
        }
    }

    #[test]
    fn a_name_may_tell_the_head_too() {
        for (name, expected) in [
            ("layer_16_head_6", "16.6"),
            ("L16H6", "16.6"),
            ("l16.h6", "16.6"),
            ("blocks.16.attn.6", "16.6"),
            ("layer16/head06", "16.6"),
            ("transformer.h.16.attn.6", "16.6"),
            ("layer_16_6", "16.6"),
            ("head_3", "0.3"),
            ("attention.3.mean", "3.mean"),
        ] {
            assert_label(name, &[8, 8], expected);
        }
    }

    #[test]
    fn a_guess_is_said() {
        let layout = layout(&[8, 8], false, true).expect("attention");
        let note = |name| first_label(name, &layout, true).expect("named").note;
        assert!(note("blocks.16.attn.6").expect("a guess").contains("taken for the head"));
        assert!(note("run_2_7").expect("a guess").contains("cannot be told"));
        assert!(note("H6").expect("a guess").contains("taken for the layer"));
        assert_eq!(note("layer_16_head_6"), None);
    }

    #[test]
    fn names_that_cannot_be_told_are_refused() {
        let refused = |name: &str, shape: &[usize]| label(name, shape, false).expect_err(name);
        assert!(refused("attention", &[8, 8]).contains("tells no layer"));
        assert!(refused("a1.b2", &[8, 8]).contains("several numbers"));
        assert!(refused("99999999999", &[8, 8]).contains("tells no layer"));
        assert!(refused("prompt_0", &[8, 8]).contains("counts sequences"));
        assert!(refused("layer_0_head_3", &[2, 8, 8]).contains("tells head 3, the array holds 2"));
    }

    #[test]
    fn a_native_name_tells_the_head_too() {
        assert_eq!(native("attention.3.mean").expect("native").to_string(), "3.mean");
        assert_eq!(native("attention.3"), None);
        assert_eq!(native("weights.3.1"), None);
    }

    #[test]
    fn steps_are_told_by_a_word_or_the_only_number() {
        assert_eq!(Name::parse("step_3").step(), Some(3));
        assert_eq!(Name::parse("layer_2_step_3").step(), Some(3));
        assert_eq!(Name::parse("10").step(), Some(10));
        assert_eq!(Name::parse("layer_3").step(), None);
        assert_eq!(Name::parse("prompt_3").step(), None);
    }
}
