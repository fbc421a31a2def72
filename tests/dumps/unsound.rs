//! Files that are damaged, cut short or lie about themselves: one line of error, whatever they claim.

use crate::attention::{failure, read_all, square};
use crate::files::{Folder, npy, npy_of, npz, safetensors};
use kvsim::trace::formats;
use kvsim::trace::options::ReadOptions;

#[track_caller]
fn assert_refused(name: &str, bytes: &[u8], expected: &str) {
    let folder = Folder::new();
    let problem = failure(&folder.write(name, bytes), &ReadOptions::default());
    assert!(problem.contains(expected), "{problem}");
    assert!(!problem.contains('\n') && !problem.ends_with('.'), "{problem}");
}

fn array() -> Vec<u8> {
    npy("<f4", &[5, 5], &square(1, 5))
}

#[test]
fn an_array_that_is_cut_short_or_goes_on_is_refused() {
    let whole = array();
    assert_refused("a.npy", &whole[..whole.len() - 1], "truncated: the array needs 100 bytes, 99 are there");
    assert_refused("a.npy", &[whole.as_slice(), &[0]].concat(), "1 bytes follow the array");
    assert_refused("a.npy", &whole[..40], "truncated within the npy header");
    assert_refused("a.npy", b"", "truncated within the npy header");
}

#[test]
fn a_shape_that_claims_more_than_there_is_is_refused_before_memory_is_taken() {
    for shape in [&[1 << 20, 1 << 20][..], &[usize::MAX, 2], &[1 << 40, 0, 0, 1 << 40], &[1 << 21, 0, 0]] {
        let folder = Folder::new();
        failure(&folder.write("a.npy", &npy_of("<f8", false, shape, &[0; 8])), &ReadOptions::default());
        failure(&folder.write("a.npy", &npy_of("<f8", true, shape, &[0; 8])), &ReadOptions::default());
        for compressed in [false, true] {
            let archive = npz(&[("a.npy", npy_of("<f8", true, shape, &[0; 8]))], compressed);
            failure(&folder.write("a.npz", &archive), &ReadOptions::default());
        }
    }
    assert_refused("a.npy", &npy_of("<f8", false, &[1 << 40, 0, 0], &[]), "more than any model has");
    assert_refused("a.npy", &npy_of("<f8", false, &[1, 1 << 40, 0], &[]), "positions are more than");
}

#[test]
fn a_member_that_is_cut_short_is_refused() {
    let whole = array();
    let short = npz(&[("layer0.npy", whole[..whole.len() - 3].to_vec())], true);
    assert_refused("a.npz", &short, "array \"layer0\": truncated: the array needs 100 bytes, 97 are there");
    assert_refused("a.npz", &npz(&[("layer0.npy", b"x".to_vec())], false), "truncated within the npy header");
    let archive = npz(&[("layer0.npy", whole)], true);
    assert_refused("a.npz", &archive[..archive.len() - 30], "not a sound npz archive");
    assert_refused("a.npz", b"", "not a sound npz archive");
}

#[test]
fn a_damaged_member_is_refused() {
    let mut archive = npz(&[("layer0.npy", npy("<f4", &[40, 40], &square(1, 40)))], true);
    // In the middle of what is compressed; what inflates all the same fails its checksum.
    let middle = archive.len() / 2;
    archive[middle] ^= 0x55;
    assert_refused("a.npz", &archive, "array \"layer0\": damaged");
}

#[test]
fn an_archive_without_arrays_is_refused() {
    assert_refused("a.npz", &npz(&[], false), "holds no array");
    assert_refused("a.npz", &npz(&[("readme.txt", vec![1])], false), "holds no array");
}

#[test]
fn names_that_are_there_twice_are_refused() {
    let archive = npz(&[("layer0.npy", array()), ("layer1.npy", array())], false);
    let twice: Vec<u8> = replace(&archive, b"layer1.npy", b"layer0.npy");
    assert_refused("a.npz", &twice, "two members have the same name");
    let weights = square(1, 5);
    let tensors = [("a0", "F32", &[5, 5][..], &weights[..]), ("a1", "F32", &[5, 5], &weights)];
    let twice = replace(&safetensors(&[], &tensors), b"a1", b"a0");
    assert_refused("a.safetensors", &twice, "two tensors are named \"a0\"");
}

fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = bytes.to_vec();
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            replaced[at..at + to.len()].copy_from_slice(to);
        }
    }
    replaced
}

#[test]
fn a_member_whose_bytes_run_past_the_file_is_refused() {
    let mut archive = npz(&[("layer0.npy", array())], false);
    let directory = archive.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("there");
    // Both sizes in the directory; the file itself stays as it is.
    for field in [20, 24] {
        archive[directory + field..][..4].copy_from_slice(&u32::MAX.to_le_bytes()[..4]);
    }
    assert_refused("a.npz", &archive, "a.npz");
}

#[test]
fn what_is_no_number_is_left_to_the_replay_to_name() {
    let folder = Folder::new();
    let weights = [1.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.5, f32::NAN, 0.5];
    let path = folder.write("a.npy", &npy("<f4", &[3, 3], &weights));
    let source = formats::open(path.as_os_str(), &ReadOptions::default()).expect("opened");
    assert!(read_all(&*source).expect("readable")[0][2].1[1].is_nan());
}

#[test]
fn what_is_not_a_number_after_the_token_is_no_position() {
    let folder = Folder::new();
    let with = |stray: f32| [1.0, 0.0, stray, 0.5, 0.5, stray, 0.5, 0.25, 0.25];
    for stray in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MIN, -65504.0] {
        let path = folder.write("a.npy", &npy("<f4", &[3, 3], &with(stray)));
        let source = formats::open(path.as_os_str(), &ReadOptions::default()).expect("opened");
        let rows = read_all(&*source).expect("readable").remove(0);
        assert_eq!(rows[1].1, [0.5, 0.5], "{stray}");
        assert!(source.warnings().is_empty(), "{:?}", source.warnings());
    }
    assert_refused("a.npy", &npy("<f4", &[3, 3], &with(-0.5)), "lies after its own token");
}

#[test]
fn a_file_that_shrinks_while_it_is_read_is_an_error() {
    let folder = Folder::new();
    let path = folder.write("a.npy", &npy("<f4", &[300, 300], &square(1, 300)));
    let source = formats::open(path.as_os_str(), &ReadOptions::default()).expect("opened");
    std::fs::write(&path, b"short").expect("written");
    let problem = read_all(&*source).expect_err("unreadable").to_string();
    assert!(problem.contains("a.npy: ends early: it changed while it was read ("), "{problem}");
}
