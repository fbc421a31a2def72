//! Random damage to sound files: whatever it does, reading them ends with rows of the right lengths or an error.

use crate::attention::square;
use crate::files::{Folder, npy, npy_fortran, npz, safetensors};
use kvsim::trace::options::{PerLayer, ReadOptions};
use kvsim::trace::{RowBlock, SelfAttention, Source, formats};
use proptest::prelude::*;

/// Sound files of every container; the damage is done to them.
fn sound() -> Vec<(&'static str, Vec<u8>)> {
    let weights: Vec<f32> = (0..6).flat_map(|seed| square(seed, 5)).collect();
    let member = || npy("<f2", &[1, 3, 5, 5], &weights[..75]);
    let metadata = [("self", "included"), ("column_offset.0", "0"), ("sliding_window.1", "5"), ("first_position", "0")];
    vec![
        ("a.npy", npy("<f4", &[2, 3, 5, 5], &weights)),
        ("a.npy", npy_fortran(">f8", &[2, 1, 3, 5, 5], &weights)),
        ("a.npz", npz(&[("layer0.npy", member()), ("layer1.npy", member())], false)),
        ("a.npz", npz(&[("layer0.npy", member()), ("layer1.npy", member())], true)),
        ("a.safetensors", safetensors(&metadata, &[("x", "BF16", &[2, 3, 5, 5], &weights)])),
    ]
}

/// Reads all of a trace, and checks of every row that is handed out that it is as long as its step says.
fn read_and_check(source: &dyn Source) -> kvsim::error::Result<()> {
    let kind = source.info().self_attention;
    for stream in 0..source.info().streams.len() {
        let mut reader = source.open(stream)?;
        let (mut block, mut rows) = (RowBlock::default(), 0);
        while reader.read(&mut block, 3)? > 0 {
            for row in block.rows() {
                assert_eq!(row.step.index(), source.info().first_position.index() + rows);
                assert!(row.weights.is_empty() || row.weights.len() == kind.row_len(row.step));
                rows += 1;
            }
            block.clear();
        }
        assert_eq!(rows, source.info().streams[stream].rows);
    }
    source.warnings();
    source.remarks();
    Ok(())
}

/// The error, if there is one, must be a single line that names the file.
fn check(name: &str, bytes: &[u8], options: &ReadOptions) {
    let folder = Folder::new();
    let path = folder.write(name, bytes);
    let read = formats::open(path.as_os_str(), options).and_then(|source| read_and_check(&*source));
    if let Err(error) = read {
        let text = error.to_string();
        let is_remedy = text.contains("\nimport ");
        assert!((!text.contains('\n') || is_remedy) && !text.ends_with('.'), "{text}");
    }
}

fn digits_changed(bytes: &[u8], at: prop::sample::Index, digit: u8) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
    changed[digits[at.index(digits.len())]] = b'0' + digit;
    changed
}

fn options() -> impl Strategy<Value = ReadOptions> {
    let number = || prop::option::of(prop_oneof![0..8_usize, Just(usize::MAX), Just(u32::MAX as usize)]);
    let kind = prop::option::of(prop_oneof![Just(SelfAttention::Excluded), Just(SelfAttention::Included)]);
    (kind, (number(), number()), number(), number(), number(), prop::option::of(0..1000_u64)).prop_map(
        |(self_attention, (start, end), first_position, offset, window, max_memory)| ReadOptions {
            self_attention,
            start,
            end,
            first_position,
            column_offset: offset.map(PerLayer::all).unwrap_or_default(),
            layer_window: window.map(PerLayer::all).unwrap_or_default(),
            max_memory,
            ..ReadOptions::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flipped_bytes_end_in_rows_or_an_error(
        which in 0..5_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        header in any::<bool>(),
    ) {
        let (name, mut bytes) = sound().remove(which);
        let reach = if header { bytes.len().min(160) } else { bytes.len() };
        for (at, value) in flips {
            bytes[at.index(reach)] = value;
        }
        check(name, &bytes, &ReadOptions::default());
    }

    #[test]
    fn other_digits_end_in_rows_or_an_error(which in 0..5_usize, at: prop::sample::Index, digit in 0..10_u8) {
        let (name, bytes) = sound().remove(which);
        check(name, &digits_changed(&bytes, at, digit), &ReadOptions::default());
    }

    #[test]
    fn files_cut_short_end_in_an_error(which in 0..5_usize, at: prop::sample::Index) {
        let (name, bytes) = sound().remove(which);
        let folder = Folder::new();
        let path = folder.write(name, &bytes[..at.index(bytes.len())]);
        let read = formats::open(path.as_os_str(), &ReadOptions::default()).and_then(|source| read_and_check(&*source));
        prop_assert!(read.is_err());
    }

    #[test]
    fn any_options_end_in_rows_or_an_error(which in 0..5_usize, options in options()) {
        let (name, bytes) = sound().remove(which);
        check(name, &bytes, &options);
    }
}
