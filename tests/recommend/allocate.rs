//! Budgets dealt out to caches: the published values, and what the file gives when it is taken back.

use crate::common::binary::kvsim;
use crate::common::files::Folder;
use crate::made::{Silent, ground, trace};
use kvsim::experiment::Budget;
use kvsim::policy::spec::PolicySpec;
use kvsim::recommend::{Candidate, Deal, Dealt, Ground, Objective};
use serde_json::json;

fn h2o() -> Candidate {
    Candidate::of(&PolicySpec::parse_list("h2o:recent-window=50%").expect("known")[0])
}

fn recorded(total: usize) -> Dealt {
    let trace = format!("{}/traces/smollm2-prose-384.safetensors", crate::common::binary::PACKAGE);
    let ground = Ground { traces: vec![trace.into()], ..Ground::default() };
    let deal = Deal {
        ground,
        candidate: h2o(),
        budget: Budget::Count(total / 12),
        objective: Some(Objective::LostMass),
        grid: (1..=12).map(|part| 16 * part).collect(),
    };
    deal.find(&Silent, &mut |_| {}).expect("budgets")
}

fn budgets(dealt: &Dealt) -> Vec<usize> {
    dealt.budgets.iter().map(|(_, budget)| *budget).collect()
}

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 5e-7, "{found} {wanted}");
}

#[test]
fn the_published_budgets_of_768_positions_come_out() {
    let dealt = recorded(768);
    assert_eq!(budgets(&dealt), [16, 80, 80, 48, 32, 64, 64, 96, 96, 48, 48, 96]);
    assert_near(dealt.loss, 1070.679755);
    assert_near(dealt.marginal_loss, 1070.679755);
    assert_near(dealt.uniform_loss.expect("64 is on the grid"), 1264.513127);
}

#[test]
fn at_816_positions_the_hulls_lose_a_little_more() {
    let dealt = recorded(816);
    assert_eq!(budgets(&dealt), [16, 80, 96, 48, 32, 64, 64, 128, 96, 48, 48, 96]);
    assert_near(dealt.loss, 995.159761);
    assert_near(dealt.marginal_loss, 997.329019);
    assert!(dealt.notes().iter().any(|note| note.contains("along the hulls would lose 2.17 more")));
}

#[test]
fn the_file_gives_the_published_figures_when_it_is_taken_back() {
    let folder = Folder::new();
    let file = folder.at("budgets.json");
    let trace = "traces/smollm2-prose-384.safetensors";
    let policy = ["--policy", "h2o:recent-window=50%", "--budget", "64"];
    let deal = ["--allocate", "lost-mass", "--grid", "16..192+16", "--write-budgets", &file, "--quiet"];
    let printed = kvsim(&[&["recommend", trace][..], &policy, &deal].concat()).report();
    assert!(printed.contains("raised the real loss of a model"), "{printed}");
    let replay = ["replay", trace, "--layer-budget", &file, "--format", "csv", "--quiet"];
    let csv = kvsim(&[&replay[..], &policy].concat()).report();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let line = lines.next().expect("a line");
    let cell = |name: &str| line[header.iter().position(|known| *known == name).expect("there")].parse::<f64>();
    assert_near(cell("retained_mass").expect("a number"), 0.922551);
    assert_near(cell("peak_miss_rate").expect("a number"), 0.007378);
}

/// Layer 0 wants the first position, which h2o keeps at any budget, layer 1 what is ten back.
fn made(facts: serde_json::Value) -> String {
    trace(80, 2, facts, |layer, step| if layer == 0 { 0 } else { step.saturating_sub(10) })
}

fn deal(traces: &[String], objective: Option<Objective>) -> Result<Dealt, String> {
    let folder = Folder::new();
    let candidate = Candidate::of(&PolicySpec::parse_list("lru:recent-window=100%").expect("known")[0]);
    let candidate = Candidate { entry: kvsim::policy::table::find("sliding-window").expect("known"), ..candidate };
    let candidate = Candidate { values: candidate.entry.defaults(), ..candidate };
    let (ground, grid) = (ground(&folder, traces), vec![4, 8, 12]);
    let deal = Deal { ground, candidate, budget: Budget::Count(8), objective, grid };
    deal.find(&Silent, &mut |_| {}).map_err(|error| error.to_string())
}

#[test]
fn positions_go_where_they_help() {
    let dealt = deal(&[made(json!({}))], Some(Objective::PeakMisses)).expect("budgets");
    assert_eq!(budgets(&dealt), [4, 12], "no window reaches the first position, one of 12 what is ten back");
    let held_out = deal(&[made(json!({})), made(json!({}))], Some(Objective::PeakMisses)).expect("budgets");
    assert_eq!((budgets(&held_out), held_out.replayed_on.1), (vec![4, 12], true));
}

#[test]
fn without_sensitivities_there_is_no_objective_that_is_known_to_help() {
    let problem = deal(&[made(json!({}))], None).err().expect("refused");
    assert!(problem.contains("no objective that is known to help"), "{problem}");
    let facts = json!({ "sensitivity.0": "[0.5]", "sensitivity.1": "[0.25]", "query_heads": "1", "kv_heads": "1" });
    let dealt = deal(&[made(facts)], None).expect("budgets");
    assert_eq!((dealt.objective, budgets(&dealt)), (Objective::SensitivePeakMisses, vec![4, 12]));
    // Rows 9 on count: layer 0 misses in each, at half a unit of sensitivity; layer 1 in none.
    assert!((dealt.loss - 0.5).abs() < 1e-12, "{}", dealt.loss);
}
