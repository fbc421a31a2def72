//! Square arrays in a safetensors file that is no native trace: from its tensors to arrays.

use super::raw::{RawHeader, RawTensor};
use crate::error::{Error, Result};
use crate::trace::Source;
use crate::trace::options::ReadOptions;
use crate::trace::square::{Array, CellType, Cells, Dump, open as open_square};
use crate::trace::storage::Storage;
use safetensors::tensor::Dtype;
use std::sync::Arc;

/// Whether the file holds square arrays and does not claim to be a native trace.
pub(super) fn is_square(header: &RawHeader) -> bool {
    !header.metadata.contains_key("kvsim") && header.tensors.iter().any(|tensor| tensor.shape.len() >= 2)
}

/// Opens the square arrays of a file.
///
/// # Errors
/// When they are no floats, or no attention.
pub(super) fn open(header: RawHeader, options: &ReadOptions) -> Result<Box<dyn Source>> {
    let content = Storage::File(header.file);
    let storage = Arc::new(content.clone());
    let (left_out, kept): (Vec<_>, Vec<_>) = header.tensors.into_iter().partition(is_no_attention);
    let array = |tensor| array(tensor, &storage, &header.name);
    let arrays = kept.into_iter().map(array).collect::<Result<Vec<_>>>()?;
    let notes: Vec<String> = left_out.iter().map(note).collect();
    if let Some(note) = notes.first().filter(|_| arrays.is_empty()) {
        return Err(Error::data(&header.name, format!("holds no attention: {note}")));
    }
    let dump = Dump { file: header.name, format: "safetensors", content, arrays, metadata: header.metadata, notes };
    open_square(dump, options)
}

/// Whether a tensor can only be a companion of the attention: token numbers, a mask.
fn is_no_attention(tensor: &RawTensor) -> bool {
    use Dtype::{BOOL, I8, I16, I32, I64, U8, U16, U32, U64};
    tensor.shape.len() < 2 || matches!(tensor.dtype, BOOL | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

fn note(tensor: &RawTensor) -> String {
    let RawTensor { name, dtype, shape, .. } = tensor;
    format!("array {name:?} is left out: {dtype:?} of shape {shape:?} is no attention")
}

fn array(tensor: RawTensor, storage: &Arc<Storage>, file: &str) -> Result<Array> {
    let place = || format!("{file}: array {:?}", tensor.name);
    let cells = cells(tensor.dtype).map_err(|problem| Error::data(place(), problem))?;
    // The crate has checked the sizes against the bytes, but a size of zero excuses all others.
    if Array::bytes(&tensor.shape, cells).is_none() {
        return Err(Error::data(place(), format!("shape {:?} is more than any file can hold", tensor.shape)));
    }
    let RawTensor { name, shape, start, .. } = tensor;
    Ok(Array { name, shape, cells, fortran: false, storage: Arc::clone(storage), start })
}

fn cells(dtype: Dtype) -> Result<Cells, String> {
    let cell = match dtype {
        Dtype::F16 => CellType::F16,
        Dtype::BF16 => CellType::Bf16,
        Dtype::F32 => CellType::F32,
        Dtype::F64 => CellType::F64,
        other => return Err(format!("dtype {other:?}, must be F16, BF16, F32 or F64")),
    };
    Ok(Cells::little_endian(cell))
}
