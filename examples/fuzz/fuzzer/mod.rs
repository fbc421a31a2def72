//! A structured fuzzer: small sound inputs of every format, damaged in ways that know the format, and then
//! opened, inspected, replayed, analyzed and converted in this process.
//!
//! [`corpus`] makes the inputs, [`mutate`] damages them, [`render`] turns them into bytes, [`check`] runs them
//! and says what must hold, [`watch`] turns panics, hangs and large allocations into findings. One number, the
//! seed, and the number of the execution decide everything, so that any execution can be run again alone.

mod check;
mod corpus;
mod json;
mod memory;
mod mutate;
mod random;
mod render;
mod results;
mod traces;
mod watch;

use corpus::Sample;
use random::Random;
use std::path::{Path, PathBuf};

/// What to run.
pub struct Plan {
    /// Decides, with the number of an execution, what is run.
    pub seed: u64,
    /// Number of the first execution.
    pub from: u64,
    /// How many executions to run.
    pub count: u64,
    /// Where inputs that led to a finding are kept.
    pub keep: PathBuf,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Summary {
    /// Inputs that were refused with an error.
    pub refused: u64,
    /// Inputs that were accepted and gave sound figures.
    pub accepted: u64,
    /// What went wrong: the execution, what happened, and the input that was kept.
    pub findings: Vec<String>,
    /// Findings of kinds that are known well enough.
    pub repeated: u64,
    /// The largest amount of memory that an execution took beyond what was held before.
    pub most_memory: usize,
}

/// More findings than this of one kind say nothing new.
const MOST_OF_A_KIND: usize = 3;

/// Runs a plan, calling `progress` with the number of executions that are done.
///
/// All on one thread of a pool of one, so that no replay starts threads of its own.
pub fn run(plan: &Plan, progress: &(dyn Fn(u64) + Sync)) -> Summary {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| run_here(plan, progress))
}

fn run_here(plan: &Plan, progress: &dyn Fn(u64)) -> Summary {
    let folder = tempfile::tempdir().expect("a folder for the inputs");
    let (samples, mut summary) = (corpus::samples(), Summary::default());
    let watch = watch::Watch::start(&plan.keep);
    for execution in plan.from..plan.from + plan.count {
        let mut random = Random::of_execution(plan.seed, execution);
        let (sample, path) = prepare(&samples, &mut random, folder.path());
        let outcome = watch.run(execution, &path, || check::check(sample.kind, &path, &mut random));
        summary.add(plan, execution, &path, outcome);
        progress(execution - plan.from + 1);
    }
    summary
}

/// Damages a sample and writes it where the readers find it.
fn prepare<'a>(samples: &'a [Sample], random: &mut Random, folder: &Path) -> (&'a Sample, PathBuf) {
    let sample = random.pick(samples);
    let path = folder.join(sample.file_name);
    let bytes = mutate::damaged(&sample.content, random);
    std::fs::write(&path, bytes).expect("inputs can be written");
    (sample, path)
}

impl Summary {
    /// Whether there are enough findings that begin with the same words.
    fn is_known(&self, finding: &str) -> bool {
        let kind = finding.split_inclusive(|part: char| part.is_ascii_digit() || part == ':').next().unwrap_or("");
        self.findings.iter().filter(|known| known.contains(kind)).count() >= MOST_OF_A_KIND
    }

    fn add(&mut self, plan: &Plan, execution: u64, path: &Path, outcome: watch::Outcome) {
        self.most_memory = self.most_memory.max(outcome.memory);
        match outcome.verdict {
            Ok(check::Verdict::Refused) => self.refused += 1,
            Ok(check::Verdict::Accepted) => self.accepted += 1,
            Err(finding) if self.is_known(&finding) => self.repeated += 1,
            Err(finding) => {
                let kept = watch::keep(path, &plan.keep, execution);
                self.findings.push(format!("execution {execution}: {finding} (input: {})", kept.display()));
            }
        }
    }
}
