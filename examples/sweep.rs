//! A sweep in a program of its own: h2o beside a policy that is defined here, over budgets and recent
//! windows on a recorded trace, as the table that `kvsim replay` prints.
//!
//! `cargo run --release --example sweep`

use kvsim::error::{Error, Result};
use kvsim::experiment::{Budget, Experiment, LaneRequest};
use kvsim::policy::parameter::{RECENT_WINDOW, Value};
use kvsim::policy::table::{Make, PolicyEntry, as_given, find, window_fits};
use kvsim::policy::{Overflow, Policy, View, choose_lowest};
use kvsim::position::{Position, Slot};
use kvsim::replay::NoObserver;
use kvsim::report::{format, line::Replayed};
use kvsim::slots::SlotVec;

/// Evicts what got least in the heaviest row that it has seen of each position.
struct Peak {
    recent_window: usize,
    peaks: SlotVec<f32>,
}

impl Policy for Peak {
    fn admit(&mut self, _position: Position) {
        self.peaks.push(0.0);
    }

    fn observe(&mut self, view: View<'_>) {
        self.peaks.iter_mut().zip(view.weights).for_each(|(peak, weight)| *peak = peak.max(*weight));
    }

    fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
        choose_lowest(&self.peaks, self.peaks.len().saturating_sub(self.recent_window), overflow, victims);
    }

    fn forget(&mut self, slots: &[Slot]) {
        self.peaks.remove(slots);
    }
}

static PEAK: PolicyEntry = PolicyEntry {
    name: "peak",
    summary: "keeps what was ever heavy, and the newest",
    paper: None,
    parameters: &[(&RECENT_WINDOW, Value::Count(32))],
    budgeted: true,
    check: window_fits,
    cache_budget: as_given,
    figure: None,
    make: Make::Policy(|setting| {
        Box::new(Peak { recent_window: setting.values.count(&RECENT_WINDOW), peaks: SlotVec::default() })
    }),
};

/// The table of the sweep.
///
/// # Errors
/// When the trace cannot be read.
pub fn sweep() -> Result<String> {
    let experiment = Experiment {
        traces: vec!["traces/smollm2-prose-384.safetensors".into()],
        lanes: LaneRequest {
            policies: vec![find("h2o").expect("it is in the table"), &PEAK],
            budgets: Budget::parse_list("48..96x2,50%").map_err(Error::Usage)?,
            values: vec![(&RECENT_WINDOW, vec![Value::Count(8), Value::Count(32)])],
            ..LaneRequest::default()
        },
        ..Experiment::default()
    };
    let finished = experiment.run(&NoObserver, &mut |remark| eprintln!("{remark}"))?;
    let lines: Vec<_> = finished.iter().flat_map(|finished| Replayed::combined(finished.replayed())).collect();
    Ok((format::find("table").expect("it is in the table of formats").write)(&lines))
}

#[cfg_attr(test, allow(dead_code))]
fn main() -> Result<()> {
    print!("{}", sweep()?);
    Ok(())
}
