//! The random numbers, and the canonical trace that is made with them.

/// xoshiro128** (Blackman and Vigna), its four words taken from splitmix32 of the seed.
pub struct Generator {
    words: [u32; 4],
}

impl Generator {
    /// The generator of `seed`.
    pub fn seeded(seed: u32) -> Generator {
        let mut state = seed;
        Generator { words: [0; 4].map(|_: u32| splitmix32(&mut state)) }
    }

    /// The next 32 bits.
    pub fn draw(&mut self) -> u32 {
        let drawn = self.words[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = self.words[1] << 9;
        self.words[2] ^= self.words[0];
        self.words[3] ^= self.words[1];
        self.words[1] ^= self.words[2];
        self.words[0] ^= self.words[3];
        self.words[2] ^= shifted;
        self.words[3] = self.words[3].rotate_left(11);
        drawn
    }

    /// A number below `bound`, each equally likely: draws that would favour the low ones are thrown
    /// away.
    pub fn below(&mut self, bound: u32) -> u32 {
        let unfair = ((1_u64 << 32) - u64::from(bound)) % u64::from(bound);
        loop {
            let drawn = self.draw();
            if u64::from(drawn) >= unfair {
                return drawn % bound;
            }
        }
    }
}

fn splitmix32(state: &mut u32) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x21f0_aaad);
    mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x735a_2d97);
    mixed ^ (mixed >> 15)
}

/// Rows 1, 2, ... of the canonical trace `decode-4096`, as many as asked for (4095 are all).
pub fn decode_4096(row_count: usize) -> Vec<Vec<f32>> {
    let mut generator = Generator::seeded(7);
    let mut heavy = Vec::new();
    let mut rows = Vec::new();
    for step in 1..=row_count {
        if step == 128 || (step > 128 && step % 512 == 0) {
            heavy = draw_heavy_hitters(&mut generator, step);
        }
        rows.push(row_of(step, &heavy));
    }
    rows
}

fn draw_heavy_hitters(generator: &mut Generator, step: usize) -> Vec<usize> {
    let mut heavy = Vec::new();
    while heavy.len() < 32 {
        let position = generator.below(step as u32 - 68) as usize + 4;
        if !heavy.contains(&position) {
            heavy.push(position);
        }
    }
    heavy
}

fn row_of(step: usize, heavy: &[usize]) -> Vec<f32> {
    let mut weights = vec![0.0_f64; step];
    add_sinks(&mut weights);
    add_local_band(&mut weights);
    add_heavy_hitters(&mut weights, heavy);
    for weight in &mut weights {
        *weight += 0.05 / step as f64;
    }
    let total = sum(&weights);
    weights.iter().map(|weight| (weight / total) as f32).collect()
}

fn add_sinks(weights: &mut [f64]) {
    let sinks = [0.06, 0.045, 0.03, 0.015];
    let present = weights.len().min(4);
    let total = sum(&sinks[..present]);
    for position in 0..present {
        weights[position] += sinks[position] * 0.15 / total;
    }
}

fn add_local_band(weights: &mut [f64]) {
    let step = weights.len();
    let mass = if step < 128 { 0.55 + 0.25 } else { 0.55 };
    let heights: Vec<f64> = (1..=step.min(64)).map(|distance| (65 - distance) as f64).collect();
    let total = sum(&heights);
    for (index, height) in heights.iter().enumerate() {
        let distance = index + 1;
        weights[step - distance] += height * mass / total;
    }
}

/// `heavy` is empty before the first draw.
fn add_heavy_hitters(weights: &mut [f64], heavy: &[usize]) {
    let harmonic: Vec<f64> = (0..heavy.len()).map(|rank| 1.0 / (rank + 1) as f64).collect();
    let total = sum(&harmonic);
    for (rank, &position) in heavy.iter().enumerate() {
        weights[position] += (0.25 / (rank + 1) as f64) / total;
    }
}

fn sum(numbers: &[f64]) -> f64 {
    let mut total = 0.0;
    for number in numbers {
        total += number;
    }
    total
}

/// FNV-1a 32 over the little-endian bytes of the rows, one after the other.
pub fn fnv1a_of_rows(rows: &[Vec<f32>]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for byte in rows.iter().flatten().flat_map(|weight| weight.to_le_bytes()) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash
}
