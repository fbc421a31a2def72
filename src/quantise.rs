//! Caches in few bits: what is held of keys and values.
//!
//! Every group of numbers has a scale and a zero in f16; a number is held as a whole number of scales above the zero.
//! Only operations that IEEE 754 defines to the bit: what is held is the same everywhere.

use crate::tensors::Matrix;
use half::f16;
use std::fmt;
use std::str::FromStr;

/// Consecutive numbers that share a scale and a zero.
pub const GROUP: usize = 32;

/// Bits of keys and of values; 16 leaves them as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KvBits {
    /// Of each number of a key.
    pub keys: u32,
    /// Of each number of a value.
    pub values: u32,
    /// How keys are grouped.
    pub key_groups: KeyGroups,
}

/// How keys are grouped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum KeyGroups {
    /// Along the channels of each position, as soon as it is there.
    #[default]
    Position,
    /// Along 32 positions of each channel, once the last of them has come; in full until then.
    Channel,
}

impl crate::word::Word for KeyGroups {
    const WORDS: &'static [(KeyGroups, &'static str, &'static str)] = &[
        (KeyGroups::Position, "position", "along the channels of each position"),
        (KeyGroups::Channel, "channel", "along 32 positions of each channel, once the last of them has come"),
    ];
}

impl FromStr for KvBits {
    type Err = String;

    /// Reads `4`, or `8/4`: keys and values apart.
    fn from_str(text: &str) -> Result<KvBits, String> {
        let bits = |text: &str| text.parse().ok().filter(|bits| [16, 8, 4, 2].contains(bits));
        let (keys, values) = text.split_once('/').unwrap_or((text, text));
        let both = bits(keys).zip(bits(values));
        let (keys, values) = both.ok_or_else(|| format!("{text:?} is none of 16, 8, 4, 2, or two of these as 8/4"))?;
        Ok(KvBits { keys, values, key_groups: KeyGroups::Position })
    }
}

impl fmt::Display for KvBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            KvBits { keys, values, .. } if keys == values => write!(f, "{keys}"),
            KvBits { keys, values, .. } => write!(f, "{keys}/{values}"),
        }
    }
}

impl KvBits {
    /// As stored.
    pub const FULL: KvBits = KvBits { keys: 16, values: 16, key_groups: KeyGroups::Position };

    /// Whether anything is held in fewer bits than it is stored in.
    pub fn are_few(&self) -> bool {
        self.keys != 16 || self.values != 16
    }

    /// Bytes of a kept position whose key has `width` channels and whose value `value_width`; `None` where they depend
    /// on what else is kept.
    pub fn token_bytes(&self, width: usize, value_width: usize) -> Option<usize> {
        let settled = self.keys == 16 || self.key_groups == KeyGroups::Position;
        settled.then(|| row_bytes(width, self.keys) + row_bytes(value_width, self.values))
    }
}

/// Bytes of `count` numbers of one position.
fn row_bytes(count: usize, bits: u32) -> usize {
    if bits == 16 { 2 * count } else { (count * bits as usize).div_ceil(8) + 4 * count.div_ceil(GROUP) }
}

/// Every position by itself, in groups of consecutive channels.
///
/// # Errors
/// Says which group cannot be held: its scale or zero is beyond f16.
pub fn by_position(matrix: &Matrix, bits: u32) -> Result<Matrix, String> {
    let mut held = matrix.numbers().to_vec();
    for (position, row) in held.chunks_exact_mut(matrix.width()).enumerate() {
        for (index, group) in row.chunks_mut(GROUP).enumerate() {
            let place = || format!("position {position}, channels from {}", index * GROUP);
            quantise(group, bits).map_err(|problem| format!("{}: {problem}", place()))?;
        }
    }
    Ok(Matrix::new(matrix.width(), held))
}

/// Every channel by itself, in whole groups of positions; what is left at the end stays as it is.
///
/// # Errors
/// As [`by_position`].
pub fn by_channel(matrix: &Matrix, bits: u32) -> Result<Matrix, String> {
    let width = matrix.width();
    let mut held = matrix.numbers().to_vec();
    for (index, rows) in held.chunks_exact_mut(width * GROUP).enumerate() {
        for channel in 0..width {
            let mut group: Vec<f32> = rows.iter().skip(channel).step_by(width).copied().collect();
            let place = || format!("channel {channel}, positions from {}", index * GROUP);
            quantise(&mut group, bits).map_err(|problem| format!("{}: {problem}", place()))?;
            rows.iter_mut().skip(channel).step_by(width).zip(group).for_each(|(number, held)| *number = held);
        }
    }
    Ok(Matrix::new(width, held))
}

/// Replaces a group by what is held of it.
fn quantise(group: &mut [f32], bits: u32) -> Result<(), String> {
    let low = group.iter().copied().fold(f32::INFINITY, f32::min);
    let high = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let most = ((1_u32 << bits) - 1) as f32;
    let scale = f16::from_f32((high - low) / most).to_f32();
    let zero = f16::from_f32(low).to_f32();
    if !scale.is_finite() || !zero.is_finite() {
        return Err(format!("numbers from {low} to {high} have a scale or a zero that is beyond f16"));
    }
    let code = |x: f32| if scale == 0.0 { 0.0 } else { ((x - zero) / scale).round_ties_even().clamp(0.0, most) };
    group.iter_mut().for_each(|number| *number = code(*number) * scale + zero);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(numbers: &[f32], bits: u32) -> Vec<f32> {
        let mut group = numbers.to_vec();
        quantise(&mut group, bits).expect("within f16");
        group
    }

    #[test]
    fn groups_are_held_as_whole_numbers_of_scales() {
        assert_eq!(held(&[0.0, 0.5, 1.5, 2.5, 15.0], 4), [0.0, 0.0, 2.0, 2.0, 15.0], "ties to even");
        let steps: Vec<f32> = (0..32).map(|step| step as f32).collect();
        assert_eq!(held(&steps, 4)[31], 30.996_094);
        assert_eq!(held(&steps, 2)[31], 31.007_813);
        assert_eq!(held(&[0.1; 32], 4), [0.099_975_586; 32]);
        assert!(quantise(&mut [0.0, 1e6], 2).is_err());
    }

    #[test]
    fn bits_are_read_and_weighed() {
        let bytes = ["16", "8", "4", "2"].map(|text| text.parse::<KvBits>().expect("sound").token_bytes(64, 64));
        assert_eq!(bytes, [256, 144, 80, 48].map(Some));
        assert_eq!("8/4".parse::<KvBits>().expect("sound").to_string(), "8/4");
        assert!("3".parse::<KvBits>().is_err());
    }
}
