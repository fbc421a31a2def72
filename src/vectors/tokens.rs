//! The tokens of a vector case, for policies that look at more than rows: keys, values, queries, and the projection.

use super::{Case, count};
use crate::kernels::{KeyPanel, Logits};
use crate::needs::Needs;
use crate::policy::sight::CacheTensors;
use crate::policy::table::PolicyEntry;
use crate::tensors::{HeadTensors, LayerTensors, Matrix, Values};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// What a case says beside its steps.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Behind {
    /// What position 0 brings; the other tokens stand third in their step.
    first: Option<Value>,
    /// What products of queries and keys are multiplied by; 1 where it is not said.
    scale: Option<f32>,
    /// The rows of the output projection.
    output: Option<Vec<Vec<f32>>>,
}

/// What a token brings.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Token {
    key: Vec<f32>,
    value: Vec<f32>,
    /// One query for each query head.
    query: Vec<Vec<f32>>,
}

/// The tokens of a case as the cache has them, for a policy that looks at them.
pub(super) fn tensors_of(entry: &PolicyEntry, case: &Case) -> Result<Option<CacheTensors>, String> {
    if !entry.needs.has_any(Needs::OF_TRACES) {
        return Ok(None);
    }
    let mut said: Vec<&Value> = case.behind.first.iter().collect();
    for step in case.steps.iter().filter(|step| step.call == "onDecodeStep") {
        if count(&step.args, 0)? != said.len() {
            return Err(format!("{} needs every token: position 0 as \"first\", then 1, 2, ...", entry.name));
        }
        said.push(step.args.get(2).unwrap_or(&Value::Null));
    }
    let token = |said: &&Value| {
        Token::deserialize(*said).map_err(|error| format!("a token is an object of key, value and query: {error}"))
    };
    let tokens = said.iter().map(token).collect::<Result<Vec<_>, _>>()?;
    let heads = tokens.first().map_or(1, |token| token.query.len().max(1));
    let keys = Arc::new(matrix(entry, Needs::KEYS, "key", tokens.iter().map(|token| Some(&token.key)))?);
    let values = matrix(entry, Needs::VALUES, "value", tokens.iter().map(|token| Some(&token.value)))?;
    let values = Arc::new(Values::new(values));
    let logits = Logits { scale: case.behind.scale.unwrap_or(1.0), softcap: None, sink: None };
    let head = |index: usize| -> Result<HeadTensors, String> {
        let queries = matrix(entry, Needs::QUERIES, "query", tokens.iter().map(|token| token.query.get(index)))?;
        let (keys, values) = (Arc::clone(&keys), Arc::clone(&values));
        let queries = Arc::new(queries);
        let (unfinished, gradients) = (None, None);
        Ok(HeadTensors { layer: 0, index, logits, window: None, queries, keys, unfinished, values, gradients })
    };
    let of_heads = (0..heads).map(head).collect::<Result<Vec<_>, _>>()?;
    let layer = layer_of(entry, case, heads * values.rows.width())?;
    Ok(Some(CacheTensors::new(of_heads, layer.as_ref())))
}

/// One row of numbers for each token; a zero each where the policy does not look at them.
fn matrix<'a>(
    entry: &PolicyEntry,
    need: Needs,
    what: &str,
    rows: impl ExactSizeIterator<Item = Option<&'a Vec<f32>>>,
) -> Result<Matrix, String> {
    if !entry.needs.has(need) {
        return Ok(Matrix::new(1, vec![0.0; rows.len()]));
    }
    let rows: Vec<&Vec<f32>> = rows.flatten().collect();
    let width = rows.first().map_or(0, |row| row.len());
    if width == 0 || rows.iter().any(|row| row.len() != width) {
        return Err(format!("{} needs the {what} of every token, all of one width", entry.name));
    }
    Ok(Matrix::new(width, rows.into_iter().flatten().copied().collect()))
}

/// The output projection of a case, where the policy looks at it.
fn layer_of(entry: &PolicyEntry, case: &Case, width: usize) -> Result<Option<LayerTensors>, String> {
    if !entry.needs.has(Needs::PROJECTION) {
        return Ok(None);
    }
    let rows = case.behind.output.as_deref().unwrap_or_default();
    if rows.is_empty() || rows.iter().any(|row| row.len() != width) {
        return Err(format!("{} needs \"output\", rows of {width} numbers", entry.name));
    }
    let mut panel = KeyPanel::new(rows.len(), width);
    panel.set(0, &rows.concat());
    Ok(Some(LayerTensors { projection: Arc::new(panel), output_norm: None, residual_norm: None }))
}
