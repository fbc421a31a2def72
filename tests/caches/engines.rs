//! Right values on a recorded trace, to the digits that were published: rows combined, layers as one, late cuts,
//! prompts, blocks, windows as a share, bounds; and the first decisions of some.

use crate::common::binary::{Csv, kvsim};
use crate::common::files::Folder;

const PROSE: &str = "traces/smollm2-prose-384.safetensors";

/// Retained mass and peak miss rate of every line, policy by policy in the order asked.
#[track_caller]
fn check(trace: &str, args: &str, wanted: &[&str]) -> Csv {
    let args: Vec<&str> = ["replay", trace, "-q"].into_iter().chain(args.split_whitespace()).collect();
    let csv = Csv::parse(&kvsim(&args).report());
    let six = |row: usize, column: &str| match csv.text(row, column) {
        "" => "-".to_owned(),
        text => format!("{:.6}", text.parse::<f64>().expect("a figure is a number")),
    };
    let found: Vec<String> =
        (0..csv.len()).map(|row| format!("{} / {}", six(row, "retained_mass"), six(row, "peak_miss_rate"))).collect();
    assert_eq!(found, wanted, "{args:?}");
    csv
}

#[track_caller]
fn prose(args: &str, wanted: &[&str]) -> Csv {
    check(PROSE, args, wanted)
}

const FIVE: &str = "--policy h2o,scissorhands,tova,snapkv,streaming-llm";

/// Budget 64, mean.
const MEANS: [&str; 4] = ["0.908529 / 0.008608", "0.918088 / 0.006366", "0.928057 / 0.010055", "0.899456 / 0.009910"];

#[test]
fn heads_are_combined_in_four_ways() {
    let four = "--policy h2o,scissorhands,tova,snapkv --budget 64 --combine";
    prose(&format!("{four} mean"), &MEANS);
    prose(&format!("{four} sum"), &MEANS);
    let most = ["0.907011 / 0.008391", "0.915163 / 0.008753", "0.927807 / 0.010055", "0.899343 / 0.009549"];
    prose(&format!("{four} max"), &most);
    let each = ["0.908529 / 0.008608", "0.917482 / 0.007523"];
    prose("--policy h2o,scissorhands --budget 64 --combine each", &each);
    kvsim(&["replay", PROSE, "-q", "--policy", "tova", "--budget", "64", "--combine", "each"])
        .refuses(2, &["tova", "combine each", "mean, max or sum"]);
}

#[test]
fn a_layer_has_one_set() {
    let layer = ["0.905393 / 0.010706", "0.912918 / 0.009042", "0.924477 / 0.009693", "0.898473 / 0.012514"];
    let csv = prose(&format!("{FIVE} --budget 64 --scope layer"), &[&layer[..], &["0.727619 / 0.330078"]].concat());
    assert_eq!(csv.column("caches"), "12 12 12 12 12", "the bytes are those of one set for each head");
    assert_eq!((csv.text(0, "layer"), csv.text(0, "head"), csv.text(0, "scope")), ("all", "all", "layer"));
    let one_head =
        prose(&format!("{FIVE} --budget 64 --kv-heads 1 --force"), &[&layer[..], &["0.727619 / 0.330078"]].concat());
    assert_eq!(one_head.column("caches"), "4 4 4 4 4");
    prose("--policy h2o,tova --budget 64 --scope layer --combine max", &["0.899432 / 0.011357", "0.923816 / 0.009910"]);
    prose("--policy scissorhands --budget 64 --scope layer --combine each", &["0.912935 / 0.009693"]);
    prose("--policy tova --budget 128 --scope layer", &["0.969348 / 0.003617"]);
}

#[test]
fn a_set_of_a_layer_is_called_so_and_stands_in_its_own_line() {
    let args = ["replay", PROSE, "-q", "--policy", "tova", "--budget", "64", "--scope", "head,layer", "--per-stream"];
    let csv = Csv::parse(&kvsim(&args).report());
    assert_eq!(csv.len(), 12 + 4);
    assert_eq!((csv.text(11, "head"), csv.text(12, "layer"), csv.text(12, "head")), ("kv2", "3", "layer"));
    let by_layer = Csv::parse(&kvsim(&[&args[..9], &["--by", "layer"]].concat()).report());
    assert_eq!(by_layer.column("layer"), "3 3 10 10 15 15 24 24");
    assert_eq!(by_layer.column("caches"), ["3"; 8].join(" "));
}

#[test]
fn cuts_come_every_16_positions() {
    let at_64 = ["0.918372 / 0.007523", "0.926635 / 0.005787", "0.932250 / 0.010200", "0.909347 / 0.008247"];
    let csv = prose(&format!("{FIVE} --budget 64 --evict-every 16"), &[&at_64[..], &["0.741408 / 0.321759"]].concat());
    for (column, wanted) in [("mean_kept", "65"), ("peak_kept", "79"), ("eviction_calls", "240"), ("evicted", "3840")] {
        assert_eq!(csv.column(column), [wanted; 5].join(" "), "{column}");
    }
    let at_49 = ["0.899004 / 0.009983", "0.906289 / 0.009187", "0.914795 / 0.011357", "0.834286 / 0.155382"];
    let csv = prose(&format!("{FIVE} --budget 49 --evict-every 16"), &[&at_49[..], &["0.711554 / 0.340061"]].concat());
    assert_eq!((csv.column("mean_kept"), csv.column("peak_kept")), (["52.5"; 5].join(" "), ["64"; 5].join(" ")));
}

#[test]
fn a_prompt_is_cut_at_its_end_and_what_follows_stays_or_not() {
    let prompt = "--budget 64 --prompt-len 256 --prompt";
    let once = ["0.917886 / 0.005425", "0.924473 / 0.005208", "0.924161 / 0.004991", "0.903706 / 0.006944"];
    let csv = prose(&format!("{FIVE} {prompt} once"), &[&once[..], &["0.667714 / 0.396701"]].concat());
    assert_eq!(csv.column("mean_kept"), ["128.5"; 5].join(" "));
    assert_eq!(csv.column("peak_kept"), ["192"; 5].join(" "));
    let block = ["0.847073 / 0.010851", "0.855070 / 0.011285", "0.879498 / 0.010851", "0.837961 / 0.011936"];
    let csv = prose(&format!("{FIVE} {prompt} block"), &[&block[..], &["0.613011 / 0.399957"]].concat());
    assert_eq!(csv.column("peak_kept"), ["64"; 5].join(" "));
    prose(&format!("--policy h2o {prompt} block --evict-every 16"), &["0.861014 / 0.009332"]);
}

#[test]
fn whole_blocks_go() {
    let alike = "0.798615 / 0.226056";
    let csv = prose(
        &format!("{FIVE} --budget 64 --page 16"),
        &[alike, "0.761151 / 0.304760", "0.828374 / 0.154297", alike, alike],
    );
    assert_eq!(csv.column("mean_kept"), ["52.5"; 5].join(" "));
    let at_128 = ["0.920131 / 0.015408", "0.931039 / 0.026259", "0.945165 / 0.008391", "0.944365 / 0.004847"];
    prose(&format!("{FIVE} --budget 128 --page 16"), &[&at_128[..], &["0.887360 / 0.163339"]].concat());
    let of_32 = ["0.900514 / 0.085286", "0.909663 / 0.077402", "0.911678 / 0.099320", "0.916611 / 0.075231"];
    prose(&format!("{FIVE} --budget 128 --page 32"), &[&of_32[..], &["0.902087 / 0.115234"]].concat());
    let two = "--policy h2o,scissorhands --budget 64 --page 16";
    let csv = prose(&format!("{two} --evict-every 16"), &["0.850819 / 0.142072", "0.852205 / 0.140480"]);
    assert_eq!((csv.column("mean_kept"), csv.column("peak_kept")), ("65 65".to_owned(), "79 79".to_owned()));
    prose(&format!("{two} --prompt block --prompt-len 250"), &["0.701832 / 0.251451", "0.701832 / 0.251451"]);
    prose(&format!("{two} --scope layer"), &[alike, "0.690320 / 0.470992"]);
}

#[test]
fn blocks_that_make_up_no_budget_or_leave_no_choice_are_refused() {
    let refused = |args: &str, wanted: &[&str]| {
        let args: Vec<&str> = ["replay", PROSE, "-q"].into_iter().chain(args.split_whitespace()).collect();
        kvsim(&args).refuses(2, wanted);
    };
    refused("--policy tova --budget 65 --page 16", &["budget 65 is not a whole number of blocks of 16", "64 and 80"]);
    refused("--policy tova --budget 5 --page 16", &["the nearest is 16"]);
    refused(
        "--policy h2o --budget 32 --page 16 --recent-window 18",
        &["blocks of 16 leave nothing to evict at budget 32"],
    );
    refused("--policy random --budget 64 --page 16", &["random", "does not rank its slots"]);
    refused("--policy optimal --budget 64 --page 16", &["optimal", "another problem"]);
    refused("--policy optimal --budget 64 --evict-every 2", &["optimal", "another problem"]);
    refused("--policy full --budget 64 --page 16", &["--page: no chosen policy evicts slots"]);
    // Of two blocks, the window of 17 covers one: there is one to choose.
    let args = ["replay", PROSE, "-q", "--policy", "h2o", "--budget", "32", "--page", "16", "--recent-window", "17"];
    assert_eq!(Csv::parse(&kvsim(&args).report()).column("peak_kept"), "32");
}

#[test]
fn windows_are_a_share_of_the_budget() {
    let csv = prose(
        "--policy h2o,scissorhands --budget 65,128 --recent-window 50%",
        &["0.909674 / 0.008464", "0.964378 / 0.002170", "0.919287 / 0.006004", "0.969190 / 0.001085"],
    );
    assert_eq!(csv.column("recent_window"), "50% 50% 50% 50%");
}

#[test]
fn bounds_hold_under_every_schedule() {
    prose("--policy oracle --budget 64 --evict-every 1,16", &["0.965403 / -", "0.974206 / -"]);
    let prompt = "--prompt block,once --prompt-len 256";
    prose(&format!("--policy oracle --budget 64 {prompt}"), &["0.938523 / -", "0.972792 / -"]);
    prose(
        "--policy optimal --budget 64,128 --prompt once --prompt-len 256",
        &["0.940980 / 0.000651", "0.975697 / 0.000000"],
    );
}

#[test]
fn openvino_evicts_as_the_engine_does() {
    let sizes = |sizes: [u32; 3]| {
        let [start, recent, max] = sizes;
        format!(
            "--policy openvino:start-size={start},recent-size={recent},max-size={max},block-size=16,aggregation=sum|norm-sum"
        )
    };
    let wanted = [
        (
            [16, 32, 64],
            ["0.850868 / 0.141999", "0.850622 / 0.144242"],
            "65",
            ["0.746725 / 0.231988", "0.748709 / 0.231988"],
            ["0.751096 / 0.232794", "0.750452 / 0.233209"],
        ),
        (
            [16, 32, 112],
            ["0.923862 / 0.014829", "0.940785 / 0.012876"],
            "101.125",
            ["0.877105 / 0.029080", "0.875670 / 0.030382"],
            ["0.886918 / 0.011401", "0.877664 / 0.029022"],
        ),
        (
            [32, 64, 160],
            ["0.959295 / 0.007378", "0.969025 / 0.003979"],
            "131.25",
            ["0.924708 / 0.009332", "0.924054 / 0.009115"],
            ["0.926350 / 0.008914", "0.926233 / 0.008706"],
        ),
    ];
    for (of, stream, kept, at_256, at_250) in wanted {
        let csv = prose(&sizes(of), &stream);
        assert_eq!(csv.text(0, "mean_kept"), kept);
        let peak = (of[2] + 15).to_string();
        assert_eq!((csv.text(0, "peak_kept"), csv.text(0, "budget")), (&*peak, &*peak), "the budget is the peak");
        prose(&format!("{} --prompt block --prompt-len 256", sizes(of)), &at_256);
        prose(&format!("{} --prompt block --prompt-len 250", sizes(of)), &at_250);
    }
    // A budget of 79 is what a limit of 64 comes to.
    let fit = "--budget 79 --policy openvino:start-size=16,recent-size=32,block-size=16";
    prose(fit, &["0.850868 / 0.141999"]);
}

#[test]
fn the_canonical_trace_under_late_cuts_a_prompt_and_blocks() {
    let masses = |args: &str, wanted: [&str; 5]| {
        check(
            "decode-4096",
            &format!("{FIVE} --budget 256 {args}"),
            &wanted.map(|mass| format!("{mass} / 0.000000")).each_ref().map(String::as_str),
        );
    };
    masses("--evict-every 16", ["0.694979", "0.703271", "0.778381", "0.783631", "0.737765"]);
    masses("--prompt once --prompt-len 2048", ["0.825097", "0.814860", "0.814235", "0.817911", "0.813798"]);
    masses("--page 16", ["0.697645", "0.693429", "0.782688", "0.780240", "0.739840"]);
}

#[test]
fn pages_are_counted_in_place_over_a_layer_and_without_holes() {
    let wanted = [
        ("full", "12.500000 12.500000 12.500000", "24 24 24"),
        ("h2o", "12.227431 12.499349 6.833333", "24 24 8"),
        ("scissorhands", "12.418620 12.500000 6.833333", "24 24 8"),
        ("tova", "12.086372 12.418620 6.833333", "24 24 8"),
        ("streaming-llm", "7.929688 7.929688 6.833333", "10 10 8"),
    ];
    let columns = ["pages_in_place", "pages_layer", "pages_compacted"];
    for (policy, means, peaks) in wanted {
        let args = ["replay", PROSE, "-q", "--policy", policy, "--budget", "128", "--meters", "default,pages"];
        let csv = Csv::parse(&kvsim(&args).report());
        let found = columns.map(|column| format!("{:.6}", csv.number(0, column))).join(" ");
        assert_eq!(found, means, "{policy}");
        let found = columns.map(|column| csv.text(0, &format!("{column}_peak")).to_owned()).join(" ");
        assert_eq!(found, peaks, "{policy}");
    }
}

#[test]
fn what_came_of_shares_and_prompts_is_told() {
    let args = ["replay", PROSE, "-q", "--policy", "h2o", "--budget", "65", "--recent-window", "50%"];
    let chunks = ["--prompt", "block", "--prompt-len", "256", "--prompt-chunk", "32"];
    let csv = Csv::parse(&kvsim(&args).report());
    assert_eq!((csv.text(0, "layer_window"), csv.text(0, "prompt_peak")), ("32", ""));
    let csv = Csv::parse(&kvsim(&[&args[..], &chunks].concat()).report());
    assert_eq!(csv.text(0, "prompt_peak"), "97", "the budget and a chunk");
    let csv = Csv::parse(&kvsim(&[&args[..], &chunks[..4]].concat()).report());
    assert_eq!(csv.text(0, "prompt_peak"), "256", "the whole prompt");
}

/// What left in each step of 3.kv0.
fn decisions(args: &str) -> Vec<(usize, Vec<u32>)> {
    decisions_of(3, &format!("--heads kv0 {args}"))
}

/// What left in each step of a layer's only kept set.
fn decisions_of(layer: u32, args: &str) -> Vec<(usize, Vec<u32>)> {
    let folder = Folder::new();
    let (path, layer) = (folder.at("steps.csv"), layer.to_string());
    let args: Vec<&str> = ["replay", PROSE, "-q", "--layers", &layer, "--per-step", &path]
        .into_iter()
        .chain(args.split_whitespace())
        .collect();
    kvsim(&args).report();
    let csv = Csv::parse(&folder.read("steps.csv"));
    let victims =
        |row: usize| csv.text(row, "victims").split_whitespace().map(|v| v.parse().expect("a position")).collect();
    let step = |row: usize| (csv.text(row, "step").parse().expect("a step"), victims(row));
    (0..csv.len()).map(step).filter(|(_, victims): &(usize, Vec<u32>)| !victims.is_empty()).collect()
}

/// Steps and blocks: `128:2`.
fn blocks(decisions: &[(usize, Vec<u32>)], page: u32) -> String {
    let block = |(step, victims): &(usize, Vec<u32>)| {
        assert_eq!(victims.len(), page as usize, "a whole block");
        assert!(victims.iter().all(|victim| victim / page == victims[0] / page));
        format!("{step}:{}", victims[0] / page)
    };
    decisions.iter().map(block).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_blocks_and_victims_are_those_that_were_published() {
    let of = |policy: &str| decisions(&format!("--policy {policy} --budget 128 --page 16"));
    let wanted =
        "128:2 144:6 160:3 176:8 192:5 208:10 224:11 240:12 256:13 272:14 288:15 304:16 320:17 336:18 352:19 368:20";
    assert_eq!(blocks(&of("h2o"), 16), wanted);
    let wanted =
        "128:2 144:3 160:5 176:8 192:6 208:10 224:11 240:12 256:13 272:14 288:4 304:16 320:17 336:18 352:19 368:20";
    assert_eq!(blocks(&of("scissorhands"), 16), wanted);
    let late = decisions("--policy h2o --budget 64 --evict-every 16");
    assert_eq!(late[0], (79, vec![3, 8, 9, 11, 14, 15, 16, 21, 28, 29, 32, 33, 36, 38, 41, 45]));
    let of_layer = |policy: &str, more: &str| {
        let start = "--policy openvino:start-size=16,recent-size=32,max-size=112,block-size=16,aggregation=";
        decisions_of(10, &format!("{start}{policy} {more}"))
    };
    let wanted = "127:2 143:6 159:4 175:8 191:5 207:10 223:11 239:12 255:13 271:14 287:3 303:16 319:17 335:18 351:19 367:20 383:21";
    assert_eq!(blocks(&of_layer("sum", ""), 16), wanted);
    let wanted = "127:2 143:3 159:4 175:5 191:6 207:8 223:10 239:11 255:12 271:13 287:14 303:9 319:16 335:15 351:17 367:18 383:19";
    assert_eq!(blocks(&of_layer("norm-sum", ""), 16), wanted);
    for (policy, wanted) in [
        ("sum", "255:10 271:13 287:14 303:16 319:17 335:18 351:19 367:20 383:21"),
        ("norm-sum", "255:10 271:13 287:14 303:9 319:15 335:16 351:17 367:18 383:19"),
    ] {
        let found = of_layer(policy, "--prompt block --prompt-len 250");
        let mut first: Vec<u32> = found[0].1.iter().map(|victim| victim / 16).collect();
        first.dedup();
        assert_eq!((found[0].0, first), (250, vec![2, 3, 4, 5, 6, 8, 11, 12]), "{policy}");
        assert_eq!(blocks(&found[1..], 16), wanted, "{policy}");
    }
    let each = decisions("--policy scissorhands --budget 64 --combine each");
    let first: Vec<u32> = each.iter().take(20).flat_map(|(_, victims)| victims.clone()).collect();
    assert_eq!(first, [3, 7, 8, 9, 11, 14, 15, 16, 26, 28, 29, 32, 33, 36, 38, 1, 2, 6, 18, 21]);
    assert_eq!(each[0].0, 64);
}
