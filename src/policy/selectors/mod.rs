//! The selectors of the table, each with its entry.

pub mod fixed_threshold;
pub mod sift_attention;
pub mod top_k;
pub mod top_p;
