//! The native format: safetensors, one packed triangle `attention.{layer}.{head}` per stream.
//!
//! Reads and checks the header (with the `safetensors` crate), then streams rows; writes native
//! files. The tensor data is never held whole. A file of other tensors is handed to the square arrays.

mod entries;
mod header;
mod lists;
mod raw;
mod read;
mod square;
mod write;

pub(super) use raw::{RawHeader, RawTensor, read_header};
pub use read::open;
pub(super) use read::{Contents, contents, open_stream};
pub use write::{StoredType, WriteError, write, written_bytes};
