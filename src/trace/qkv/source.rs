//! A trace of queries, keys and values as a source of rows: one stream for each query head.

use super::inspect::{self, SampledRows};
use super::layer::Layer;
use super::rows::RebuiltRows;
use super::tensors::SharedTensors;
use crate::error::{Error, Result};
use crate::kernels::KeyPanel;
use crate::needs::Needs;
use crate::position::Position;
use crate::quantise::KvBits;
use crate::tensors::{HeadTensors, LayerTensors};
use crate::trace::hash;
use crate::trace::options::ReadOptions;
use crate::trace::storage::{SharedFile, Storage};
use crate::trace::{
    About, Head, Metadata, ModelFacts, RowReader, SelfAttention, Source, StreamInfo, StreamLabel, TraceInfo,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

/// A trace of queries, keys and values.
pub(super) struct QkvTrace {
    pub(super) info: TraceInfo,
    pub layers: Vec<Layer>,
    /// Layer and query head of each stream, as indices.
    pub(super) streams: Vec<(usize, usize)>,
    /// Learned sinks of each layer, one for each query head; empty where there are none.
    pub(super) sinks: Vec<Vec<f32>>,
    /// Keys that somebody reads, by layer and KV head.
    keys: Mutex<BTreeMap<(usize, usize), Weak<KeyPanel>>>,
    pub(super) tensors: SharedTensors,
}

impl QkvTrace {
    /// A trace of layers that have been checked.
    ///
    /// # Errors
    /// When learned sinks cannot be read, or keys take more memory than is allowed.
    pub fn open(
        name: String,
        format: &'static str,
        mut layers: Vec<Layer>,
        metadata: BTreeMap<String, String>,
        notes: Vec<String>,
        options: &ReadOptions,
    ) -> Result<Box<dyn Source>> {
        for layer in &mut layers {
            layer.settings.window = options.layer_window.of(layer.number).or(layer.settings.window);
        }
        let sinks = layers.iter().map(|layer| layer.sink.as_ref().map_or(Ok(Vec::new()), |sink| sink.read_all()));
        let sinks = sinks.collect::<Result<_>>()?;
        let heads = |(index, layer): (usize, &Layer)| (0..layer.queries.len()).map(move |head| (index, head));
        let streams: Vec<(usize, usize)> = layers.iter().enumerate().flat_map(heads).collect();
        let mut info = TraceInfo {
            name,
            format,
            self_attention: SelfAttention::Included,
            first_position: Position(0),
            positions: layers[0].queries[0].rows,
            streams: streams.iter().map(|(layer, head)| stream(&layers[*layer], *head)).collect(),
            metadata: Metadata::new(),
            facts: ModelFacts::default(),
            notes,
            read_as: Vec::new(),
        };
        info.set_metadata(facts(&layers, metadata))?;
        info.notes.extend(scale_notes(&layers));
        info.notes.push(memory(&info, &layers, options.max_memory)?);
        Ok(Box::new(QkvTrace {
            info,
            layers,
            streams,
            sinks,
            keys: Mutex::default(),
            tensors: SharedTensors::default(),
        }))
    }

    /// The files that it is in, by path.
    fn files(&self) -> BTreeMap<&Arc<Path>, &SharedFile> {
        self.layers.iter().flat_map(Layer::matrices).map(|matrix| (&matrix.path, &matrix.file)).collect()
    }

    /// The keys of a KV head, read once for all that use them side by side.
    pub(super) fn keys(&self, layer: usize, cache: usize) -> Result<Arc<KeyPanel>> {
        // Held while keys are read, so that no two readers read the same.
        let mut all = self.keys.lock().expect("no reader of keys panics");
        if let Some(panel) = all.get(&(layer, cache)).and_then(Weak::upgrade) {
            return Ok(panel);
        }
        let matrix = &self.layers[layer].keys[cache];
        let mut panel = KeyPanel::new(matrix.rows, matrix.width);
        matrix.for_each_rows(|first, keys| panel.set(first, keys))?;
        let panel = Arc::new(panel);
        all.insert((layer, cache), Arc::downgrade(&panel));
        Ok(panel)
    }

    /// The rows of a stream, from the first.
    pub fn rows(&self, stream: usize) -> Result<RebuiltRows> {
        let (layer, head) = self.streams[stream];
        self.rows_with(stream, self.keys(layer, head / self.layers[layer].heads_of_a_cache())?)
    }

    /// The rows of a stream with these keys.
    pub(super) fn rows_with(&self, stream: usize, keys: Arc<KeyPanel>) -> Result<RebuiltRows> {
        let (layer, head) = self.streams[stream];
        let Layer { queries, settings, .. } = &self.layers[layer];
        let logits = self.logits(layer, head);
        let label = &self.info.streams[stream].label;
        let place = format!("{}: layer {} head {}", self.info.name, label.layer, label.head);
        Ok(RebuiltRows::new(&queries[head], keys, logits, settings.window, place))
    }
}

fn stream(layer: &Layer, head: usize) -> StreamInfo {
    let label = StreamLabel { layer: layer.number, head: Head::Number(head as u32) };
    // The type of the weights, which are made here.
    StreamInfo { label, rows: layer.queries[head].rows, dtype: "f32" }
}

/// One count for all layers where they agree, one for each where they do not.
fn add_counts(metadata: &mut BTreeMap<String, String>, key: &str, layers: &[Layer], count: impl Fn(&Layer) -> usize) {
    let first = count(&layers[0]);
    if layers.iter().all(|layer| count(layer) == first) {
        metadata.entry(key.to_owned()).or_insert_with(|| first.to_string());
        return;
    }
    for layer in layers {
        metadata.insert(format!("{key}.{}", layer.number), count(layer).to_string());
    }
}

/// Metadata with the heads of the layers, where it does not count them: which query heads share a cache.
fn facts(layers: &[Layer], mut metadata: BTreeMap<String, String>) -> BTreeMap<String, String> {
    add_counts(&mut metadata, "query_heads", layers, |layer| layer.queries.len());
    add_counts(&mut metadata, "kv_heads", layers, |layer| layer.keys.len());
    metadata.insert("group".to_owned(), "none".to_owned());
    for layer in layers {
        if let Some(window) = layer.settings.window {
            metadata.insert(format!("sliding_window.{}", layer.number), window.to_string());
        }
    }
    metadata
}

fn scale_notes(layers: &[Layer]) -> Vec<String> {
    let unsaid = layers.iter().find(|layer| !layer.settings.scale_is_said);
    let note = |layer: &Layer| {
        let (width, scale) = (layer.queries[0].width, layer.settings.scale);
        format!("no scale in the metadata: products are multiplied by 1 / sqrt({width}) = {scale}")
    };
    unsaid.map(note).into_iter().collect()
}

/// Bytes of the queries, keys, values and gradients of a layer, and of what stands behind its heads, as they are in
/// memory where outputs are measured.
fn behind_rows(layer: &Layer) -> u64 {
    layer.matrices().map(|matrix| (size_of::<f32>() * matrix.rows * matrix.width) as u64).sum()
}

/// What keys take in memory, which must not be more than is allowed.
fn memory(info: &TraceInfo, layers: &[Layer], allowed: Option<u64>) -> Result<String> {
    let bytes = |layer: &Layer| KeyPanel::bytes(layer.keys[0].rows, layer.keys[0].width);
    let most = layers.iter().map(bytes).max().unwrap_or(0);
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    match allowed.filter(|allowed| most > *allowed) {
        None => Ok(format!(
            "rows are rebuilt from queries and keys, which takes {} MiB of memory for each KV head in work; figures of \
             outputs take {} MiB more for each layer in work",
            mib(most),
            mib(layers.iter().map(behind_rows).max().unwrap_or(0))
        )),
        Some(allowed) => Err(Error::usage(format!(
            "{}: the keys of a KV head take {} MiB of memory, the limit is {} MiB: raise it with --max-memory",
            info.name,
            mib(most),
            allowed >> 20
        ))),
    }
}

impl Source for QkvTrace {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn open(&self, stream: usize) -> Result<Box<dyn RowReader>> {
        Ok(Box::new(self.rows(stream)?))
    }

    fn open_held(&self, stream: usize, bits: KvBits) -> Result<Option<Box<dyn RowReader>>> {
        Ok(Some(Box::new(self.rows_held(stream, bits)?)))
    }

    fn offers(&self) -> Needs {
        self.holds()
    }

    fn head_tensors(&self, stream: usize, needs: Needs) -> Result<Option<HeadTensors>> {
        self.tensors_of_head(stream, needs).map(Some)
    }

    fn layer_tensors(&self, layer: u32) -> Result<Option<LayerTensors>> {
        self.tensors_of_layer(layer)
    }

    fn content_hash(&self) -> Result<String> {
        let hash = |(path, file): (&Arc<Path>, &SharedFile)| {
            hash::of_storage(&Storage::File(file.clone())).map_err(|error| Error::io(path, error))
        };
        let hashes = self.files().into_iter().map(hash).collect::<Result<Vec<_>>>()?;
        Ok(if let [one] = &hashes[..] { one.clone() } else { hash::of_text(&hashes.concat()) })
    }

    fn about(&self) -> Result<About> {
        inspect::about(self)
    }

    fn sample(&self, stream: usize) -> Result<Option<Box<dyn RowReader>>> {
        Ok(Some(Box::new(SampledRows::new(self, stream)?)))
    }
}
