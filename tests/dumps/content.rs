//! The content hash: what it tells apart, and what it does not.

use crate::attention::{open, open_with, square};
use crate::files::{Folder, npy, npz, safetensors};
use kvsim::trace::Source;
use kvsim::trace::options::{Normalize, PerLayer, ReadOptions};
use kvsim::trace::spec::MixtureSpec;
use kvsim::trace::synthetic::SyntheticTrace;

fn hash(source: &dyn Source) -> String {
    let hash = source.content_hash().expect("readable");
    assert!(hash.len() == 16 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{hash}");
    hash
}

#[test]
fn the_name_of_a_file_is_not_its_content() {
    let folder = Folder::new();
    let bytes = npy("<f4", &[6, 6], &square(1, 6));
    let first = hash(&*open(&folder.write("a.npy", &bytes)));
    assert_eq!(first, hash(&*open(&folder.write("b.npy", &bytes))));
    let other = npy("<f4", &[6, 6], &square(2, 6));
    assert_ne!(first, hash(&*open(&folder.write("a.npy", &other))), "same header, same size");
}

#[test]
fn a_change_anywhere_in_the_file_counts_whatever_is_read_of_it() {
    let folder = Folder::new();
    let [one, other] = [1, 2].map(|seed| npy("<f4", &[6, 6], &square(seed, 6)));
    let archive = |second: &Vec<u8>, compressed| {
        let members = [("layer0.npy", one.clone()), ("layer1.npy", second.clone())];
        hash(&*open(&folder.write("a.npz", &npz(&members, compressed))))
    };
    for compressed in [false, true] {
        assert_ne!(archive(&one, compressed), archive(&other, compressed));
    }
    let header = |model: &str| {
        let bytes = safetensors(&[("model", model)], &[("x", "F32", &[6, 6], &square(1, 6))]);
        hash(&*open(&folder.write("a.safetensors", &bytes)))
    };
    assert_ne!(header("one"), header("two"));
}

#[test]
fn flags_that_change_what_rows_mean_change_the_content_and_others_do_not() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[6, 6], &square(1, 6)));
    let with = |options: ReadOptions| hash(&*open_with(&path, &options));
    let plain = with(ReadOptions::default());
    let window = |window| ReadOptions { layer_window: PerLayer::all(window), ..Default::default() };
    assert_ne!(with(window(3)), plain);
    assert_ne!(with(window(3)), with(window(4)));
    assert_eq!(with(window(3)), with(window(3)));
    assert_ne!(with(ReadOptions { end: Some(4), ..Default::default() }), plain);
    // These have columns of their own in a report.
    assert_eq!(with(ReadOptions { start: Some(2), ..Default::default() }), plain);
    assert_eq!(with(ReadOptions { normalize: Some(Normalize::Rows), ..Default::default() }), plain);
}

#[test]
fn a_synthetic_trace_is_its_spec_without_the_name() {
    let spec = MixtureSpec::built_in("decode-4096").expect("built in");
    let of = |spec: MixtureSpec| hash(&SyntheticTrace::new(spec));
    let plain = of(spec.clone());
    assert_eq!(plain, of(MixtureSpec { name: "other".to_owned(), ..spec.clone() }));
    assert_ne!(plain, of(MixtureSpec { seed: 8, ..spec.clone() }));
    assert_ne!(plain, of(MixtureSpec { positions: 4095, ..spec }));
}
