//! Recorded attention: the figures that a correct build reports, and those of the slow reference.

use crate::common::assert_near;
use crate::common::files::package;
use crate::common::lanes::read_rows;
use crate::common::shared;
use crate::slow;
use kvsim::analyze::agreement::spearman;
use kvsim::analyze::{Analysis, StreamAnalysis, analyze};
use kvsim::replay::{BadRows, caches_of};
use kvsim::trace::options::ReadOptions;
use kvsim::trace::{Source, formats};
use kvsim::word::Word;
use std::path::Path;

/// Ratio, |S0| / n and |S1| / n in the three readings.
const PERSISTENCE: [(&str, [[f64; 3]; 3]); 4] = [
    ("3.mean", [[0.996894, 0.981445, 0.314453], [1.0, 1.0, 0.245117], [1.0, 0.025391, 0.023438]]),
    ("10.1", [[0.995968, 0.974609, 0.484375], [1.0, 0.999023, 0.408203], [1.0, 0.021484, 0.021484]]),
    ("15.mean", [[1.0, 0.993164, 0.552734], [1.0, 1.0, 0.501953], [1.0, 0.029297, 0.003906]]),
    ("16.6", [[1.0, 0.956055, 0.308594], [1.0, 0.999023, 0.283203], [1.0, 0.052734, 0.013672]]),
];

/// Share on the first four, share on itself, local width, effective size; and the heavy positions.
const LOCALITY: [(&str, [f64; 4], &[usize]); 4] = [
    ("3.mean", [0.055062, 0.022638, 1014.5, 58.239114], &[0, 12, 30, 119]),
    ("10.1", [0.004070, 0.046121, 453.5, 14.915305], &[12]),
    ("15.mean", [0.391618, 0.017726, 371.0, 40.774831], &[0]),
    ("16.6", [0.025694, 0.013931, 175.0, 55.787167], &[]),
];

fn open(path: &Path) -> Box<dyn Source> {
    formats::open(path.as_os_str(), &ReadOptions::default()).expect("a sound trace")
}

fn analyzed(source: &dyn Source) -> Analysis {
    let caches = caches_of(source.info()).expect("sound metadata");
    analyze(source, &caches, BadRows::Error, &|_| ()).expect("a sound trace")
}

#[track_caller]
fn assert_persistence(stream: &StreamAnalysis, expected: &[[f64; 3]; 3]) {
    for (overlap, expected) in stream.persistence.iter().zip(expected) {
        let figures = [overlap.ratio, overlap.chance, overlap.second_share];
        figures
            .iter()
            .zip(expected)
            .for_each(|(figure, expected)| assert_near(figure.expect("sets"), *expected, overlap.reading.word()));
    }
}

#[track_caller]
fn assert_locality(stream: &StreamAnalysis, expected: &[f64; 4], heavy: &[usize]) {
    let locality = &stream.locality;
    let figures = [locality.first_4, locality.on_self, locality.local_90, locality.effective_size];
    figures
        .iter()
        .zip(expected)
        .for_each(|(figure, expected)| assert_near(figure.expect("rows"), *expected, &stream.label.to_string()));
    let positions: Vec<usize> = locality.heavy.iter().map(|heavy| heavy.position).collect();
    assert_eq!(positions, heavy, "{}", stream.label);
}

#[test]
fn the_large_recording_gives_the_right_values() {
    let Some(path) = shared::trace("smollm2-prose-2048.safetensors") else { return };
    let analysis = analyzed(&*open(&path));
    assert_eq!(analysis.streams.len(), 4);
    for (stream, (name, expected)) in analysis.streams.iter().zip(&PERSISTENCE) {
        assert_eq!(stream.label.to_string(), *name);
        assert_persistence(stream, expected);
    }
    for (stream, (_, expected, heavy)) in analysis.streams.iter().zip(&LOCALITY) {
        assert_locality(stream, expected, heavy);
    }
    let [pair] = &analysis.agreement[..] else { panic!("the means of two layers are there") };
    assert_eq!(pair.layers, [3, 15]);
    assert_near(pair.spearman.expect("they vary"), 0.401189, "layers 3 and 15");
}

#[test]
fn the_small_recording_gives_what_the_slow_reference_gives() {
    let source = open(&package("traces/smollm2-prose-512.safetensors"));
    let analysis = analyzed(&*source);
    for (index, stream) in analysis.streams.iter().enumerate() {
        let widened = |row: Option<Vec<f32>>| row.expect("every step has a row").into_iter().map(f64::from).collect();
        let rows: slow::Rows = read_rows(&*source, index).into_iter().map(widened).collect();
        assert_persistence(stream, &slow::persistence(&rows));
        assert_locality(stream, &slow::locality(&rows), &slow::heavy(&rows));
        let late = slow::late_attention(&rows);
        late.iter().zip(&stream.late_attention).for_each(|(slow, fast)| assert_near(*fast, *slow, "late rows"));
        // What a single row holds, stored as f16, has ties.
        let last = &rows[511][..256];
        assert_near(spearman(&late, last).expect("they vary"), slow::spearman(&late, last), "late rows and the last");
    }
}
