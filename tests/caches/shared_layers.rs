//! Layers that use the cache of another layer, and layers without any cache.

use crate::common::binary::{Csv, kvsim};
use crate::common::files::Folder;
use crate::common::shared;
use crate::made::{Dice, known_rows, native, trace};
use crate::reference::SelfKind;
use kvsim::trace::memory::{MemoryTrace, Rows};

/// Two layers of one head over four rows: one always on position 0, the other on position 1 as soon as it can.
const TWO_LAYERS: &str = r#"{"kvsim": 1, "self": "excluded", "seq_len": 5}
{"layer": 0, "head": 0, "step": 1, "attn": [1.0]}
{"layer": 1, "head": 0, "step": 1, "attn": [1.0]}
{"layer": 0, "head": 0, "step": 2, "attn": [1.0, 0.0]}
{"layer": 1, "head": 0, "step": 2, "attn": [0.0, 1.0]}
{"layer": 0, "head": 0, "step": 3, "attn": [1.0, 0.0, 0.0]}
{"layer": 1, "head": 0, "step": 3, "attn": [0.0, 1.0, 0.0]}
{"layer": 0, "head": 0, "step": 4, "attn": [1.0, 0.0, 0.0, 0.0]}
{"layer": 1, "head": 0, "step": 4, "attn": [0.0, 1.0, 0.0, 0.0]}
"#;

fn run(path: &str, more: &[&str]) -> Csv {
    let args = ["replay", path, "--policy", "h2o,tova", "--budget", "2", "--recent-window", "1", "--per-stream", "-q"];
    Csv::parse(&kvsim(&[&args[..], more].concat()).report())
}

#[test]
fn two_layers_on_one_cache_retain_what_two_heads_on_one_cache_do() {
    let folder = Folder::new();
    let path = folder.write("layers.jsonl", TWO_LAYERS);
    assert_eq!(run(&path, &[]).column("retained_mass"), "1 1 1 1", "each alone");
    let shared = run(&path, &["--share-cache", "1:0"]);
    assert_eq!(shared.column("retained_mass"), "0.75 0.75");
    assert_eq!(
        (shared.column("layer"), shared.column("head"), shared.column("rows_measured")),
        ("0 0".into(), "0 0".into(), "8 8".into())
    );
    let heads = TWO_LAYERS.replace(r#""layer": 1, "head": 0"#, r#""layer": 0, "head": 1"#);
    let heads = run(&folder.write("heads.jsonl", heads), &["--kv-heads", "1"]);
    assert_eq!(heads.column("retained_mass"), "0.75 0.75");
    let said = TWO_LAYERS.replace(r#""seq_len": 5"#, r#""seq_len": 5, "cache_of.1": 0"#);
    let said = folder.write("said.jsonl", said);
    assert_eq!(run(&said, &[]).column("retained_mass"), "0.75 0.75");
}

#[test]
fn the_case_at_hand_is_the_shared_one() {
    let Some(trace) = shared::trace("prose.txt") else { return };
    let cases = trace.ancestors().nth(2).expect("a folder of folders").join("cases");
    let case = |name: &str| cases.join(name).to_str().expect("a plain name").to_owned();
    let layers = run(&case("two-layers-one-cache.jsonl"), &["--share-cache", "1:0"]);
    let heads = run(&case("two-layers-one-cache-as-heads.jsonl"), &["--kv-heads", "1"]);
    assert_eq!(
        (layers.column("retained_mass"), heads.column("retained_mass")),
        ("0.75 0.75".into(), "0.75 0.75".into())
    );
}

/// A trace of these layers, each with as many heads, and the same rows as heads of one layer.
fn drawn(dice: &mut Dice, layers: u32, heads: u32) -> [MemoryTrace; 2] {
    let kind = SelfKind::Included;
    let rows: Vec<Rows> = (0..layers * heads).map(|_| known_rows(dice.below(1 << 20) as u32, 30)).collect();
    let place = |index: u32| (index / heads, (index % heads).to_string());
    let as_layers: Vec<_> = (0..).map(place).zip(&rows).collect();
    let as_layers: Vec<_> = as_layers.iter().map(|((layer, head), rows)| (*layer, head.as_str(), *rows)).collect();
    // The rows of one head in all layers follow each other.
    let of_head = (0..heads).flat_map(|head| (0..layers).map(move |layer| (layer * heads + head) as usize));
    let names: Vec<String> = (0..rows.len()).map(|index| index.to_string()).collect();
    let as_heads: Vec<_> = of_head.zip(&names).map(|(index, name)| (0, name.as_str(), &rows[index])).collect();
    [trace(kind, 0, &as_layers), trace(kind, 0, &as_heads)]
}

#[test]
fn layers_share_as_heads_do_whatever_the_rows() {
    for seed in 0..12 {
        let mut dice = Dice::new(seed);
        let (layers, heads) = (2 + dice.below(3) as u32, 1 + dice.below(3) as u32);
        let [as_layers, as_heads] = drawn(&mut dice, layers, heads);
        let owner = dice.below(layers as usize) as u32;
        let said = (0..layers).filter(|layer| *layer != owner);
        let as_layers =
            said.fold(as_layers, |trace, layer| trace.with_metadata(&format!("cache_of.{layer}"), &owner.to_string()));
        let replayed = |source: &MemoryTrace, more: &[&str]| {
            let folder = Folder::new();
            let path = native(&folder, "a.safetensors", source);
            let args = ["replay", &path, "--policy", "h2o,tova,snapkv", "--budget", "7", "--recent-window", "2"];
            Csv::parse(&kvsim(&[&args[..], &["--per-stream", "-q"], more].concat()).report())
        };
        let (shared, grouped) = (replayed(&as_layers, &[]), replayed(&as_heads, &["--kv-heads", &heads.to_string()]));
        for column in ["policy", "retained_mass", "heavy_recall", "evicted", "rows_measured"] {
            assert_eq!(shared.column(column), grouped.column(column), "seed {seed}: {column}");
        }
        assert!(shared.column("layer").split(' ').all(|layer| layer == owner.to_string()), "seed {seed}");
    }
}

#[test]
fn what_cannot_be_one_cache_is_refused_with_the_reason() {
    let (folder, rows) = (Folder::new(), known_rows(1, 8));
    let source = trace(SelfKind::Included, 0, &[(0, "0", &rows), (0, "1", &rows), (1, "0", &rows)]);
    let path = native(&folder, "a.safetensors", &source);
    let run = |more: &[&str]| kvsim(&[&["replay", &path, "--policy", "tova", "--budget", "4"], more].concat());
    let problem = "layer 1 uses the cache of layer 0: its heads are 0, those of layer 0 are 0, 1";
    run(&["--share-cache", "1:0"]).refuses(2, &[problem]);
    run(&["--share-cache", "1:0,0:1"]).refuses(2, &["cache_of.0 is 1, a layer that uses the cache of layer 0 itself"]);
    for text in ["1", "1:", "x:0", "1:0,1:0"] {
        let ran = run(&["--share-cache", text]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{text}");
        assert!(ran.stderr.contains("is not a layer and the layer whose cache it uses"), "{}", ran.stderr);
    }
    let said = native(&folder, "said.safetensors", &source.with_metadata("cache_of.1", "0"));
    let against = kvsim(&["replay", &said, "--policy", "tova", "--budget", "4", "--share-cache", "1:2"]);
    against.refuses(2, &["--share-cache 1:2 contradicts the metadata", "cache_of.1 is 0", "--force"]);
}

#[test]
fn a_layer_whose_owner_is_not_replayed_is_told_of() {
    let (folder, rows) = (Folder::new(), known_rows(1, 8));
    let source = trace(SelfKind::Included, 0, &[(0, "0", &rows), (1, "0", &rows)]).with_metadata("cache_of.1", "0");
    let path = native(&folder, "a.safetensors", &source);
    let ran = kvsim(&["replay", &path, "--policy", "tova", "--budget", "4", "--layers", "1", "--per-stream"]);
    assert!(ran.stderr.contains("layer 1 uses the cache of layer 0, whose rows are not replayed"), "{}", ran.stderr);
    assert_eq!(Csv::parse(&ran.stdout).column("layer"), "1");
}

/// A model of twelve layers of which three have a cache.
fn hybrid() -> MemoryTrace {
    let rows = known_rows(3, 30);
    trace(SelfKind::Included, 0, &[(3, "0", &rows), (7, "0", &rows), (11, "0", &rows)])
        .with_metadata("num_layers", "12")
}

fn budgets(path: &str, budget: &str, shape: &str, more: &[&str]) -> Vec<usize> {
    let args = ["replay", path, "--policy", "sliding-window", "--budget", budget, "--layer-budget", shape];
    let csv = Csv::parse(&kvsim(&[&args[..], &["--per-stream", "-q"], more].concat()).report());
    (0..csv.len()).map(|row| csv.number(row, "layer_budget") as usize).collect()
}

#[test]
fn layers_without_a_cache_get_no_budget() {
    let folder = Folder::new();
    let unsaid = native(&folder, "unsaid.safetensors", &hybrid());
    let listed = native(&folder, "listed.safetensors", &hybrid().with_metadata("cache_layers", "3,7,11"));
    let by_heads = [0, 1, 2, 4, 5, 6, 8, 9, 10]
        .iter()
        .fold(hybrid(), |trace, layer| trace.with_metadata(&format!("kv_heads.{layer}"), "0"));
    let by_heads = native(&folder, "by-heads.safetensors", &by_heads);
    let table = folder.write("table.json", r#"{"3": 8, "7": 6, "11": 4, "0": 100}"#);
    for (shape, dealt) in
        [("pyramid:2", [8, 6, 4]), ("funnel:2", [4, 6, 8]), (&table, [8, 6, 4]), ("uniform", [6, 6, 6])]
    {
        assert_eq!(budgets(&listed, "6", shape, &[]), dealt, "{shape}");
        assert_eq!(budgets(&by_heads, "6", shape, &[]), dealt, "{shape}");
        assert_eq!(budgets(&unsaid, "6", shape, &["--cache-layers", "3,7,11"]), dealt, "{shape}");
    }
    for budget in 5..20 {
        let dealt: usize = budgets(&listed, &budget.to_string(), "pyramid:3.5", &[]).iter().sum();
        assert_eq!(dealt, 3 * budget);
    }
    assert_eq!(budgets(&unsaid, "6", "pyramid:2", &[]).iter().sum::<usize>(), 16, "twelve layers have a cache");
}

#[test]
fn pyramidkv_deals_over_layers_with_a_cache_too() {
    let folder = Folder::new();
    let listed = native(&folder, "listed.safetensors", &hybrid().with_metadata("cache_layers", "3,7,11"));
    let args = ["replay", &listed, "--policy", "pyramidkv", "--recent-window", "1", "--per-stream", "-q"];
    for budget in 5..20 {
        let csv = Csv::parse(&kvsim(&[&args[..], &["--budget", &budget.to_string()]].concat()).report());
        let dealt: f64 = (0..csv.len()).map(|row| csv.number(row, "layer_budget")).sum();
        assert!((3 * budget - 1..=3 * budget).contains(&(dealt as usize)), "{dealt} of 3 times {budget}");
    }
}

#[test]
fn a_layer_that_shares_gets_no_budget_of_its_own() {
    let (folder, rows) = (Folder::new(), known_rows(3, 30));
    let source = trace(SelfKind::Included, 0, &[(0, "0", &rows), (1, "0", &rows), (2, "0", &rows), (3, "0", &rows)]);
    let source = source.with_metadata("cache_of.1", "0").with_metadata("cache_of.3", "2");
    let path = native(&folder, "a.safetensors", &source);
    assert_eq!(budgets(&path, "6", "pyramid:2", &[]), [8, 4]);
    assert_eq!(budgets(&path, "6", "pyramid:2", &["--layers", "2,3"]), [4]);
}

#[test]
fn rows_of_a_layer_without_a_cache_are_refused() {
    let folder = Folder::new();
    let path = native(&folder, "a.safetensors", &hybrid().with_metadata("cache_layers", "3,7"));
    let run = |more: &[&str]| kvsim(&[&["replay", &path, "--policy", "tova", "--budget", "4"], more].concat());
    run(&[]).refuses(1, &["there is a stream of layer 11, which is said to have no cache"]);
    run(&["--cache-layers", "3,7,11"])
        .refuses(2, &["--cache-layers 3,7,11 contradicts", "cache_layers is 3,7", "--force"]);
    assert_eq!(run(&["--cache-layers", "3,7,11", "--force"]).code, 0);
}
