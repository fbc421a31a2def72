//! A slow, obvious replay of recorded queries, keys and values, written to be the judge of the fast one.
//!
//! It shares no code with the crate. Everything is f64 over the stored numbers, a plain list, or a full sort.
//!
//! - [`file`]: a trace as plain matrices, from a safetensors file or made by hand
//! - [`attention`]: logits, rows and outputs
//! - [`quantise`]: caches in few bits
//! - [`cache`], [`ranks`]: a kept set under a policy, and what policies rank by
//! - [`replay`]: a layer's caches through one lane, every step kept
//! - [`figures`]: what is reported of that
//! - [`loss`]: the predicted loss, from gradients
//! - [`pages`]: blocks of memory that kept sets occupy

// A reference says more than any one test asks for.
#![allow(dead_code)]

pub mod attention;
pub mod cache;
pub mod figures;
pub mod file;
pub mod loss;
pub mod pages;
pub mod quantise;
pub mod ranks;
pub mod replay;
