//! Traces of queries, keys and values: rows of attention are rebuilt as they are read.
//!
//! Of a file only the header is read at first. Opening a stream, which is a query head, reads the keys of its KV head
//! into memory, where the heads that share them find them too; queries are read as rows are asked for. A row costs a
//! product with every key before it, and no more memory than itself.
//!
//! - [`names`]: what a tensor is, by its name
//! - [`matrix`]: numbers of a tensor, read row by row and refused where they are not finite
//! - [`layer`]: the tensors of a layer; [`check`]: whether they fit together
//! - [`settings`]: what metadata says of scores: scale, soft cap, window
//! - [`native`], [`kvp`]: the two layouts of files
//! - [`source`], [`rows`]: streams, and the rows of one
//! - [`tensors`]: the numbers behind rows, for those who measure outputs
//! - [`inspect`]: what such a trace looks like
//!
//! The layout of the native file, and every rule, is in docs/formats.md.

mod check;
mod inspect;
mod kvp;
mod layer;
mod matrix;
mod names;
mod native;
mod rows;
mod settings;
mod source;
mod tensors;

pub(super) use kvp::{is_folder, open as open_folder};
pub(super) use names::is_of_products;
pub(super) use native::{is_qkv, open};

/// Names of the formats whose rows are rebuilt.
pub(super) const FORMATS: [&str; 2] = ["qkv", "kvp"];
