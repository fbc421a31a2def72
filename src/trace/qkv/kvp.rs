//! A folder of queries, keys and values as dumped for the training of learned policies (KVP, Apple): one sample is
//! `layer_NNNNNN/kv_head_NNN/attention_tensors.safetensors`, with `k` and `v` `[T, d]` and `q_group` `[G, T, d]`, the
//! queries that read this KV head; all as they enter attention. `prompt_ntokens.safetensors` beside the layers says how
//! many positions are the prompt.

use super::check::check;
use super::layer::Layer;
use super::matrix::{Matrix, bytes_of, dtype_name};
use super::settings::Settings;
use super::source::QkvTrace;
use crate::error::{Error, Result};
use crate::trace::Source;
use crate::trace::options::{ReadOption, ReadOptions};
use crate::trace::safetensors::{RawHeader, RawTensor, read_header};
use crate::trace::storage::SharedFile;
use safetensors::tensor::Dtype;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of one KV head.
const HEAD_FILE: &str = "attention_tensors.safetensors";

/// Whether a folder holds layers or samples of this layout.
pub(in crate::trace) fn is_folder(path: &Path) -> bool {
    let any = |prefix| numbered(path, prefix).is_ok_and(|found| !found.is_empty());
    any("layer_") || any("sample_")
}

/// Opens the folder of a sample.
///
/// # Errors
/// When it is not such a folder, or what is in it does not fit together.
pub(in crate::trace) fn open(path: &Path, options: &ReadOptions) -> Result<Box<dyn Source>> {
    options.allow_only(ReadOption::COMMON, "a folder of queries, keys and values")?;
    let name = path.display().to_string();
    let layers = numbered(path, "layer_")?;
    if layers.is_empty() {
        return Err(Error::data(name, no_layers(path)?));
    }
    let mut metadata = BTreeMap::new();
    let layers = layers.iter().map(|(number, path)| layer(&name, *number, path)).collect::<Result<Vec<_>>>()?;
    metadata.insert("seq_len".to_owned(), layers[0].queries[0].rows.to_string());
    if let Some(positions) = prompt_len(path)? {
        metadata.insert("prompt_len".to_owned(), positions.to_string());
    }
    check(&name, &layers, &metadata)?;
    QkvTrace::new(name, "kvp", layers, metadata, Vec::new(), options)
}

/// The folders in a folder whose names are this and a number, by number.
fn numbered(path: &Path, prefix: &str) -> Result<BTreeMap<u32, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(|error| Error::io(path, error))? {
        let entry = entry.map_err(|error| Error::io(path, error))?.path();
        let number = entry.file_name().and_then(|name| name.to_str()?.strip_prefix(prefix)?.parse().ok());
        if let Some(number) = number.filter(|_| entry.is_dir()) {
            found.insert(number, entry);
        }
    }
    Ok(found)
}

fn no_layers(path: &Path) -> Result<String> {
    Ok(match numbered(path, "sample_")?.values().next() {
        Some(sample) => format!("a folder of samples: name one of them, such as {}", sample.display()),
        None => {
            format!("a folder without layer_NNNNNN/kv_head_NNN/{HEAD_FILE}: name a file, or the folder of a sample")
        }
    })
}

fn layer(name: &str, number: u32, path: &Path) -> Result<Layer> {
    let heads = numbered(path, "kv_head_")?;
    let place = || format!("{}", path.display());
    if let Some(missing) = (0..heads.len() as u32).find(|head| !heads.contains_key(head)) {
        return Err(Error::data(
            place(),
            format!("there is no kv_head_{missing:03}: heads are numbered 0, 1, 2, ... without gaps"),
        ));
    }
    let heads = heads.values().map(|head| Head::open(&head.join(HEAD_FILE))).collect::<Result<Vec<_>>>()?;
    let Some(first) = heads.first() else { return Err(Error::data(place(), "holds no kv_head_NNN")) };
    let settings = Settings::of(name, &BTreeMap::new(), number, first.key.width)?;
    let (mut queries, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for head in heads {
        queries.push(head.queries);
        keys.push(head.key);
        values.push(head.value);
    }
    if let Some(odd) = queries.iter().position(|group| group.len() != queries[0].len()) {
        let problem =
            format!("KV head {odd} is read by {} query heads, KV head 0 by {}", queries[odd].len(), queries[0].len());
        return Err(Error::data(place(), problem));
    }
    Ok(Layer {
        number,
        queries: queries.concat(),
        keys,
        values,
        output: None,
        output_norm: None,
        residual_norm: None,
        sink: None,
        gradients: Vec::new(),
        settings,
    })
}

fn open_header(path: &Path) -> Result<RawHeader> {
    read_header(path.display().to_string(), SharedFile::open(path)?)
}

/// One KV head with the queries that read it.
struct Head {
    queries: Vec<Matrix>,
    key: Matrix,
    value: Matrix,
}

impl Head {
    fn open(path: &Path) -> Result<Head> {
        let header = open_header(path)?;
        let path = Arc::from(path);
        let queries = matrices(&header, &path, "q_group", 3)?;
        let single = |name| Ok(matrices(&header, &path, name, 2)?.remove(0));
        Ok(Head { queries, key: single("k")?, value: single("v")? })
    }
}

/// The matrices of a tensor: one of two dimensions, or as many as the first of three says.
fn matrices(header: &RawHeader, path: &Arc<Path>, name: &str, dimensions: usize) -> Result<Vec<Matrix>> {
    let place = format!("{}: tensor {name:?}", header.name);
    let tensor = header.tensors.iter().find(|tensor| tensor.name == name);
    let tensor = tensor.ok_or_else(|| Error::data(&place, "it is not there: a KV head has k, v and q_group"))?;
    let shape = &tensor.shape;
    let dtype = dtype_name(tensor.dtype);
    let problem = match shape[..] {
        _ if dtype.is_none() => format!("dtype {:?}, must be F32, F16 or BF16", tensor.dtype),
        _ if shape.len() != dimensions => format!("shape {shape:?}, must have {dimensions} dimensions"),
        _ if shape.contains(&0) => format!("shape {shape:?} holds no number"),
        [.., rows, width] => {
            let count = if dimensions == 3 { shape[0] } else { 1 };
            let matrix = |index: usize| Matrix {
                place: if dimensions == 3 { format!("{place} head {index}") } else { place.clone() },
                path: Arc::clone(path),
                file: header.file.clone(),
                dtype: tensor.dtype,
                start: tensor.start + (index * rows * width) as u64 * bytes_of(tensor.dtype),
                rows,
                width,
                axes: ["position", "channel"],
            };
            return Ok((0..count).map(matrix).collect());
        }
        _ => format!("shape {shape:?}, must have {dimensions} dimensions"),
    };
    Err(Error::data(place, problem))
}

/// The positions of the prompt, where the sample says so.
fn prompt_len(sample: &Path) -> Result<Option<u64>> {
    let path = sample.join("prompt_ntokens.safetensors");
    if !path.exists() {
        return Ok(None);
    }
    let header = open_header(&path)?;
    let Some(tensor) = header.tensors.first() else { return Ok(None) };
    let number = read_count(&header, tensor).map_err(|error| Error::io(&path, error))?;
    let place = || format!("{}: tensor {:?}", header.name, tensor.name);
    number.map(Some).ok_or_else(|| Error::data(place(), "must be one whole number, I32 or I64"))
}

fn read_count(header: &RawHeader, tensor: &RawTensor) -> std::io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    let used = match tensor.dtype {
        Dtype::I64 => 8,
        Dtype::I32 => 4,
        _ => return Ok(None),
    };
    if tensor.shape.iter().product::<usize>() != 1 {
        return Ok(None);
    }
    header.file.reader(tensor.start).read_exact(&mut bytes[..used])?;
    // A negative I32 read as if it were an I64 is far more than any prompt, and is refused as that.
    Ok(u64::try_from(i64::from_le_bytes(bytes)).ok())
}
