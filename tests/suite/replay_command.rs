//! `kvsim replay`: which lines come out, in which order, and what stands in them.

use crate::common::binary::{Csv, kvsim, kvsim_in, kvsim_reading, without};
use crate::common::files::{Folder, json_lines};
use kvsim::policy::parameter::PARAMETERS;
use kvsim::policy::table::POLICIES;
use serde_json::{Value, json};

const SMALL: &str = "traces/smollm2-prose-512.safetensors";

/// Columns of the CSV report around those of the parameters.
const KEYS: &str = "trace,layer,head,policy,budget,budget_share,scope,combine,evict_every,page,kv_bits,key_groups,layer_shape,prompt,\
    prompt_len,prompt_chunk,view,heavy_hitters,output_every,kv_heads,caches,rows,rows_total,positions,\
    self,first_position,start,normalize,expiry,content,version";
const FIGURES: &str = "predicted_loss,layer_error,retained_mass,retained_mass_full,peak_miss_rate,broken_row_rate,\
    update_error,output_error,heavy_recall,pivotal_hit_rate,recovery_oracle,recovery_optimal,mean_kept,\
    row_mass,kv_share,memory_ratio,layer_budget,layer_window,layer_sinks,mean_read,fit_log_scale,fit_exponent,\
    kept_entropy,sink_mass,pages_in_place,pages_compacted,pages_layer,pages_trace,output_error_full,\
    large_error_rate,output_cosine,output_change,value_mass,predicted_loss_layers,predicted_loss_heads,\
    worst_retained_mass,worst_stream,steps,rows_measured,skipped_rows,prompt_steps,retained_mass_sum,\
    rows_full,retained_mass_full_sum,row_mass_sum,min_step_mass,broken_rows,heavy_hits,heavy_possible,\
    pivotal_hits,pivotal_possible,peak_misses,eviction_calls,evicted,expired,kept_sum,peak_kept,\
    prompt_peak,state_bytes,token_bytes,kv_bytes_mean,kv_bytes_peak,kv_bytes_model,kv_bytes_full,budget_sum,\
    budgeted_caches,window_sum,windowed_caches,sinks_sum,caches_with_sinks,read_sum,peak_read,fits,\
    fit_log_scale_sum,fit_exponent_sum,kept_entropy_sum,kept_entropy_rows,sink_mass_sum,sink_mass_sinks,\
    pages_steps,pages_in_place_sum,pages_in_place_peak,pages_compacted_sum,pages_compacted_peak,\
    pages_layer_steps,pages_layer_sum,pages_layer_peak,pages_trace_steps,pages_trace_sum,\
    pages_trace_peak,output_error_sum,output_rows,output_error_full_sum,output_rows_full,large_errors,\
    output_cosine_sum,zero_output_rows,output_change_sum,output_change_rows,value_mass_sum,\
    value_mass_rows,layer_error_sum,layer_error_rows,update_error_sum,update_error_rows,\
    predicted_loss_sum,predicted_loss_rows,predicted_loss_layers_sum,predicted_loss_heads_sum";
const FIRST_PARAMETERS: &str = "recent_window,sinks,obs_window,pool_kernel,pyramid_ratio,seed";

fn replay(more: &[&str]) -> String {
    kvsim(&[&["replay", SMALL, "--quiet"], more].concat()).report()
}

fn parsed(more: &[&str]) -> Csv {
    Csv::parse(&replay(more))
}

#[test]
fn the_csv_header_stays_as_it_is() {
    let parameters: Vec<&str> = PARAMETERS.iter().map(|parameter| parameter.column).collect();
    assert!(parameters.join(",").starts_with(FIRST_PARAMETERS), "new parameters come after the old");
    let report = replay(&["--policy", "tova"]);
    let wanted = format!("{KEYS},{},{FIGURES}", parameters.join(","));
    assert_eq!(
        report.lines().next().expect("a header").split(',').collect::<Vec<_>>(),
        wanted.split(',').collect::<Vec<_>>()
    );
    assert!(report.ends_with('\n') && !report.contains('\r'));
}

#[test]
fn lists_and_ranges_multiply_in_the_order_given() {
    let report = parsed(&["--policy", "h2o,tova", "--budget", "128,100..120+20", "--recent-window", "16..64x2,8"]);
    assert_eq!(report.column("policy"), ["h2o"; 12].join(" ") + " tova tova tova");
    assert_eq!(report.column("budget"), "128 128 128 128 100 100 100 100 120 120 120 120 128 100 120");
    assert_eq!(report.column("recent_window"), ["16 32 64 8"; 3].join(" ") + "   ");
}

#[test]
fn equal_lanes_appear_once_and_so_does_full() {
    let report = parsed(&["--policy", "full,tova,full,tova", "--budget", "64,12.5%,64..128x2"]);
    assert_eq!(report.column("policy"), "full tova tova");
    assert_eq!(report.column("budget"), " 64 128");
    assert_eq!(report.column("budget_share"), " 0.125 0.25");
}

#[test]
fn without_a_word_every_default_policy_runs_on_the_canonical_trace_at_512() {
    let report = Csv::parse(&kvsim(&["replay"]).report());
    let names: Vec<&str> = POLICIES.iter().filter(|entry| entry.runs_by_default()).map(|entry| entry.name).collect();
    assert_eq!(report.column("policy"), names.join(" "));
    assert!((0..report.len()).all(|row| report.text(row, "trace") == "decode-4096"));
    assert!((0..report.len()).all(|row| ["", "512"].contains(&report.text(row, "budget"))));
    let row = report.column("policy").split(' ').position(|name| name == "scissorhands").expect("it is a default");
    assert_eq!(format!("{:.6}", report.number(row, "retained_mass")), "0.711377");
}

#[test]
fn the_order_of_policies_changes_the_order_of_lines_and_nothing_else() {
    let lines = |policies: &str| -> Vec<String> {
        let report = replay(&["--policy", policies, "--budget", "100,50", "--recent-window", "10,20"]);
        report.lines().map(str::to_owned).collect()
    };
    let (mut one, mut other) = (lines("tova,h2o,snapkv,random,oracle"), lines("oracle,random,snapkv,h2o,tova"));
    assert_ne!(one, other);
    one.sort();
    other.sort();
    assert_eq!(one, other);
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let run = |trace: &str, threads: &str, more: &[&str]| {
        kvsim(&[&["replay", trace, "--budget", "128", "--threads", threads], more].concat()).report()
    };
    for more in [&[][..], &["--per-stream"], &["--format", "json"]] {
        let one = run(SMALL, "1", more);
        for threads in ["2", "3", "16"] {
            assert_eq!(run(SMALL, threads, more), one, "{threads} threads");
        }
    }
    assert_eq!(run("decode-4096", "3", &[]), run("decode-4096", "1", &[]));
}

#[test]
fn combined_lines_are_sums_over_sums_and_name_the_weakest_stream() {
    let all = ["--policy", "tova,h2o,oracle", "--budget", "64"];
    let (combined, streams) = (parsed(&all), parsed(&[&all[..], &["--per-stream"]].concat()));
    assert_eq!((combined.len(), streams.len()), (3, 6));
    assert_eq!(
        (streams.column("layer"), streams.column("head")),
        ("15 15 15 16 16 16".into(), "mean mean mean 6 6 6".into())
    );
    for row in 0..3 {
        let sum = |column: &str| streams.number(row, column) + streams.number(row + 3, column);
        for column in ["steps", "rows_measured", "rows_full", "retained_mass_sum", "row_mass_sum", "broken_rows"] {
            assert_eq!(combined.number(row, column), sum(column), "{column}");
        }
        assert_eq!([combined.text(row, "layer"), combined.text(row, "head")], ["all", "all"]);
        assert_eq!(combined.number(row, "retained_mass"), sum("retained_mass_sum") / sum("rows_measured"));
        let masses = [streams.number(row, "retained_mass"), streams.number(row + 3, "retained_mass")];
        let weakest = if masses[0] <= masses[1] { "15/mean" } else { "16/6" };
        assert_eq!(combined.text(row, "worst_stream"), weakest);
        assert_eq!(combined.number(row, "worst_retained_mass"), masses[0].min(masses[1]));
        assert_eq!(streams.text(row, "worst_stream"), "", "a single stream is no weakest of several");
    }
    for column in ["heavy_hits", "pivotal_hits", "peak_misses", "kept_sum", "evicted", "state_bytes"] {
        assert_eq!(combined.number(0, column), streams.number(0, column) + streams.number(3, column), "{column}");
        assert_eq!(combined.text(2, column), "", "{column} of a bound");
    }
}

#[test]
fn layers_and_heads_choose_streams() {
    let base = ["--policy", "tova", "--budget", "64", "--per-stream"];
    let chosen = |more: &[&str]| parsed(&[&base[..], more].concat()).column("layer");
    assert_eq!(chosen(&["--layers", "16"]), "16");
    assert_eq!(chosen(&["--layers", "15..16"]), "15 16");
    assert_eq!(chosen(&["--heads", "mean"]), "15");
    let none = kvsim(&[&["replay", SMALL, "--layers", "15", "--heads", "6"], &base[..]].concat());
    none.refuses(2, &["no stream has both a chosen layer and a chosen head"]);
    let whole = replay(&base);
    let alone = replay(&[&base[..], &["--layers", "16"]].concat());
    assert_eq!(whole.lines().last(), alone.lines().last(), "a stream does not depend on its neighbours");
}

#[test]
fn steps_cuts_every_stream_and_leaves_shares_alone() {
    let report = parsed(&["--policy", "tova", "--budget", "12.5%", "--steps", "100"]);
    assert_eq!([report.text(0, "steps"), report.text(0, "budget")], ["200", "64"]);
    let more = parsed(&["--policy", "tova", "--budget", "12.5%", "--steps", "99999"]);
    assert_eq!(more.text(0, "steps"), "1024");
}

/// Trace A of the worked-out cases.
fn trace_a() -> String {
    let rows: [&[f32]; 5] =
        [&[1.0], &[0.75, 0.25], &[0.5, 0.25, 0.25], &[0.5, 0.0625, 0.1875, 0.25], &[0.25, 0.25, 0.25, 0.125, 0.125]];
    json_lines(1, &rows.map(|row| Some(row.to_vec())))
}

#[test]
fn per_step_tells_what_each_lane_kept_hit_and_gave_up() {
    let folder = Folder::new();
    folder.write("a.jsonl", trace_a() + "{\"step\":6,\"attn\":null}\n");
    let lanes = ["--policy", "tova,oracle,h2o", "--budget", "3", "--recent-window", "1", "--heavy-hitters", "2"];
    let args = [&["replay", "a.jsonl", "--per-step", "steps.csv"], &lanes[..]].concat();
    let report = Csv::parse(&kvsim_in(folder.path(), &args).report());
    let steps = Csv::parse(&folder.read("steps.csv"));
    assert_eq!(steps.column("step"), "1 1 2 2 3 3 4 4 5 5 6 6", "a bound keeps nothing that could be told of");
    assert_eq!(steps.column("policy"), ["tova h2o"; 6].join(" "));
    assert_eq!(steps.column("kept"), "2 2 3 3 3 3 3 3 3 3 3 3");
    assert_eq!(steps.column("retained_mass"), "1 1 1 1 1 1 0.9375 0.8125 0.5 0.625  ");
    assert_eq!(steps.column("heavy_hits"), "1 1 2 2 2 2 2 2 1 2  ");
    assert_eq!(steps.column("victims"), "    1 2 2 3 3 4 4 5");
    assert_eq!(steps.column("recent_window"), [" 1"; 6].join(" "));
    let sum = (0..5).map(|step| steps.number(2 * step, "retained_mass")).sum::<f64>();
    assert_eq!((report.number(0, "retained_mass_sum"), report.text(0, "skipped_rows")), (sum, "1"));
}

#[test]
fn per_step_changes_nothing_in_the_report() {
    let folder = Folder::new();
    let steps = folder.at("steps.csv");
    let plain = replay(&["--budget", "64"]);
    assert_eq!(replay(&["--budget", "64", "--per-step", &steps, "--threads", "3"]), plain);
    let first = folder.read("steps.csv");
    replay(&["--budget", "64", "--per-step", &steps, "--threads", "1"]);
    assert_eq!(folder.read("steps.csv"), first);
}

#[test]
fn every_format_tells_the_same_figures() {
    let lanes = ["--policy", "tova,full,oracle", "--budget", "64,128"];
    let in_format = |format: &str| replay(&[&lanes[..], &["--format", format]].concat());
    let csv = Csv::parse(&in_format("csv"));
    let json: Vec<Value> = serde_json::from_str(&in_format("json")).expect("JSON");
    let jsonl: Vec<Value> = in_format("jsonl").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(json, jsonl);
    assert_eq!((json.len(), csv.len()), (5, 5));
    for (row, object) in json.iter().enumerate() {
        for (column, value) in object.as_object().expect("an object") {
            match value {
                Value::Number(number) => assert_eq!(number.as_f64(), Some(csv.number(row, column)), "{column}"),
                Value::Null => assert_eq!(csv.text(row, column), "", "{column}"),
                other => assert_eq!(other, &json!(csv.text(row, column)), "{column}"),
            }
        }
    }
    for format in ["table", "markdown"] {
        let text = in_format(format);
        assert!(text.contains("0.883886") && text.contains("policy") && text.contains("tova"), "{text}");
        let lines = if format == "table" { 6 } else { 7 };
        assert_eq!(text.lines().count(), lines);
        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert!(format == "table" || widths.iter().all(|width| *width == widths[0]), "its source is a table too");
    }
}

#[test]
fn an_output_file_holds_what_standard_output_would() {
    let folder = Folder::new();
    for format in ["csv", "table", "json", "jsonl", "markdown"] {
        let args = ["--policy", "tova", "--budget", "64", "--format", format];
        assert_eq!(replay(&[&args[..], &["-o", &folder.at("out")]].concat()), "");
        assert_eq!(folder.read("out"), replay(&args), "{format}");
    }
    assert_eq!(folder.names(), ["out"]);
}

#[test]
fn json_lines_replay_alike_from_file_and_standard_input_in_any_interleaving() {
    let mut lines: Vec<String> = Vec::new();
    for head in [1, 0] {
        for len in 1..=9_usize {
            let row: Vec<f64> = (0..len).map(|at| f64::from(((at * 7 + len * 3 + head) % 5) as u32) / 16.0).collect();
            lines.push(json!({ "layer": 3, "head": head, "step": len, "attn": row }).to_string() + "\n");
        }
    }
    let (one, other) = lines.split_at(9);
    let interleaved: String = one.iter().zip(other).map(|(a, b)| format!("{a}\n{b}")).collect();
    let folder = Folder::new();
    folder.write("-", "");
    let run = |text: &str| {
        let args = ["--policy", "tova,h2o", "--budget", "4", "--recent-window", "1", "--per-stream", "--quiet"];
        folder.write("t.jsonl", text);
        let file = kvsim_in(folder.path(), &[&["replay", "t.jsonl"], &args[..]].concat()).report();
        let stdin = kvsim_reading(text, &[&["replay", "-"], &args[..]].concat()).report();
        let figures = |report: &str| without(report, &["trace", "content"]);
        assert_eq!(figures(&file), figures(&stdin));
        (figures(&file), file)
    };
    let (figures, report) = run(&lines.concat());
    assert_eq!(run(&interleaved).0, figures);
    assert_eq!(Csv::parse(&report).column("head"), "0 0 1 1");
}

#[test]
fn several_traces_come_one_after_the_other() {
    let both = kvsim(&["replay", SMALL, "decode-4096", "--policy", "tova", "--budget", "25%"]).report();
    let report = Csv::parse(&both);
    assert_eq!(report.column("trace"), format!("{SMALL} decode-4096"));
    assert_eq!(report.column("budget"), "128 1024", "a share is of each trace's positions");
}

#[test]
fn a_spec_file_replays_as_the_trace_that_is_built_in() {
    let lanes = ["--budget", "256", "--steps", "2000"];
    let built_in = kvsim(&[&["replay"], &lanes[..]].concat()).report();
    assert_eq!(kvsim(&[&["replay", "traces/decode-4096.json"], &lanes[..]].concat()).report(), built_in);
}

#[test]
fn view_and_heavy_hitters_stand_in_the_report_and_change_it() {
    let lanes = ["--policy", "scissorhands,sliding-window", "--budget", "64"];
    let raw = parsed(&lanes);
    let other = parsed(&[&lanes[..], &["--view", "renormalized", "--heavy-hitters", "8"]].concat());
    assert_eq!([other.column("view"), other.column("heavy_hitters")], ["renormalized renormalized", "8 8"]);
    assert_eq!([raw.column("view"), raw.column("heavy_hitters")], ["raw raw", "32 32"]);
    assert_eq!(raw.text(1, "retained_mass"), other.text(1, "retained_mass"), "what is measured is the recorded weight");
    assert_ne!(raw.text(0, "retained_mass"), other.text(0, "retained_mass"), "what scissorhands sees is not");
}

#[test]
fn quiet_says_nothing_on_standard_error() {
    let noted = kvsim(&["replay", SMALL, "--policy", "tova", "--budget", "0.1%"]);
    assert!(noted.stderr.starts_with("note: "), "{}", noted.stderr);
    let quiet = kvsim(&["replay", SMALL, "--policy", "tova", "--budget", "0.1%", "--quiet"]).report();
    assert_eq!(quiet, noted.stdout);
}

#[test]
fn a_weight_in_json_is_rounded_once_to_the_nearest() {
    // The number above the middle of two f32, which a hasty reader takes for the middle.
    let line = "{\"step\":1,\"attn\":[0.9494910538196565]}\n";
    let report = Csv::parse(&kvsim_reading(line, &["replay", "-", "--policy", "tova", "--quiet"]).report());
    assert_eq!(report.number(0, "retained_mass"), f64::from(0.949_491_1_f32));
    assert_eq!(0.949_491_1_f32, 0.949_491_053_819_656_5_f64 as f32);
}

#[test]
fn a_default_budget_that_loses_nothing_is_said_so_and_a_named_one_is_not() {
    let ran = kvsim(&["replay", SMALL, "--policy", "tova"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("the default budget of 512 holds all 512 positions"), "{}", ran.stderr);
    kvsim(&["replay", SMALL, "--policy", "tova", "--budget", "512"]).report();
}

#[test]
fn parameters_may_be_written_with_their_policy() {
    let report = parsed(&["--policy", "tova,Scissorhands-Paper:count=low|high,drop=1,h2o", "--budget", "64"]);
    assert_eq!(report.column("policy"), "tova scissorhands-paper scissorhands-paper h2o");
    assert_eq!((report.column("count"), report.column("drop")), (" low high ".to_owned(), " 1 1 ".to_owned()));
    let by_flag = parsed(&["--policy", "scissorhands-paper", "--budget", "64", "--count", "high", "--drop", "1"]);
    assert_eq!(by_flag.column("retained_mass"), report.text(2, "retained_mass"));
    let both = parsed(&["--policy", "h2o:recent-window=16,scissorhands", "--budget", "64", "--recent-window", "8"]);
    assert_eq!(both.column("recent_window"), "16 8", "what is written in place wins");
}

#[test]
fn a_policy_that_there_is_not_gets_a_suggestion() {
    let refuses = |list: &str, parts: &[&str]| kvsim(&["replay", SMALL, "--policy", list]).refuses(2, parts);
    refuses("scisorhands", &["unknown policy \"scisorhands\": did you mean scissorhands?"]);
    refuses("belady", &["unknown policy \"belady\"; there are full, sliding-window"]);
    refuses("h2o:sinks=4", &["h2o has no parameter \"sinks\"; it has recent-window, score"]);
}
