//! The content of a trace as a short text: which trace a result is about, whatever its file is called.
//!
//! Bytes are hashed in blocks of a fixed size, side by side, and the hashes of the blocks once more in
//! their order (XXH3, 64 bits): the same on every machine and with any number of threads. It tells traces
//! apart that differ by accident; it is no defence against somebody who makes two that collide.

use super::storage::{SharedFile, Storage};
use super::{RowBlock, Source};
use crate::error::Result;
use crate::word::Word;
use rayon::prelude::*;
use std::hash::Hasher;
use std::io::ErrorKind;
use twox_hash::XxHash3_64;

/// Bytes of a block.
const BLOCK: usize = 1 << 22;
/// Bytes read at a time: few enough to stay in a core's cache between the reading and the hashing.
const CHUNK: usize = 1 << 17;
/// The hash of a stream's bytes while they are read.
pub(super) type StreamHash = XxHash3_64;

/// Rows read at a time.
const ROWS: usize = 64;

/// The hash of a file or of a copy in memory.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn of_storage(storage: &Storage) -> std::io::Result<String> {
    let blocks = match storage {
        Storage::File(file) => of_file(file)?,
        Storage::Memory(bytes) => bytes.as_ref().par_chunks(BLOCK).map(XxHash3_64::oneshot).collect(),
    };
    Ok(combined(&blocks))
}

/// The hash of files that are one trace, in their order; of a single one, its own.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn of_files(files: &[Storage]) -> std::io::Result<String> {
    let hashes = files.iter().map(of_storage).collect::<std::io::Result<Vec<_>>>()?;
    Ok(if hashes.len() == 1 { hashes.concat() } else { of_text(&hashes.concat()) })
}

/// The hash of a text.
pub(super) fn of_text(text: &str) -> String {
    combined(&[XxHash3_64::oneshot(text.as_bytes())])
}

/// The hash of the rows of all streams, with their labels.
///
/// # Errors
/// When a row cannot be read.
pub(super) fn of_rows<S: Source + ?Sized>(source: &S) -> Result<String> {
    let streams = 0..source.info().streams.len();
    let hashes: Vec<Result<u64>> = streams.into_par_iter().map(|stream| of_stream(source, stream)).collect();
    Ok(combined(&hashes.into_iter().collect::<Result<Vec<_>>>()?))
}

fn of_stream<S: Source + ?Sized>(source: &S, stream: usize) -> Result<u64> {
    let mut hash = XxHash3_64::new();
    hash.write(source.info().self_attention.word().as_bytes());
    hash.write(source.info().streams[stream].label.to_string().as_bytes());
    let (mut reader, mut block) = (source.open(stream)?, RowBlock::default());
    while reader.read(&mut block, ROWS)? > 0 {
        for row in block.rows() {
            hash.write(&row.step.0.to_le_bytes());
            // A step without information has no weights, which a row of another length cannot imitate.
            hash.write(&(row.weights.len() as u64).to_le_bytes());
            row.weights.iter().for_each(|weight| hash.write(&weight.to_le_bytes()));
        }
        block.clear();
    }
    Ok(hash.finish())
}

fn of_file(file: &SharedFile) -> std::io::Result<Vec<u64>> {
    let blocks = file.len()?.div_ceil(BLOCK as u64);
    (0..blocks).into_par_iter().map_init(|| vec![0; CHUNK], |buffer, block| of_block(file, block, buffer)).collect()
}

/// The hash of some bytes of a file; fewer where it ends before.
///
/// # Errors
/// When they cannot be read.
pub(super) fn of_range(file: &SharedFile, start: u64, len: u64) -> std::io::Result<u64> {
    of_bytes(file, start, len, &mut vec![0; CHUNK])
}

fn of_block(file: &SharedFile, block: u64, buffer: &mut [u8]) -> std::io::Result<u64> {
    of_bytes(file, block * BLOCK as u64, BLOCK as u64, buffer)
}

fn of_bytes(file: &SharedFile, start: u64, len: u64, buffer: &mut [u8]) -> std::io::Result<u64> {
    let (mut hash, mut hashed) = (XxHash3_64::new(), 0);
    while hashed < len {
        let room = (buffer.len() as u64).min(len - hashed) as usize;
        match file.read_at(&mut buffer[..room], start + hashed) {
            Ok(0) => break,
            Ok(read) => {
                hash.write(&buffer[..read]);
                hashed += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hash.finish())
}

/// One hash of several, in their order.
pub(super) fn combined(blocks: &[u64]) -> String {
    let mut hash = XxHash3_64::new();
    blocks.iter().for_each(|block| hash.write(&block.to_le_bytes()));
    format!("{:016x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::SelfAttention;
    use crate::trace::memory::MemoryTrace;
    use crate::trace::storage::new_copy;
    use std::io::Write;

    fn in_file(bytes: &[u8]) -> Storage {
        let mut copy = new_copy().expect("a temporary file");
        copy.write_all(bytes).expect("written");
        Storage::File(copy.into())
    }

    fn hash(storage: &Storage) -> String {
        of_storage(storage).expect("readable")
    }

    #[test]
    fn it_is_pinned_so_that_results_of_different_versions_can_be_compared() {
        assert_eq!(hash(&Storage::Memory(b"kvsim".to_vec().into())), of_text("kvsim"));
        assert_eq!(of_text("kvsim"), "0008502bc02bdc44");
        assert_eq!(of_text(""), "9f77619e37e86919");
    }

    #[test]
    fn a_file_and_a_copy_in_memory_are_one_content() {
        for len in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7] {
            let bytes: Vec<u8> = (0..len).map(|index| (index % 251) as u8).collect();
            let file = hash(&in_file(&bytes));
            assert_eq!(file, hash(&Storage::Memory(bytes.clone().into())), "{len}");
            for at in [0, len / 2, len.saturating_sub(1)].into_iter().filter(|at| *at < len) {
                let mut other = bytes.clone();
                other[at] ^= 1;
                assert_ne!(file, hash(&Storage::Memory(other.into())), "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn it_does_not_depend_on_the_number_of_threads() {
        let storage = in_file(&vec![7; 5 * BLOCK + 3]);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| hash(&storage))
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn rows_are_told_apart_by_weight_label_and_what_is_missing() {
        let of = |head: &str, rows: &[Option<&[f32]>]| {
            let rows = rows.iter().map(|row| row.map(<[f32]>::to_vec)).collect();
            let trace = MemoryTrace::new("x", SelfAttention::Included).with_stream(0, head, rows).expect("sound");
            trace.content_hash().expect("readable")
        };
        let base = of("0", &[Some(&[1.0]), Some(&[0.5, 0.5])]);
        assert_eq!(base, of("0", &[Some(&[1.0]), Some(&[0.5, 0.5])]));
        for other in [
            of("0", &[Some(&[1.0]), Some(&[0.25, 0.75])]),
            of("1", &[Some(&[1.0]), Some(&[0.5, 0.5])]),
            of("0", &[Some(&[1.0]), None]),
            of("0", &[Some(&[1.0])]),
        ] {
            assert_ne!(base, other);
        }
    }
}
