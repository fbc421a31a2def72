//! Square arrays in a safetensors file that is no native trace: from its tensors to arrays.

use super::raw::{RawHeader, RawTensor};
use crate::error::{Error, Result};
use crate::trace::square::{Array, CellType, Cells, Dump, LeftOut};
use crate::trace::storage::Storage;
use safetensors::tensor::Dtype;
use std::sync::Arc;

/// Whether the file holds square arrays and does not claim to be a native trace.
pub(super) fn is_square(header: &RawHeader) -> bool {
    !header.metadata.contains_key("kvsim") && header.tensors.iter().any(|tensor| tensor.shape.len() >= 2)
}

/// The square arrays of a file.
///
/// # Errors
/// When none of its tensors can be attention.
pub(super) fn dump(header: RawHeader) -> Result<Dump> {
    let RawHeader { name, metadata, tensors, file } = header;
    let content = vec![Storage::File(file)];
    let storage = Arc::new(content[0].clone());
    let mut dump = Dump { file: name, format: "safetensors", content, metadata, ..Dump::default() };
    for tensor in tensors {
        match cells(&tensor) {
            Ok(cells) => dump.arrays.push(array(tensor, cells, &storage, &dump.file)?),
            Err(why) => dump.left_out.push(LeftOut { name: tensor.name, why }),
        }
    }
    match dump.left_out.first().filter(|_| dump.arrays.is_empty()) {
        None => Ok(dump),
        Some(LeftOut { name, why }) => {
            Err(Error::data(&dump.file, format!("holds no attention: array {name:?} is left out: {why}")))
        }
    }
}

fn array(tensor: RawTensor, cells: Cells, storage: &Arc<Storage>, file: &str) -> Result<Array> {
    // The crate has checked the sizes against the bytes, but a size of zero excuses all others.
    if Array::bytes(&tensor.shape, cells).is_none() {
        let place = format!("{file}: array {:?}", tensor.name);
        return Err(Error::data(place, format!("shape {:?} is more than any file can hold", tensor.shape)));
    }
    let RawTensor { name, shape, start, .. } = tensor;
    Ok(Array { name, shape, cells, fortran: false, storage: Arc::clone(storage), start })
}

/// How the weights of a tensor are stored, or why it can only be a companion of the attention: token numbers, a
/// mask.
fn cells(tensor: &RawTensor) -> Result<Cells, String> {
    let RawTensor { dtype, shape, .. } = tensor;
    let cell = match dtype {
        _ if shape.len() < 2 => return Err(format!("{dtype:?} of shape {shape:?} is not attention")),
        Dtype::F16 => CellType::F16,
        Dtype::BF16 => CellType::Bf16,
        Dtype::F32 => CellType::F32,
        Dtype::F64 => CellType::F64,
        other => {
            return Err(format!("{other:?} of shape {shape:?} is not attention: weights are F16, BF16, F32 or F64"));
        }
    };
    Ok(Cells::little_endian(cell))
}
