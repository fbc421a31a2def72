//! Tiny traces with answers worked out by hand.

use crate::common::lanes::{rows_of, trace};
use kvsim::analyze::{StreamAnalysis, analyze, analyze_stream};
use kvsim::replay::{BadRows, caches_of};
use kvsim::trace::memory::{MemoryTrace, Rows};
use kvsim::trace::{SelfAttention, Source};
use kvsim::word::Word;

/// Eight rows, self included; t = 4.
fn eight() -> Rows {
    rows_of(&[
        &[1.0],
        &[0.5, 0.5],
        &[0.5, 0.25, 0.25],
        &[0.5, 0.0, 0.0, 0.5],
        &[0.25, 0.0, 0.5, 0.0, 0.25],
        &[0.25, 0.25, 0.0, 0.0, 0.0, 0.5],
        &[0.0, 0.5, 0.0, 0.0, 0.25, 0.0, 0.25],
        &[0.0, 0.5, 0.0, 0.0, 0.125, 0.125, 0.125, 0.125],
    ])
}

fn analyzed(source: &dyn Source) -> StreamAnalysis {
    analyze_stream(source, 0, BadRows::Error, &|_| ()).expect("a sound trace")
}

/// n, |S0|, |S1| and |S1 and S0| of every reading.
fn counts(stream: &StreamAnalysis) -> Vec<[usize; 4]> {
    let counts =
        stream.persistence.iter().map(|reading| [reading.positions, reading.first, reading.second, reading.both]);
    counts.collect()
}

#[test]
fn the_three_readings_of_persistence_are_as_worked_out() {
    let stream = analyzed(&trace(SelfAttention::Included, &eight()));
    // per row: {0, 3} and {0, 1, 2}; against 1/4: {0, 1, 3} and {1, 2}; by means: {0} and {1}.
    assert_eq!(counts(&stream), [[4, 2, 3, 1], [4, 3, 2, 1], [2, 1, 1, 0]]);
    let words: Vec<&str> = stream.persistence.iter().map(|overlap| overlap.reading.word()).collect();
    assert_eq!(words, ["union-per-row", "union-fixed", "equal-visibility"]);
    let [per_row, fixed, equal] = &stream.persistence[..] else { panic!("three readings") };
    assert_eq!((per_row.ratio, per_row.chance, per_row.second_share), (Some(1.0 / 3.0), Some(0.5), Some(0.75)));
    assert_eq!((fixed.ratio, fixed.chance, fixed.second_share), (Some(0.5), Some(0.75), Some(0.5)));
    assert_eq!((equal.ratio, equal.chance, equal.second_share), (Some(0.0), Some(0.5), Some(0.5)));
}

#[test]
fn a_ratio_of_nothing_is_absent() {
    let rows = rows_of(&[&[1.0], &[0.5, 0.5], &[0.25, 0.5, 0.25]]);
    let stream = analyzed(&trace(SelfAttention::Excluded, &rows));
    assert_eq!(counts(&stream), [[2, 0, 1, 0], [2, 1, 0, 0], [1, 0, 0, 0]]);
    assert_eq!(stream.persistence[0].ratio, Some(0.0));
    assert_eq!(stream.persistence[1].ratio, None);
    assert_eq!((stream.locality.on_self, stream.locality.local_90), (None, None));
}

#[test]
fn locality_is_as_worked_out() {
    let locality = analyzed(&trace(SelfAttention::Included, &eight())).locality;
    assert_eq!((locality.rows, locality.first_4, locality.on_self), (8, Some(0.78125), Some(0.421875)));
    assert_eq!(locality.local_90, Some(2.0), "the widths are 1, 1, 3 and 4");
    let sizes = (1.0 + 2.0 + 2.0 + 4.0 + 4.0 * 2.0_f64.powf(1.5)) / 8.0;
    assert!(locality.effective_size.is_some_and(|size| (size - sizes).abs() < 1e-12));
    let heavy: Vec<(usize, f64)> = locality.heavy.iter().map(|heavy| (heavy.position, heavy.share)).collect();
    assert_eq!(heavy, [(0, 0.375), (1, 0.25), (2, 0.09375), (3, 0.0625), (4, 0.078125), (5, 0.078125)]);
}

/// Layer 1 of head 0 is [`eight`]; in layer 4 late rows look at position 0, the last one at 1.
fn two_layers() -> MemoryTrace {
    let on = |position: usize, len: usize| Some((0..len).map(|index| f32::from(u8::from(index == position))).collect());
    let upper: Rows = (1..=8).map(|len| on(usize::from(len == 8), len)).collect();
    let trace = MemoryTrace::new("two layers", SelfAttention::Included);
    let trace = trace.with_stream(1, "0", eight()).and_then(|trace| trace.with_stream(4, "0", upper));
    let trace = trace.and_then(|trace| trace.with_stream(4, "mean", eight()));
    trace.expect("rows of the right length")
}

#[test]
fn adjacent_layers_are_compared_head_by_head() {
    let trace = two_layers();
    let caches = caches_of(trace.info()).expect("sound metadata");
    let analysis = analyze(&trace, &caches, BadRows::Error, &|_| ()).expect("a sound trace");
    // Late rows give positions 0..4 the sums 1/2 5/4 1/2 0 and 3 1 0 0: ranks 2.5 4 2.5 1 and 4 3 1.5 1.5.
    let [pair] = &analysis.agreement[..] else { panic!("one head is in two layers") };
    assert_eq!((pair.head.to_string().as_str(), pair.layers), ("0", [1, 4]));
    assert!(pair.spearman.is_some_and(|spearman| (spearman - 0.5).abs() < 1e-12), "{:?}", pair.spearman);
}

#[test]
fn the_streams_of_a_layer_are_added_up() {
    let trace = two_layers();
    let caches = caches_of(trace.info()).expect("sound metadata");
    let analysis = analyze(&trace, &caches, BadRows::Error, &|_| ()).expect("a sound trace");
    let [layer] = &analysis.layers[..] else { panic!("one layer has two streams") };
    assert_eq!(layer.label.to_string(), "4.all");
    let streams = analysis.streams[1].persistence.iter().zip(&analysis.streams[2].persistence);
    for (sum, (a, b)) in layer.persistence.iter().zip(streams) {
        assert_eq!([sum.positions, sum.both], [a.positions + b.positions, a.both + b.both]);
        assert_eq!(sum.ratio, Some(sum.both as f64 / sum.second as f64));
    }
}

#[test]
fn steps_without_information_and_skipped_rows_count_nowhere() {
    let mut rows = eight();
    rows[4] = None;
    let known = analyzed(&trace(SelfAttention::Included, &rows));
    rows[4] = Some(vec![0.5, f32::NAN, 0.0, 0.0, 0.5]);
    let bad = trace(SelfAttention::Included, &rows);
    let skipped = analyze_stream(&bad, 0, BadRows::Skip, &|_| ()).expect("bad rows are passed over");
    assert_eq!(known.locality.rows, 7);
    assert_eq!(counts(&known), counts(&skipped));
    assert_eq!(known.late_attention, skipped.late_attention);
    let refusal = analyze_stream(&bad, 0, BadRows::Error, &|_| ()).expect_err("it is no attention").to_string();
    assert!(refusal.contains("row 4 column 1: weight NaN is not a number"), "{refusal}");
}

#[test]
fn a_trace_of_nothing_has_no_figures() {
    let stream = analyzed(&trace(SelfAttention::Included, &Rows::new()));
    assert_eq!(counts(&stream), [[0; 4]; 3]);
    assert!(stream.persistence.iter().all(|overlap| overlap.chance.is_none()));
    let locality = stream.locality;
    assert_eq!((locality.rows, locality.first_4, locality.effective_size), (0, None, None));
}
