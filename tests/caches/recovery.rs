//! How much of what was possible a policy retained.

use crate::common::binary::{Csv, kvsim};
use crate::common::files::Folder;
use crate::made::{known_rows, native, trace};
use crate::reference::SelfKind;
use kvsim::trace::memory::Rows;

fn file(folder: &Folder) -> String {
    let rows: Vec<Rows> = (0..3).map(|seed| known_rows(seed, 60)).collect();
    let streams: Vec<_> = (0..3).map(|layer| (layer as u32, "0", &rows[layer])).collect();
    native(folder, "a.safetensors", &trace(SelfKind::Included, 0, &streams))
}

fn run(path: &str, policies: &str, more: &[&str]) -> Csv {
    let args = ["replay", path, "--policy", policies, "--budget", "10,20", "--recent-window", "4", "-q"];
    Csv::parse(&kvsim(&[&args[..], more].concat()).report())
}

/// The retained mass of a policy at the budget of a row, in the row's layer and head.
fn retained(csv: &Csv, row: usize, policy: &str) -> f64 {
    let same = |other: &usize| {
        ["layer", "head", "budget"].iter().all(|column| csv.text(*other, column) == csv.text(row, column))
    };
    let at = (0..csv.len()).filter(same).find(|other| csv.text(*other, "policy") == policy).expect("it is in the run");
    csv.number(at, "retained_mass")
}

#[test]
fn recovery_is_the_ratio_of_the_means_at_the_same_budget() {
    let folder = Folder::new();
    let path = file(&folder);
    for more in [&[][..], &["--per-stream"], &["--by", "layer"], &["--by", "head"], &["--layer-budget", "pyramid:2"]] {
        let csv = run(&path, "h2o,tova,optimal,oracle", more);
        for row in 0..csv.len() {
            for bound in ["oracle", "optimal"] {
                let ratio = csv.number(row, "retained_mass") / retained(&csv, row, bound);
                let found = csv.number(row, &format!("recovery_{bound}"));
                assert!((found - ratio).abs() < 1e-12, "{more:?}: {} of {bound}", csv.text(row, "policy"));
                let own = csv.text(row, "policy") == bound;
                assert_eq!(own, found == 1.0, "{more:?}: only the bound itself recovers all");
            }
            assert!(csv.number(row, "recovery_oracle") <= 1.0, "{more:?}");
        }
    }
}

#[test]
fn recovery_is_blank_without_the_bound() {
    let folder = Folder::new();
    let path = file(&folder);
    let neither = run(&path, "h2o,tova", &[]);
    assert_eq!((neither.column("recovery_oracle"), neither.column("recovery_optimal")), ("   ".into(), "   ".into()));
    let oracle = run(&path, "h2o,oracle", &[]);
    assert!((0..4).all(|row| oracle.number(row, "recovery_oracle") > 0.0));
    assert_eq!(oracle.column("recovery_optimal"), "   ");
    let full = run(&path, "full,h2o,oracle,optimal", &[]);
    assert_eq!((full.text(0, "recovery_oracle"), full.text(0, "recovery_optimal")), ("", ""), "it has no budget");
}

#[test]
fn recovery_is_blank_where_nothing_was_measured_or_nothing_was_there() {
    let folder = Folder::new();
    let path = file(&folder);
    let csv = run(&path, "h2o,oracle", &["--prompt", "block", "--prompt-len", "60"]);
    assert_eq!(csv.column("recovery_oracle"), "   ");
    let zeros: Rows = (1..=30).map(|len| Some(vec![0.0; len])).collect();
    let path = native(&folder, "zeros.safetensors", &trace(SelfKind::Included, 0, &[(0, "0", &zeros)]));
    let csv = run(&path, "h2o,oracle,optimal", &[]);
    assert_eq!(csv.column("retained_mass"), ["0"; 6].join(" "));
    assert_eq!((csv.column("recovery_oracle"), csv.column("recovery_optimal")), (" ".repeat(5), " ".repeat(5)));
}

#[test]
fn the_order_of_policies_does_not_matter() {
    let folder = Folder::new();
    let path = file(&folder);
    let (one, other) = (run(&path, "h2o,oracle", &[]), run(&path, "oracle,h2o", &[]));
    assert_eq!(one.text(0, "recovery_oracle"), other.text(2, "recovery_oracle"));
    assert_eq!(one.text(1, "recovery_oracle"), other.text(3, "recovery_oracle"));
}
