//! `kvsim plot` and `kvsim table --chart`: results as curves.

use crate::common::binary::kvsim_in;
use crate::common::files::Folder;

const RESULTS: &str = "\
trace,policy,budget,recent_window,retained_mass,peak_miss_rate
a,h2o,64,32,0.5,0.25
a,h2o,128,32,0.75,0.125
a,tova,64,,0.625,0.5
a,tova,128,,0.75,0.0625
a,full,,,1,0
";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("r.csv", RESULTS);
    folder
}

#[test]
fn an_svg_shows_every_figure_and_policy_by_default() {
    let folder = folder();
    let ran = kvsim_in(folder.path(), &["plot", "r.csv", "-o", "r.svg", "-q"]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
    let svg = std::fs::read_to_string(folder.path().join("r.svg")).expect("written");
    for word in ["retained_mass, higher is better", "peak_miss_rate, lower is better", "h2o", "tova", "full", "budget"]
    {
        assert!(svg.contains(word), "{word}");
    }
}

#[test]
fn a_png_is_drawn_in_the_size_asked_for() {
    let folder = folder();
    let more = ["--y", "retained_mass", "--width", "640", "--height", "200", "-o", "r.png"];
    let ran = kvsim_in(folder.path(), &[&["plot", "r.csv"], &more[..]].concat());
    assert_eq!((ran.code, &*ran.stderr), (0, "note: r.png is drawn\n"));
    let png = std::fs::read(folder.path().join("r.png")).expect("written");
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!((&png[16..20], &png[20..24]), (&640_u32.to_be_bytes()[..], &200_u32.to_be_bytes()[..]));
}

#[test]
fn what_cannot_be_drawn_is_refused_and_leaves_nothing_behind() {
    let folder = folder();
    let refused = [
        (&["r.csv", "-o", "r.gif"][..], 2, "a picture ends in .svg or .png"),
        (&["r.csv", "-o", "new.svg", "--y", "loss"], 1, "no column \"loss\""),
        (&["r.csv", "-o", "new.svg", "--filter", "budget=64"], 1, "takes two values: there is no curve to draw"),
        (&["r.csv", "r.csv", "-o", "new.svg"], 1, "the same file twice?"),
        (&["r.csv", "-o", "new.svg", "--x", "policy"], 1, "policy is \"h2o\", not a number"),
    ];
    for (arguments, status, wanted) in refused {
        let ran = kvsim_in(folder.path(), &[&["plot"], arguments].concat());
        assert_eq!(ran.code, status, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn a_chart_in_text_has_a_letter_for_each_policy() {
    let folder = folder();
    let ran = kvsim_in(folder.path(), &["table", "r.csv", "--values", "retained_mass", "--chart"]);
    let chart = ran.report();
    assert!(chart.starts_with("retained_mass, higher is better\n    1.0000 |c"), "{chart}");
    assert!(chart.ends_with("  a  h2o\n  b  tova\n  c  full\n"), "{chart}");
}
