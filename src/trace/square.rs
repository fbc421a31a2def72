//! Square arrays: attention as runtimes dump it, a row of columns for each token, whatever the file.
//!
//! A container (npy, npz, safetensors) says which [`Array`]s it holds; everything after that is here
//! and the same for all: [`layout`] finds the streams in a shape, [`names`] the layers, [`positions`]
//! what their rows and columns stand for, [`rule`] cuts a row down to the positions that exist, and
//! [`probe`] refuses what is no attention. Rows are streamed; [`row_order`] rewrites what cannot be.

mod array;
mod assemble;
mod cells;
mod frame;
mod layout;
mod names;
mod oddity;
mod padding;
mod positions;
mod probe;
mod read;
mod report;
mod row_order;
mod rule;
mod self_kind;
mod source;

pub(in crate::trace) use array::Array;
pub(in crate::trace) use assemble::{Dump, open};
pub(in crate::trace) use cells::{CellType, Cells};
