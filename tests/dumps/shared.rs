//! A recorded square array against the same recording in the native format.

use crate::attention::{open, read_all};
use std::path::PathBuf;

#[test]
fn the_recorded_square_gives_the_rows_of_the_packed_file() {
    let Some(folder) = std::env::var_os("KVSIM_SHARED").map(PathBuf::from) else {
        eprintln!("skipped: KVSIM_SHARED names no folder with recorded traces");
        return;
    };
    let trace =
        |extension: &str| open(&folder.join("traces").join("smollm2-prose-512-layer15").with_extension(extension));
    let (square, packed) = (trace("npy"), trace("safetensors"));
    assert_eq!(square.info().positions, 512);
    assert_eq!(square.info().self_attention, packed.info().self_attention);
    assert!(square.info().notes.is_empty(), "{:?}", square.info().notes);
    assert!(read_all(&*square).expect("readable") == read_all(&*packed).expect("readable"), "the rows differ");
    assert!(square.warnings().is_empty(), "{:?}", square.warnings());
}
