//! The traces that are measured on: decode-4096, in memory and as files, and longer or more of it.

use super::rounds::time;
use kvsim::kernels;
use kvsim::trace::formats::open;
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::options::ReadOptions;
use kvsim::trace::safetensors::{StoredType, write};
use kvsim::trace::spec::MixtureSpec;
use kvsim::trace::synthetic::SyntheticTrace;
use kvsim::trace::{RowBlock, SelfAttention, Source};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A folder below the target directory that goes when the bench is done.
pub struct Folder(TempDir);

impl Folder {
    /// An empty folder.
    pub fn new() -> Folder {
        Folder(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("the target directory can be written to"))
    }

    /// A place in the folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// The built-in trace, or one like it of another length and seed.
pub fn decode(positions: usize, seed: u32) -> SyntheticTrace {
    let spec = MixtureSpec::built_in("decode-4096").expect("it is built in");
    SyntheticTrace::new(MixtureSpec { positions, seed, ..spec })
}

/// The built-in trace.
pub fn decode_4096() -> SyntheticTrace {
    decode(4096, 7)
}

/// All rows of a trace's first stream.
pub fn rows_of(source: &dyn Source) -> Rows {
    let mut block = RowBlock::default();
    read_all(source, &mut block);
    block.rows().map(|row| Some(row.weights.to_vec())).collect()
}

/// Reads the first stream of a trace into one block.
pub fn read_all(source: &dyn Source, block: &mut RowBlock) {
    block.clear();
    let mut reader = source.open(0).expect("there is a stream");
    while reader.read(block, usize::MAX).expect("the rows can be read") > 0 {}
}

/// One stream held in memory.
pub fn in_memory(rows: Rows) -> MemoryTrace {
    let trace = MemoryTrace::new("memory", SelfAttention::Excluded);
    trace.with_stream(0, "0", rows).expect("rows of a triangle")
}

/// As many streams as asked for, each of its own seed, held in memory.
pub fn many_streams(streams: u32, positions: usize) -> MemoryTrace {
    let trace = MemoryTrace::new("streams", SelfAttention::Excluded);
    (0..streams).fold(trace, |trace, layer| {
        let rows = rows_of(&decode(positions, layer + 1));
        trace.with_stream(layer, "0", rows).expect("rows of a triangle")
    })
}

/// Writes a trace as a native file.
pub fn write_native(source: &dyn Source, stored: StoredType, path: &Path) {
    let mut file = BufWriter::new(File::create(path).expect("the folder can be written to"));
    write(source, stored, &mut file, &|_| ()).expect("the rows can be written");
    file.into_inner().expect("the last bytes can be written");
}

/// Opens a native file.
pub fn open_native(path: &Path) -> Box<dyn Source> {
    open(path.as_os_str(), &ReadOptions::default()).expect("the bench wrote the file")
}

/// Weights that a block of rows holds in a pass: what stays in a core's cache.
const BLOCK: usize = 64 * 1024;

/// Time of one pass over a file that reads, widens and sums its rows, and nothing else.
pub fn pass_time(path: &Path) -> Duration {
    time(|| {
        let source = open_native(path);
        let mut reader = source.open(0).expect("there is a stream");
        let (mut block, mut rows, mut total) = (RowBlock::default(), 1, 0.0);
        while reader.read(&mut block, rows).expect("the rows can be read") > 0 {
            total += block.rows().map(|row| kernels::sum(row.weights)).sum::<f64>();
            let longest = block.rows().last().map_or(1, |row| row.weights.len());
            rows = (BLOCK / longest).clamp(1, 2 * rows);
            block.clear();
        }
        total
    })
}
