//! The native layout: one safetensors file, one tensor a head, or one for all heads of a layer.

use super::check::check;
use super::layer::Layer;
use super::matrix::{Matrix, bytes_of, dtype_name};
use super::names::{Part, TensorName, beyond_the_product};
use super::settings::Settings;
use super::source::QkvTrace;
use crate::error::{Error, Result};
use crate::trace::limits::quoted;
use crate::trace::options::{ReadOption, ReadOptions};
use crate::trace::safetensors::{RawHeader, RawTensor};
use crate::trace::{SelfAttention, Source};
use crate::word::Word;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Whether a file holds queries, keys or values, or says so.
pub(in crate::trace) fn is_qkv(header: &RawHeader) -> bool {
    let is_part = |tensor: &RawTensor| TensorName::parse(&tensor.name).is_some_and(|name| name.part <= Part::Value);
    header.metadata.get("kind").is_some_and(|kind| kind == "qkv") || header.tensors.iter().any(is_part)
}

/// Opens a native trace of queries, keys and values.
///
/// # Errors
/// When something is missing in the file, does not fit, or is not covered by products of queries and keys.
pub(in crate::trace) fn open(header: RawHeader, options: &ReadOptions) -> Result<Box<dyn Source>> {
    options.allow_only(ReadOption::COMMON, "a trace of queries, keys and values")?;
    check_metadata(&header)?;
    let RawHeader { name, metadata, tensors, file } = header;
    let (mut layers, mut notes) = (BTreeMap::<u32, Tensors>::new(), Vec::new());
    for tensor in tensors {
        match TensorName::parse(&tensor.name) {
            Some(at) => layers.entry(at.layer).or_default().0.push((at, tensor)),
            None => notes.push(left_out(&name, &tensor)?),
        }
    }
    let maker = Maker { name: &name, path: Arc::from(Path::new(&name)), file, metadata: &metadata };
    let layers = layers.into_iter().map(|(layer, tensors)| maker.layer(layer, tensors)).collect::<Result<Vec<_>>>()?;
    check(&name, &layers, &metadata)?;
    QkvTrace::new(name, "qkv", layers, metadata, notes, options)
}

fn check_metadata(header: &RawHeader) -> Result<()> {
    let said = |key: &str| header.metadata.get(key).map(String::as_str);
    let problem = match (said("kvsim"), said("kind"), said("self")) {
        (Some("1"), Some("qkv"), Some("included")) => return beyond_products(header),
        (Some("1"), Some("qkv"), Some("excluded")) => {
            "self is \"excluded\" in the metadata: the row of a query holds its own position, say \"included\""
                .to_owned()
        }
        (Some("1"), Some("qkv"), found) => {
            let must = SelfAttention::Included.word();
            format!("self is {} in the metadata, must be {must:?}", in_words(found))
        }
        (Some("1"), found, _) => {
            format!(
                "kind is {} in the metadata, must be \"qkv\" beside tensors of queries, keys and values",
                in_words(found)
            )
        }
        (found, _, _) => format!("kvsim is {} in the metadata, this version reads \"1\"", in_words(found)),
    };
    Err(Error::data(&header.name, problem))
}

fn in_words(found: Option<&str>) -> String {
    found.map_or("missing".to_owned(), quoted)
}

/// Refuses metadata that speaks of logits which are more than products.
fn beyond_products(header: &RawHeader) -> Result<()> {
    let beyond = header.metadata.keys().find_map(|key| Some((key, beyond_the_product(key)?)));
    beyond.map_or(Ok(()), |(key, word)| {
        Err(Error::data(&header.name, format!("{} in the metadata: {}", quoted(key), beyond_words(word))))
    })
}

fn beyond_words(word: &str) -> &'static str {
    match word {
        "alibi" => {
            "a bias that grows with distance is not in the products: store it as one more channel, slope / scale in \
             every query and the position in every key, keys in F32"
        }
        _ => {
            "what changes logits beyond products, scale, soft cap, window and learned sinks is not read: record the rows \
             themselves (attention.{layer}.{head})"
        }
    }
}

/// A word about a tensor that has no place here; refuses those that cannot be passed over.
fn left_out(file: &str, tensor: &RawTensor) -> Result<String> {
    let name = &tensor.name;
    let place = || format!("{file}: tensor {}", quoted(name));
    if name.starts_with("attention.") {
        let problem = "attention beside queries, keys and values: a file is of one kind, write it to a file of its own";
        return Err(Error::data(place(), problem));
    }
    match beyond_the_product(name) {
        Some(word) => Err(Error::data(place(), beyond_words(word))),
        None => {
            let name = quoted(name);
            Ok(format!("tensor {name} is left out: it is not query.{{layer}}.{{head}} or another that is read"))
        }
    }
}

/// The tensors of a layer.
#[derive(Default)]
struct Tensors(Vec<(TensorName, RawTensor)>);

impl Tensors {
    /// Takes out those of a part, by head.
    fn take(&mut self, part: Part) -> Vec<(TensorName, RawTensor)> {
        let (mut taken, left): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(name, _)| name.part == part);
        self.0 = left;
        taken.sort_by_key(|(name, _)| name.head);
        taken
    }
}

/// Makes matrices of tensors.
struct Maker<'a> {
    name: &'a str,
    path: Arc<Path>,
    file: crate::trace::storage::SharedFile,
    metadata: &'a BTreeMap<String, String>,
}

impl Maker<'_> {
    fn layer(&self, number: u32, mut tensors: Tensors) -> Result<Layer> {
        let mut of_heads = |part| self.heads(number, part, tensors.take(part));
        let (queries, keys, values) = (of_heads(Part::Query)?, of_heads(Part::Key)?, of_heads(Part::Value)?);
        let gradients = of_heads(Part::Gradient)?;
        for (heads, part) in [(&queries, Part::Query), (&keys, Part::Key), (&values, Part::Value)] {
            if heads.is_empty() {
                let word = part.word();
                let problem = format!("there is no {word}.{number}.0: a layer needs queries, keys and values");
                return Err(Error::data(format!("{}: layer {number}", self.name), problem));
            }
        }
        let mut single = |part| self.single(tensors.take(part));
        Ok(Layer {
            number,
            settings: Settings::of(self.name, self.metadata, number, queries[0].width)?,
            queries,
            keys,
            values,
            gradients,
            output: single(Part::Output)?,
            output_norm: single(Part::OutputNorm)?,
            residual_norm: single(Part::ResidualNorm)?,
            sink: single(Part::Sink)?,
        })
    }

    /// The heads of a part, one tensor each or one for all.
    fn heads(&self, layer: u32, part: Part, tensors: Vec<(TensorName, RawTensor)>) -> Result<Vec<Matrix>> {
        if let [(TensorName { head: None, .. }, tensor)] = &tensors[..] {
            return self.all_heads(part, tensor);
        }
        for (index, (name, tensor)) in tensors.iter().enumerate() {
            let word = part.word();
            let problem = match name.head {
                None => format!(
                    "it stands beside {word}.{layer}.{{head}}: give all heads in one tensor, or each in its own"
                ),
                Some(head) if head != index => {
                    format!("there is no {word}.{layer}.{index}: heads are numbered 0, 1, 2, ... without gaps")
                }
                Some(_) => continue,
            };
            return Err(self.refuse(tensor, problem));
        }
        tensors.iter().map(|(_, tensor)| self.head(part, tensor)).collect()
    }

    fn head(&self, part: Part, tensor: &RawTensor) -> Result<Matrix> {
        match (part, &tensor.shape[..]) {
            (Part::Gradient, [samples, rows, width]) => self.matrix(tensor, 0, samples.saturating_mul(*rows), *width),
            (Part::Gradient, shape) => {
                Err(self.refuse(tensor, format!("shape {shape:?}, must be [samples, positions, channels]")))
            }
            (_, [rows, width]) => self.matrix(tensor, 0, *rows, *width),
            (_, shape) => Err(self.refuse(tensor, format!("shape {shape:?}, must be [positions, channels]"))),
        }
    }

    fn all_heads(&self, part: Part, tensor: &RawTensor) -> Result<Vec<Matrix>> {
        match tensor.shape[..] {
            [heads, rows, width] | [1, heads, rows, width] if part != Part::Gradient => {
                let head = |head: usize| {
                    let mut matrix = self.matrix(tensor, head * rows * width, rows, width)?;
                    matrix.place = format!("{} head {head}", matrix.place);
                    Ok(matrix)
                };
                (0..heads).map(head).collect()
            }
            _ if part == Part::Gradient => {
                Err(self.refuse(tensor, "gradients stand one tensor a head: gradient.{layer}.{head}".to_owned()))
            }
            _ => {
                let shape = &tensor.shape;
                Err(self.refuse(
                    tensor,
                    format!("shape {shape:?}, must be [heads, positions, channels], a 1 before it or not"),
                ))
            }
        }
    }

    /// The one tensor of a part that a layer has once: a matrix, or a row of numbers.
    fn single(&self, tensors: Vec<(TensorName, RawTensor)>) -> Result<Option<Matrix>> {
        if let Some((name, tensor)) = tensors.iter().find(|(name, _)| name.head.is_some()) {
            let word = name.part.word();
            return Err(self.refuse(tensor, format!("a layer has one of these: {word}.{}", name.layer)));
        }
        let Some((name, tensor)) = tensors.first() else { return Ok(None) };
        let shape = match (name.part, &tensor.shape[..]) {
            (Part::Output, [rows, width]) => Ok((*rows, *width)),
            (Part::Output, shape) => {
                Err(format!("shape {shape:?}, must be [model width, query heads * channels of a value]"))
            }
            (_, [width]) => Ok((1, *width)),
            (_, shape) => Err(format!("shape {shape:?}, must be one-dimensional")),
        };
        let (rows, width) = shape.map_err(|problem| self.refuse(tensor, problem))?;
        let mut matrix = self.matrix(tensor, 0, rows, width)?;
        matrix.axes = ["row", if rows == 1 { "index" } else { "column" }];
        Ok(Some(matrix))
    }

    fn matrix(&self, tensor: &RawTensor, skip: usize, rows: usize, width: usize) -> Result<Matrix> {
        if dtype_name(tensor.dtype).is_none() {
            return Err(self.refuse(tensor, format!("dtype {:?}, must be F32, F16 or BF16", tensor.dtype)));
        }
        if width == 0 || rows == 0 {
            return Err(self.refuse(tensor, format!("shape {:?} holds no number", tensor.shape)));
        }
        Ok(Matrix {
            place: self.place(tensor),
            path: Arc::clone(&self.path),
            file: self.file.clone(),
            dtype: tensor.dtype,
            start: tensor.start + skip as u64 * bytes_of(tensor.dtype),
            rows,
            width,
            axes: ["position", "channel"],
        })
    }

    fn place(&self, tensor: &RawTensor) -> String {
        format!("{}: tensor {}", self.name, quoted(&tensor.name))
    }

    fn refuse(&self, tensor: &RawTensor, problem: String) -> Error {
        Error::data(self.place(tensor), problem)
    }
}
