//! The command on recorded attention.

use crate::common::binary::kvsim;
use crate::common::files::Folder;
use crate::common::shared;
use serde_json::Value;

const TRACE: &str = "traces/smollm2-prose-384.safetensors";

fn lines(arguments: &[&str]) -> Vec<Value> {
    let format = ["--format", "json", "--quiet"];
    let printed = kvsim(&[&["recommend", TRACE][..], arguments, &format].concat()).report();
    serde_json::from_str(&printed).expect("an array of objects")
}

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"))
}

#[test]
fn the_table_fits_80_letters_and_the_answer_comes_first() {
    for goal in [["--budget", "25%"], ["--within", "0.05"], ["--peak-miss", "0.005"]] {
        let printed = kvsim(&[&["recommend", TRACE, "--quiet"][..], &goal].concat()).report();
        let mut parts = printed.split("\n\n");
        let sentence = parts.next().expect("a sentence");
        assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
        let table = parts.next().expect("a table");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert!(table.lines().count() > 12, "{table}");
    }
}

#[test]
fn figures_are_those_of_a_replay() {
    let lines = lines(&["--budget", "64", "--policy", "tova"]);
    // peak misses and rows after the first eviction of `kvsim replay --policy tova --budget 64`.
    let csv = kvsim(&["replay", TRACE, "--policy", "tova", "--budget", "64", "--format", "json", "--quiet"]).report();
    let replayed: Vec<Value> = serde_json::from_str(&csv).expect("an array of objects");
    let share = number(&replayed[0], "peak_misses") / number(&replayed[0], "rows_full");
    assert!((number(&lines[0], "peak_misses") - share).abs() < 1e-12);
    let kept = number(&replayed[0], "retained_mass_full");
    // Rows in half precision sum to one only nearly.
    assert!((1.0 - number(&lines[0], "lost_mass") - kept).abs() < 5e-4);
}

#[test]
fn the_smallest_budget_keeps_its_promise_and_one_less_does_not() {
    let at = |budget: usize| {
        let budget = budget.to_string();
        let lines = lines(&["--budget", &budget, "--policy", "tova"]);
        number(&lines[0], "lost_mass")
    };
    let lines = lines(&["--within", "0.05", "--policy", "tova"]);
    let budget = number(&lines[0], "budget") as usize;
    assert!(at(budget) <= 0.05 && at(budget - 1) > 0.05, "{budget}");
    assert!(number(&lines[0], "budget_low") <= budget as f64 && number(&lines[0], "budget_high") >= budget as f64);
}

#[test]
fn a_quick_answer_covers_the_full_one() {
    let (full, quick) = (lines(&["--budget", "25%"]), lines(&["--budget", "25%", "--quick"]));
    for line in &full {
        let same = quick.iter().find(|other| other["policy"] == line["policy"]).expect("every policy");
        for figure in ["peak_misses", "lost_mass"] {
            let within = number(same, &format!("{figure}_low"))..=number(same, &format!("{figure}_high"));
            assert!(within.contains(&number(line, figure)), "{figure} {}: {within:?}", line["policy"]);
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let printed = |threads: &str| {
        let arguments =
            ["recommend", TRACE, "--peak-miss", "0.005", "--policy", "h2o,lru,pyramidkv", "--format", "csv"];
        kvsim(&[&arguments[..], &["--quiet", "--threads", threads]].concat()).report()
    };
    assert_eq!(printed("1"), printed("3"));
}

#[test]
fn the_ending_of_the_output_chooses_the_format() {
    let folder = Folder::new();
    let file = folder.at("answer.csv");
    kvsim(&["recommend", TRACE, "--budget", "64", "--policy", "h2o", "--quiet", "-o", &file]).report();
    let text = folder.read("answer.csv");
    assert!(text.starts_with("trace,goal,promise,rank,policy,spelled,recent_window,"), "{text}");
    assert!(text.contains(",budget,,1,h2o,"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = |arguments: &[&str], problem: &str| {
        let ran = kvsim(&[&["recommend", TRACE, "--quiet"][..], arguments].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(problem), "{problem}: {}", ran.stderr);
    };
    refused(&[], "required arguments");
    refused(&["--within", "2"], "no share from 0 to 1");
    refused(&["--budget", "384"], "a budget of 384 holds all its 384 positions");
    refused(&["--budget", "64", "--within", "0.1"], "cannot be used with");
    refused(&["--budget", "64", "--evict-every", "1,8"], "--evict-every: an answer is for one way to keep caches");
    refused(&["--budget", "64", "--allocate", "auto", "--policy", "h2o"], "no objective that is known to help");
    refused(&["--budget", "64", "--allocate", "lost-mass"], "name it with --policy");
    refused(&["--budget", "16", "--policy", "h2o:recent-window=32"], "no policy is possible here");
}

#[test]
fn predicted_loss_leads_where_there_are_gradients() {
    let Some(trace) = shared::trace("smollm2-fisher-160.safetensors") else { return };
    let trace = trace.to_str().expect("a plain name");
    let policies = "h2o:recent-window=16,tova,streaming-llm:sinks=4,sliding-window";
    let arguments = ["recommend", trace, "--budget", "48", "--policy", policies, "--format", "json", "--quiet"];
    let lines: Vec<Value> = serde_json::from_str(&kvsim(&arguments).report()).expect("an array of objects");
    let found: Vec<(&str, f64)> =
        lines.iter().map(|line| (line["policy"].as_str().expect("a name"), number(line, "predicted_loss"))).collect();
    let wanted = [("tova", 0.0438585), ("h2o", 0.0469926), ("streaming-llm", 0.198236), ("sliding-window", 2.50703)];
    for ((policy, loss), (name, published)) in found.into_iter().zip(wanted) {
        assert_eq!(policy, name);
        assert!((loss / published - 1.0).abs() < 1e-5, "{policy}: {loss} {published}");
    }
    let ranks: Vec<u64> = lines.iter().map(|line| line["rank"].as_u64().expect("a rank")).collect();
    assert_eq!(ranks, [1, 1, 3, 4], "the first two are a tie in the real loss too");
}
