//! Rows that the crate rebuilds against those of the reference.

use crate::common::files::Folder;
use crate::common::lanes::{open, read_rows};
use crate::made::{File, Shape, Stored, layer};
use crate::slow::attention::rows_of;
use crate::slow::file::Layer;
use crate::slow::quantise::{Bits, Held};
use kvsim::trace::memory::Rows;
use kvsim::trace::{RowBlock, Source};

const SHAPE: Shape = Shape { heads: 4, kv_heads: 2, positions: 75, width: 20, value_width: 3 };

fn opened(folder: &Folder, file: &File) -> Box<dyn Source> {
    open(folder.write("made.safetensors", file.bytes()))
}

fn all_rows(source: &dyn Source) -> Vec<Rows> {
    (0..source.info().streams.len()).map(|stream| read_rows(source, stream)).collect()
}

/// Layers of every kind, numbered 2, 3, ...
fn layers(stored: Stored) -> Vec<Layer> {
    let plain = layer(SHAPE, 1, stored);
    let other = layer(Shape { heads: 3, kv_heads: 1, width: 7, ..SHAPE }, 2, stored);
    let all = [
        plain.clone(),
        Layer { window: Some(19), ..plain.clone() },
        Layer { softcap: Some(1.5), scale: 3.0, ..plain.clone() },
        Layer { sinks: Some(vec![0.5, -20.0, 3.0, 0.0]), window: Some(40), ..plain },
        other,
    ];
    (2..).zip(all).map(|(number, layer)| Layer { number, ..layer }).collect()
}

fn assert_as_reference(source: &dyn Source, layers: &[Layer]) {
    let mut streams = all_rows(source).into_iter();
    for layer in layers {
        for (head, wanted) in rows_of(layer, &Held::keys(&layer.keys, Bits::FULL)).into_iter().enumerate() {
            let found = streams.next().expect("a stream for each query head");
            assert_eq!(found.len(), wanted.weights.len());
            for (t, (found, wanted)) in found.iter().zip(&wanted.weights).enumerate() {
                let found = found.as_ref().expect("every row is there");
                assert_eq!(found.len(), t + 1);
                for (j, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                    let place = format!("layer {} head {head} row {t} column {j}", layer.number);
                    assert!((found - wanted).abs() <= 2e-6, "{place}: {found} is not {wanted}");
                    assert_eq!(*found == 0.0, *wanted == 0.0, "{place}: {found} and {wanted}");
                }
            }
        }
    }
    assert!(streams.next().is_none());
}

#[test]
fn rebuilt_rows_are_those_of_the_reference_in_every_layer_and_stored_type() {
    for stored in [Stored::F32, Stored::F16, Stored::Bf16] {
        let (folder, layers) = (Folder::new(), layers(stored));
        let source = opened(&folder, &File::of(&layers, stored));
        let labels: Vec<String> = source.info().streams.iter().map(|stream| stream.label.to_string()).collect();
        assert_eq!(labels.join(" "), "2.0 2.1 2.2 2.3 3.0 3.1 3.2 3.3 4.0 4.1 4.2 4.3 5.0 5.1 5.2 5.3 6.0 6.1 6.2");
        assert_as_reference(&*source, &layers);
    }
}

#[test]
fn all_heads_in_one_tensor_are_the_same_rows() {
    let (folder, file) = (Folder::new(), File::of(&layers(Stored::F16), Stored::F16));
    let rows = all_rows(&*opened(&folder, &file));
    for leading_one in [false, true] {
        assert!(all_rows(&*opened(&folder, &file.packed(leading_one))) == rows);
    }
}

#[test]
fn a_row_does_not_depend_on_how_many_are_asked_for() {
    let (folder, file) = (Folder::new(), File::of(&layers(Stored::F32), Stored::F32));
    let source = opened(&folder, &file);
    for stream in [0, 5, 10, 15] {
        let wanted = read_rows(&*source, stream);
        for pattern in [&[1][..], &[5], &[23, 1], &[24, 3, 50], &[1000]] {
            let mut reader = source.open(stream).expect("sound");
            let (mut block, mut asked) = (RowBlock::default(), pattern.iter().cycle());
            while reader.read(&mut block, *asked.next().expect("for ever")).expect("sound") > 0 {}
            let found: Rows = block.rows().map(|row| Some(row.weights.to_vec())).collect();
            assert!(found == wanted, "{pattern:?}");
        }
    }
}

#[test]
fn a_file_that_says_no_scale_takes_that_of_its_channels() {
    let folder = Folder::new();
    let made = Layer { scale: 1.0 / 20.0_f64.sqrt(), ..layer(SHAPE, 1, Stored::F16) };
    let mut file = File::of(std::slice::from_ref(&made), Stored::F16);
    file.metadata.remove("scale.0");
    let source = opened(&folder, &file);
    assert!(source.info().notes[0].contains("1 / sqrt(20) = 0.2236068"), "{:?}", source.info().notes);
    assert_as_reference(&*source, &[made]);
    file.say("scale", "0.25");
    assert_as_reference(&*opened(&folder, &file), &[Layer { scale: 0.25, ..layer(SHAPE, 1, Stored::F16) }]);
}

#[test]
fn which_query_heads_share_a_cache_is_said() {
    let folder = Folder::new();
    let source = opened(&folder, &File::of(&layers(Stored::F16), Stored::F16));
    let said = |key: &str| source.info().metadata.get(key).map(String::as_str);
    assert_eq!([said("query_heads.2"), said("kv_heads.2"), said("kv_heads.6")], [Some("4"), Some("2"), Some("1")]);
    assert_eq!((said("group"), said("sliding_window.3")), (Some("none"), Some("19")));
    let source = opened(&folder, &File::of(&layers(Stored::F16)[..2], Stored::F16));
    assert_eq!(source.info().metadata.get("kv_heads").map(String::as_str), Some("2"));
}
