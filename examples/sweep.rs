//! A sweep in a program of its own: h2o beside a policy that is defined here, over budgets and recent
//! windows on a recorded trace, as the table that `kvsim replay` prints.
//!
//! `cargo run --release --example sweep`

use kvsim::error::{Error, Result};
use kvsim::experiment::{Budget, Experiment, LaneRequest, joined};
use kvsim::policy::entry::{Make, PolicyEntry};
use kvsim::policy::lowest_score::{ScoreRule, lowest_score};
use kvsim::policy::parameter::{RECENT_WINDOW, Value};
use kvsim::policy::spec::PolicySpec;
use kvsim::policy::{Admission, Observation};
use kvsim::replay::NoObserver;
use kvsim::report::format::{self, Look};
use kvsim::report::replayed::Per;

/// A position is worth the heaviest weight that any row has given it.
struct Peak;

impl ScoreRule for Peak {
    type Score = f32;

    fn admitted(&self, _admission: Admission<'_>) -> f32 {
        0.0
    }

    fn observe(&self, peaks: &mut [f32], seen: Observation<'_>) {
        peaks.iter_mut().zip(seen.weights).for_each(|(peak, weight)| *peak = peak.max(*weight));
    }

    fn probe(&self, peak: f32) -> Option<f64> {
        Some(peak.into())
    }
}

static PEAK: PolicyEntry = PolicyEntry::new(
    "peak",
    "keeps what was ever heavy, and the newest",
    Make::Policy(|setting| lowest_score(Peak, setting.values.count(&RECENT_WINDOW), setting.budget)),
)
.parameters(&[(&RECENT_WINDOW, Value::Count(32))]);

/// The table of the sweep.
///
/// # Errors
/// When the trace cannot be read.
pub fn sweep() -> Result<String> {
    let mut policies = PolicySpec::parse_list("h2o").map_err(Error::Usage)?;
    policies.push(PolicySpec::plain(&PEAK));
    let budgets = Budget::parse_list("48..96x2,50%").map_err(Error::Usage)?;
    let values = vec![(&RECENT_WINDOW, vec![Value::Count(8), Value::Count(32)])];
    let experiment = Experiment {
        traces: vec!["traces/smollm2-prose-384.safetensors".into()],
        lanes: LaneRequest { policies, budgets, values, ..LaneRequest::default() },
        ..Experiment::default()
    };
    let finished = experiment.run(&NoObserver, &mut |remark| eprintln!("{remark}"))?;
    let results = joined(&finished, Per::Trace)?;
    Ok(format::find("table").expect("it is in the table of formats").write(&results, Look::default()).text)
}

#[cfg_attr(test, allow(dead_code))]
fn main() -> Result<()> {
    print!("{}", sweep()?);
    Ok(())
}
