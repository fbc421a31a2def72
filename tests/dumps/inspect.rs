//! The last line of `kvsim inspect` is the command that replays the trace as it was understood.

use crate::attention::{square, triangle};
use crate::binary::{Ran, kvsim};
use crate::cases::case;
use crate::files::{Folder, npy, npz};
use std::path::Path;

fn inspected(path: &Path, args: &[&str]) -> String {
    let mut all = vec!["inspect", path.to_str().expect("plain"), "-q"];
    all.extend(args);
    let Ran { code, stdout, stderr } = kvsim(&all);
    assert_eq!((code, stderr.as_str()), (0, ""));
    stdout.lines().last().expect("a last line").trim().to_owned()
}

/// Runs the command, as a shell would; names here need no quotes but for patterns.
fn assert_runs(command: &str) {
    let words: Vec<String> = command.split(' ').skip(1).map(|word| word.replace('\'', "")).collect();
    let ran = kvsim(&[&words[..], &["-q".to_owned()]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command}");
    assert!(ran.stdout.lines().count() > 1);
}

#[test]
fn the_command_says_what_was_told_and_what_was_found_out() {
    let folder = Folder::new();
    let plain = folder.write("plain.npy", &npy("<f4", &[9, 9], &square(1, 9)));
    let mut rows = triangle(1, 9);
    rows.iter_mut().for_each(|row| *row.last_mut().expect("a weight") = 0.0);
    let excluded = folder.write("excluded.npy", &npy("<f4", &[9, 9], &crate::attention::padded(&rows, 9).concat()));
    let layers = folder.write("layers.npy", &npy("<f4", &[2, 1, 9, 9], &[square(1, 9), square(2, 9)].concat()));
    let cases: [(&Path, &[&str], &str); 7] = [
        (&plain, &[], ""),
        (&plain, &["--start", "0", "--normalize", "rows"], " --start 0 --normalize rows"),
        (&excluded, &[], " --self excluded"),
        (&excluded, &["--self", "included"], " --self included"),
        (&layers, &[], " --axes layer,head,query,key"),
        (&case("transformerlens-cache.safetensors"), &["--array", "*hook_pattern"], " --array '*hook_pattern'"),
        (&case("hf-generate-by-position.npz"), &[], " --prompt block"),
    ];
    for (path, args, expected) in cases {
        let command = inspected(path, args);
        assert_eq!(command, format!("kvsim replay {}{expected}", path.display()));
        assert_runs(&command);
    }
    let bad = inspected(&case("nan-padding-rows-left.npy"), &[]);
    assert!(bad.ends_with(" --on-bad-row skip"), "{bad}");
}

#[test]
fn words_that_a_shell_would_take_apart_are_quoted() {
    let folder = Folder::new();
    let path = folder.write("it's a trace.npz", &npz(&[("a.npy", npy("<f4", &[9, 9], &square(1, 9)))], false));
    let command = inspected(&path, &[]);
    assert!(command.ends_with("it'\\''s a trace.npz'"), "{command}");
}
