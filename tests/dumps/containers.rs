//! The same attention in every shape, number type, byte order, index order and container reads the same.

use crate::attention::{assert_same, included, open, open_with, square, triangle};
use crate::files::{Folder, npy, npy_fortran, npy_of, npz, safetensors};
use kvsim::trace::memory::MemoryTrace;
use kvsim::trace::options::ReadOptions;

const T: usize = 9;

/// The cells of squares of these seeds, one after the other.
fn squares(seeds: std::ops::Range<u32>) -> Vec<f32> {
    seeds.flat_map(|seed| square(seed, T)).collect()
}

/// Layers and heads in order, with seeds in order.
fn expected(layers: &[u32], heads: u32) -> MemoryTrace {
    let label = |index: u32| (layers[(index / heads) as usize], index % heads);
    let streams: Vec<_> =
        (0..layers.len() as u32 * heads).map(|index| (label(index).0, label(index).1, triangle(index, T))).collect();
    included(&streams)
}

#[test]
fn every_shape_of_a_square_reads_the_same() {
    let folder = Folder::new();
    let cases: [(&[usize], &[u32], u32); 6] = [
        (&[T, T], &[0], 1),
        (&[3, T, T], &[0], 3),
        (&[1, 3, T, T], &[0], 3),
        (&[2, 3, T, T], &[0, 1], 3),
        (&[2, 1, 3, T, T], &[0, 1], 3),
        (&[1, 1, 1, T, T], &[0], 1),
    ];
    for (shape, layers, heads) in cases {
        let weights = squares(0..layers.len() as u32 * heads);
        let path = folder.write("a.npy", &npy("<f4", shape, &weights));
        assert_same(&*open(&path), &expected(layers, heads));
        let path = folder.write("a.safetensors", &safetensors(&[], &[("weights", "F32", shape, &weights)]));
        assert_same(&*open(&path), &expected(layers, heads));
    }
}

#[test]
fn every_number_type_byte_order_and_index_order_reads_the_same() {
    let folder = Folder::new();
    let (shape, weights) = ([2, 3, T, T], squares(0..6));
    for descr in ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"] {
        for bytes in [npy(descr, &shape, &weights), npy_fortran(descr, &shape, &weights)] {
            let source = open(&folder.write("a.npy", &bytes));
            assert_same(&*source, &expected(&[0, 1], 3));
            assert_eq!(
                source.info().streams[0].dtype,
                descr.replace(['<', '>'], "").replace("f2", "f16").replace("f4", "f32").replace("f8", "f64")
            );
        }
    }
    for dtype in ["F16", "BF16", "F32", "F64"] {
        let bytes = safetensors(&[], &[("any name", dtype, &shape, &weights)]);
        assert_same(&*open(&folder.write("a.safetensors", &bytes)), &expected(&[0, 1], 3));
    }
}

#[test]
fn fortran_order_says_where_it_went() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy_fortran("<f2", &[T, T], &square(0, T)));
    for (max_memory, place) in [(None, "to a temporary file"), (Some(1 << 20), "in memory")] {
        let source = open_with(&path, &ReadOptions { max_memory, ..Default::default() });
        assert_same(&*source, &expected(&[0], 1));
        assert!(source.info().notes[0].contains(place), "{:?}", source.info().notes);
    }
}

#[test]
fn doubles_are_rounded_to_the_nearest_single() {
    let folder = Folder::new();
    let third = 1.0_f64 / 3.0;
    let cells: Vec<u8> = [1.0, 0.0, third, 1.0 - third].iter().flat_map(|cell: &f64| cell.to_le_bytes()).collect();
    let source = open(&folder.write("a.npy", &npy_of("<f8", false, &[2, 2], &cells)));
    assert_same(&*source, &included(&[(0, 0, vec![vec![1.0], vec![third as f32, (1.0 - third) as f32]])]));
}

#[test]
fn an_archive_holds_a_member_for_each_layer_or_one_array() {
    let folder = Folder::new();
    let member = |seeds| npy("<f2", &[1, 3, T, T], &squares(seeds));
    for compressed in [false, true] {
        for max_memory in [None, Some(1 << 20)] {
            let options = ReadOptions { max_memory, ..Default::default() };
            // Out of order, and 10 after 9.
            let layers = [("layer_10.npy", member(3..6)), ("layer_9.npy", member(0..3))];
            let source = open_with(&folder.write("a.npz", &npz(&layers, compressed)), &options);
            assert_same(&*source, &expected(&[9, 10], 3));
            let whole = [("arr_0.npy", npy("<f2", &[2, 3, T, T], &squares(0..6)))];
            let source = open_with(&folder.write("a.npz", &npz(&whole, compressed)), &options);
            assert_same(&*source, &expected(&[0, 1], 3));
        }
    }
}

#[test]
fn members_may_be_of_several_types_and_orders() {
    let folder = Folder::new();
    let members = [
        ("a0.npy", npy(">f8", &[3, T, T], &squares(0..3))),
        ("a1.npy", npy_fortran("<f2", &[1, 3, T, T], &squares(3..6))),
    ];
    for compressed in [false, true] {
        assert_same(&*open(&folder.write("a.npz", &npz(&members, compressed))), &expected(&[0, 1], 3));
    }
}

#[test]
fn tensors_are_sorted_by_the_layer_in_their_name() {
    let folder = Folder::new();
    let (a, b) = (squares(0..3), squares(3..6));
    let tensors = [
        ("model.layers.10.attn.0", "BF16", &[1, 3, T, T][..], &b[..]),
        ("model.layers.9.attn.0", "F16", &[3, T, T], &a),
    ];
    assert_same(&*open(&folder.write("a.safetensors", &safetensors(&[], &tensors))), &expected(&[9, 10], 3));
}

#[test]
fn squares_named_as_native_tensors_keep_layer_and_head() {
    let folder = Folder::new();
    let (a, b) = (squares(0..1), squares(1..2));
    let tensors = [("attention.3.0", "F32", &[T, T][..], &a[..]), ("attention.3.1", "F32", &[T, T], &b)];
    assert_same(&*open(&folder.write("a.safetensors", &safetensors(&[], &tensors))), &expected(&[3], 2));
}

#[test]
fn companions_of_the_attention_are_left_out_with_a_note() {
    let folder = Folder::new();
    let tokens = npy_of("<i8", false, &[1, 2], &[0; 16]);
    let members = [("input_ids.npy", tokens), ("layer0.npy", npy("<f4", &[1, T, T], &squares(0..1)))];
    let source = open(&folder.write("a.npz", &npz(&members, false)));
    assert_same(&*source, &expected(&[0], 1));
    assert!(source.info().notes[0].contains("\"input_ids\" is left out"), "{:?}", source.info().notes);
    let weights = squares(0..1);
    let tensors = [("ids", "I32", &[1, 2][..], &[0.0, 0.0][..]), ("layer0", "F32", &[1, T, T], &weights)];
    let source = open(&folder.write("a.safetensors", &safetensors(&[], &tensors)));
    assert_same(&*source, &expected(&[0], 1));
    assert!(source.info().notes[0].contains("\"ids\" is left out"), "{:?}", source.info().notes);
}

#[test]
fn metadata_stays_with_the_trace() {
    let folder = Folder::new();
    let weights = squares(0..1);
    let bytes = safetensors(&[("model", "tiny"), ("kv_heads", "1")], &[("x", "F32", &[T, T], &weights)]);
    let source = open(&folder.write("a.safetensors", &bytes));
    assert_eq!(source.info().metadata["model"], "tiny");
    assert_eq!(source.info().facts.kv_heads.of(7), Some(1));
    assert_eq!(source.info().facts.model.as_deref(), Some("tiny"));
}

#[test]
fn a_dump_without_rows_is_a_trace_without_rows() {
    let source = open(&Folder::new().write("a.npy", &npy_of("<f4", false, &[2, 0, 0], &[])));
    assert_eq!((source.info().positions, source.info().streams.len(), source.info().streams[0].rows), (0, 2, 0));
}
