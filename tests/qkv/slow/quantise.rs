//! Caches in few bits: what is held of each key and value.

use super::file::Matrix;
use half::f16;

/// Consecutive numbers that share a scale and a zero.
pub const GROUP: usize = 32;

/// How keys are grouped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyGroups {
    /// Along the channels of each position.
    #[default]
    Position,
    /// Along 32 positions of each channel, once the last of them has come.
    Channel,
}

/// Bits of keys and of values; 16 leaves them as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    pub keys: u32,
    pub values: u32,
    pub key_groups: KeyGroups,
}

impl Bits {
    pub const FULL: Bits = Bits::both(16);

    pub const fn both(bits: u32) -> Bits {
        Bits { keys: bits, values: bits, key_groups: KeyGroups::Position }
    }
}

/// One group, as held; or why it cannot be.
pub fn group(numbers: &[f32], bits: u32) -> Result<Vec<f32>, String> {
    let low = numbers.iter().copied().fold(f32::INFINITY, f32::min);
    let high = numbers.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let most = ((1_u32 << bits) - 1) as f32;
    let scale = f16::from_f32((high - low) / most).to_f32();
    let zero = f16::from_f32(low).to_f32();
    if !scale.is_finite() || !zero.is_finite() {
        return Err(format!("scale {scale}, zero {zero}"));
    }
    let code = |x: f32| if scale == 0.0 { 0.0 } else { ((x - zero) / scale).round_ties_even().clamp(0.0, most) };
    Ok(numbers.iter().map(|x| code(*x) * scale + zero).collect())
}

fn by_position(matrix: &Matrix, bits: u32) -> Matrix {
    let row = |t: usize| matrix.row(t).chunks(GROUP).flat_map(|part| group(part, bits).expect("no overflow"));
    Matrix::new(matrix.width, (0..matrix.rows()).flat_map(row).collect())
}

/// Whole groups of positions only; the rest stays as it is.
fn by_channel(matrix: &Matrix, bits: u32) -> Matrix {
    let mut held = matrix.clone();
    for first in (0..matrix.rows() / GROUP).map(|index| index * GROUP) {
        for channel in 0..matrix.width {
            let at = |t: usize| (first + t) * matrix.width + channel;
            let column: Vec<f32> = (0..GROUP).map(|t| matrix.numbers[at(t)]).collect();
            let column = group(&column, bits).expect("no overflow");
            (0..GROUP).for_each(|t| held.numbers[at(t)] = column[t]);
        }
    }
    held
}

/// Keys or values as a cache holds them.
#[derive(Clone)]
pub struct Held {
    full: Matrix,
    few: Matrix,
    groups: KeyGroups,
}

impl Held {
    pub fn new(matrix: &Matrix, bits: u32, groups: KeyGroups) -> Held {
        let few = match (bits, groups) {
            (16, _) => matrix.clone(),
            (_, KeyGroups::Position) => by_position(matrix, bits),
            (_, KeyGroups::Channel) => by_channel(matrix, bits),
        };
        Held { full: matrix.clone(), few, groups }
    }

    pub fn keys(keys: &[Matrix], bits: Bits) -> Vec<Held> {
        keys.iter().map(|keys| Held::new(keys, bits.keys, bits.key_groups)).collect()
    }

    /// What row `t` reads of position `j`.
    pub fn row(&self, j: usize, t: usize) -> &[f32] {
        let finished = GROUP * ((t + 1) / GROUP);
        match self.groups {
            KeyGroups::Channel if j >= finished => self.full.row(j),
            _ => self.few.row(j),
        }
    }
}

/// Values as held: by position always.
pub fn values(values: &[Matrix], bits: Bits) -> Vec<Matrix> {
    values.iter().map(|values| Held::new(values, bits.values, KeyGroups::Position).few).collect()
}

/// Bytes of `n` numbers of one position.
pub fn row_bytes(n: usize, bits: u32) -> usize {
    match bits {
        16 => 2 * n,
        _ => (n * bits as usize).div_ceil(8) + 4 * n.div_ceil(GROUP),
    }
}

/// Bytes of a kept position of one KV head.
pub fn token_bytes(d: usize, dv: usize, bits: Bits) -> usize {
    row_bytes(d, bits.keys) + row_bytes(dv, bits.values)
}
