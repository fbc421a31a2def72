//! `kvsim memory`: the bytes of a KV cache from numbers and from a configuration.

use crate::common::binary::{kvsim, kvsim_reading};
use serde_json::Value;

const OPT_175B: [&str; 7] = ["memory", "--layers", "96", "--kv-heads", "96", "--head-dim", "128"];

fn numbers(more: &[&str]) -> Value {
    let args = [&OPT_175B[..], &["--format", "json"], more].concat();
    serde_json::from_str(&kvsim(&args).report()).expect("an object")
}

fn text(more: &[&str]) -> String {
    kvsim(&[&OPT_175B[..], more].concat()).report()
}

#[test]
fn opt_175b_at_batch_128_takes_1152_gib() {
    let answers = numbers(&["--length", "2048", "--batch", "128"]);
    assert_eq!(answers["cache_bytes"], 1_236_950_581_248_u64);
    assert!(text(&["--length", "2048", "--batch", "128"]).contains("1152 GiB"));
}

#[test]
fn eight_devices_of_80_less_325_hold_35_sequences_in_gib_and_32_in_gb() {
    let fit = |memory, weights| {
        let answers = numbers(&["--length", "2048", "--devices", "8", "--device-memory", memory, "--weights", weights]);
        answers["batch"].as_u64()
    };
    assert_eq!(fit("80", "325"), Some(35));
    assert_eq!(fit("80GiB", "325GiB"), Some(35));
    assert_eq!(fit("80GB", "325GB"), Some(32));
    assert_eq!(fit("80GiB", "325.96GiB"), Some(34), "175e9 weights of two bytes");
}

#[test]
fn a_fifth_in_four_bits_is_20_times_smaller_and_scales_take_that_to_17_8() {
    let times = |more: &[&str]| {
        let args = [&["--length", "2000", "--budget", "20%", "--bits", "4"], more].concat();
        format!("{:.1}", numbers(&args)["times_smaller"].as_f64().expect("a number"))
    };
    assert_eq!(times(&[]), "20.0");
    assert_eq!(times(&["--bit-group", "64"]), "17.8");
}

#[test]
fn a_configuration_is_read_and_its_windows_are_said() {
    let config = r#"{"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
        "sliding_window": 512, "layer_types": ["sliding_attention", "sliding_attention", "full_attention",
        "full_attention"], "dtype": "bfloat16"}"#;
    let ran = kvsim_reading(config, &["memory", "-", "--length", "4096", "--format", "json"]);
    assert!(ran.stderr.contains("2 of 4 layers attend through a sliding window"), "{}", ran.stderr);
    let answers: Value = serde_json::from_str(&ran.stdout).expect("an object");
    assert_eq!(answers["layer_position_bytes"], 1024);
    assert_eq!(answers["sequence_bytes"], 1024 * (2 * 512 + 2 * 4096));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mixed = [&OPT_175B[..], &["--length", "8", "--device-memory", "80GiB", "--weights", "325GB"]].concat();
    kvsim(&mixed).refuses(2, &["80GiB and 325GB are in different units", "write both in one"]);
    let unit = [&OPT_175B[..], &["--length", "8", "--device-memory", "80GiB", "--unit", "gb"]].concat();
    kvsim(&unit).refuses(2, &["--unit GB and amounts in GiB"]);
    let group = [&OPT_175B[..], &["--length", "8", "--bits", "16", "--bit-group", "64"]].concat();
    kvsim(&group).refuses(2, &["--bit-group", "name fewer --bits"]);
    kvsim_reading("[]", &["memory", "-", "--length", "8"]).refuses(1, &["not a model's config.json"]);
}
