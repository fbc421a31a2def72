//! Selectors: they evict nothing and choose, for each row anew, which positions are read.
//!
//! What a selector saves is reading, not memory: every position stays held, and one that is passed over
//! now may be read in the next row. So selectors stand apart from policies: no budget, no kept set, one
//! choice for each query head, and the mean number of positions read (`mean_read`) where a policy has
//! the number held. They see the whole row, which a real selector can only estimate.

/// Chooses what is read of each row: always its heaviest positions, of equal ones the lower.
pub trait Selector: Send {
    /// A row of a prompt, which is read whole, of a query head of the cache.
    fn prepare(&mut self, head: usize, row: &[f32]) {
        let _ = (head, row);
    }

    /// How many positions of a row are read.
    fn read(&mut self, head: usize, row: &[f32]) -> usize;

    /// The law that a query head's choice follows, where one was fitted.
    fn law(&self, head: usize) -> Option<Law> {
        let _ = head;
        None
    }
}

/// A power law of thresholds: `exp(log_scale) x length ^ -exponent`.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct Law {
    /// The logarithm of the scale.
    pub log_scale: f64,
    /// The exponent.
    pub exponent: f64,
}

impl Law {
    /// A law with these numbers.
    pub fn new(log_scale: f64, exponent: f64) -> Law {
        Law { log_scale, exponent }
    }

    /// The threshold for a row of this length.
    pub fn threshold(self, length: usize) -> f64 {
        (self.log_scale - self.exponent * (length as f64).ln()).exp()
    }
}
