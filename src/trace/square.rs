//! Square arrays: attention as runtimes dump it, a row of columns for each token, whatever the file.
//!
//! A container (npy, npz, safetensors) says which [`Array`]s it holds; everything after that is here
//! and the same for all: [`choose`] finds the arrays that are attention, [`layout`] the streams in a
//! shape, [`names`] layers and heads, [`steps`] the order of a generation's arrays, [`positions`] what
//! rows and columns stand for; [`rule`] cuts a row down to the positions that exist, and [`probe`]
//! names what is not attention. Rows are streamed; [`row_order`] rewrites what cannot be.

mod array;
mod assemble;
mod cells;
mod choose;
mod contradicted;
mod dump;
mod find;
mod frame;
mod layout;
mod names;
mod oddity;
mod padding;
mod place;
mod positions;
mod probe;
mod read;
mod report;
mod row_order;
mod rule;
mod self_kind;
mod source;
mod steps;
mod stream;

pub(in crate::trace) use array::Array;
pub(in crate::trace) use assemble::open;
pub(in crate::trace) use cells::{CellType, Cells};
pub(in crate::trace) use dump::{Dump, LeftOut};
