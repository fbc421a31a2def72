//! Whether the tensors of a trace fit together: heads, positions, channels, and what is counted in metadata.

use super::layer::Layer;
use super::matrix::Matrix;
use super::settings::{Said, at_least_one, positive};
use crate::error::{Error, Result};
use crate::trace::limits::check_positions;
use safetensors::tensor::Dtype;
use std::collections::BTreeMap;

/// Refuses what does not fit, with the tensor and what would.
pub(super) fn check(file: &str, layers: &[Layer], metadata: &BTreeMap<String, String>) -> Result<()> {
    let said = Said { file, metadata };
    let Some(first) = layers.first() else {
        return Err(Error::data(file, "holds no tensor named query.{layer}.{head}"));
    };
    let positions = first.queries[0].rows;
    check_positions(positions).map_err(|problem| Error::data(file, problem))?;
    check_count(file, "seq_len", positions, said.at("seq_len", at_least_one)?, "positions")?;
    let samples = said.at("gradient_samples", at_least_one)?;
    said.at("gradient_scale", positive)?;
    let with_gradients = layers.iter().find(|layer| !layer.gradients.is_empty());
    for layer in layers {
        check_heads(file, layer, &said)?;
        check_shapes(layer, positions)?;
        check_behind(layer, &said, positions)?;
        if let Some(other) = with_gradients {
            check_gradients(file, layer, other.number, samples, positions)?;
        }
    }
    Ok(())
}

fn check_count(file: &str, key: &str, found: usize, said: Option<usize>, what: &str) -> Result<()> {
    match said {
        Some(said) if said == found => Ok(()),
        Some(said) => {
            Err(Error::data(file, format!("{key} is {said} in the metadata, the tensors hold {found} {what}")))
        }
        None => Err(Error::data(file, format!("the metadata must say {key}: the tensors hold {found} {what}"))),
    }
}

fn check_heads(file: &str, layer: &Layer, said: &Said<'_>) -> Result<()> {
    let Layer { number, queries, keys, values, .. } = layer;
    let (heads, kv_heads) = (queries.len(), keys.len());
    let place = format!("{file}: layer {number}");
    if values.len() != kv_heads {
        let problem = format!("{kv_heads} heads of keys and {} of values: each KV head has both", values.len());
        return Err(Error::data(place, problem));
    }
    if !heads.is_multiple_of(kv_heads) {
        let problem = format!("{heads} query heads cannot share {kv_heads} KV heads evenly: is a head missing?");
        return Err(Error::data(place, problem));
    }
    for (key, found) in [("query_heads", heads), ("kv_heads", kv_heads)] {
        let own = format!("{key}.{number}");
        let key = if said.metadata.contains_key(&own) { own.as_str() } else { key };
        let count = said.at(key, at_least_one)?.unwrap_or(found);
        check_count(&place, key, found, Some(count), "of them: is a head missing?")?;
    }
    Ok(())
}

fn check_shapes(layer: &Layer, positions: usize) -> Result<()> {
    let Layer { queries, keys, values, .. } = layer;
    let (width, value_width) = (queries[0].width, values[0].width);
    let all = queries.iter().chain(keys).map(|matrix| (matrix, width));
    for (matrix, width) in all.chain(values.iter().map(|matrix| (matrix, value_width))) {
        fits(matrix, [positions, width], "[positions, channels], as in the other heads")?;
    }
    Ok(())
}

fn check_behind(layer: &Layer, said: &Said<'_>, positions: usize) -> Result<()> {
    let (heads, value_width) = (layer.queries.len(), layer.values[0].width);
    if let Some(sink) = &layer.sink {
        fits(sink, [1, heads], "one logit for each query head")?;
    }
    if let Some(norms) = &layer.residual_norm {
        fits(norms, [1, positions], "one length for each position")?;
        is_f32(norms)?;
    }
    if let Some(output) = &layer.output {
        fits(output, [output.rows, heads * value_width], "[model width, query heads * channels of a value]")?;
    }
    let Some(gain) = &layer.output_norm else { return Ok(()) };
    let Some(output) = &layer.output else {
        let problem = format!("a norm behind output.{}, which is not there", layer.number);
        return Err(Error::data(&gain.place, problem));
    };
    fits(gain, [1, output.rows], "one gain for each row of the output projection")?;
    is_f32(gain)?;
    match said.at("output_norm_epsilon", positive)? {
        Some(_) => Ok(()),
        None => Err(Error::data(
            &gain.place,
            "the metadata must say output_norm_epsilon, which the norm adds to the mean square",
        )),
    }
}

fn check_gradients(file: &str, layer: &Layer, other: u32, samples: Option<usize>, positions: usize) -> Result<()> {
    let (number, heads, found) = (layer.number, layer.queries.len(), layer.gradients.len());
    if found != heads {
        let problem = format!(
            "there is no gradient.{number}.{found}, and layer {other} has gradients: each query head of each layer has them, \
             or none"
        );
        return Err(Error::data(format!("{file}: layer {number}"), problem));
    }
    let Some(samples) = samples else {
        return Err(Error::data(
            file,
            "the metadata must say gradient_samples, the first number of a gradient's shape",
        ));
    };
    let shape = [samples.saturating_mul(positions), layer.values[0].width];
    let must = format!("[{samples} samples, {positions} positions, channels of a value]");
    layer.gradients.iter().try_for_each(|gradient| fits(gradient, shape, &must))
}

fn fits(matrix: &Matrix, [rows, width]: [usize; 2], must: &str) -> Result<()> {
    if (matrix.rows, matrix.width) == (rows, width) {
        return Ok(());
    }
    let problem = format!("shape [{}, {}], must be [{rows}, {width}]: {must}", matrix.rows, matrix.width);
    Err(Error::data(&matrix.place, problem))
}

fn is_f32(matrix: &Matrix) -> Result<()> {
    match matrix.dtype {
        Dtype::F32 => Ok(()),
        other => Err(Error::data(&matrix.place, format!("dtype {other:?}, must be F32"))),
    }
}
