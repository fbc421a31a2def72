//! Sums over the numbers of keys and values, in f64, channels ascending.

/// The sum of products.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + f64::from(*a) * f64::from(*b))
}

/// The sum of sizes.
pub(super) fn l1(numbers: &[f32]) -> f64 {
    numbers.iter().fold(0.0, |sum, number| sum + f64::from(*number).abs())
}

/// The root of the sum of squares.
pub(super) fn l2(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|number| number * number).sum::<f64>().sqrt()
}
