//! kvsim replays recorded attention through KV-cache eviction policies and says what each would have
//! kept.
//!
//! The path of the data, one way:
//!
//! ```text
//! trace source -> rows -> for each lane: gather kept weights -> tally -> policy observes
//!                                        -> admit the new position -> over budget? policy picks victims
//! tallies -> report lines -> table | csv | json | jsonl | markdown
//! ```
//!
//! - [`trace`] streams the rows of files and synthetic traces; it knows no policies.
//! - [`policy`] holds one file per policy and the table of them; a policy owns its state per slot and
//!   the choice of victims, and never learns its score, the file or the future.
//! - [`meter`] holds one file per meter and the list of them: what is counted of rows and steps, and the
//!   figures that are read from it.
//! - [`keeping`] says in plain values how an engine keeps a cache, whatever the policy: rows, scope, schedule.
//! - [`replay`] is the engine: it owns the kept sets, gathers, checks, and feeds the meters.
//! - [`report`] turns tallies into tables; [`decisions`] writes who left when, and compares two accounts of it.
//! - [`experiment`] describes a whole sweep in plain values, checks it and runs it: the command line is one
//!   user of it, the program `examples/sweep.rs` another. Without the default feature `cli` the crate is
//!   the library alone, and its users do not inherit what the command line needs.
//! - [`recommend`] answers which policy, window and budget serve a trace best, and deals budgets out to caches,
//!   with the arithmetic of [`allocation`].
//! - [`vectors`] runs files of recorded decisions, [`inspect`] says what is in a trace, [`analyze`] which
//!   of its positions matter and how small a cache may be.
//!
//! # Replaying a trace held in memory
//!
//! ```
//! use kvsim::policy::table::find;
//! use kvsim::replay::{LanePlan, NoObserver, Options, caches_of, replay};
//! use kvsim::trace::{SelfAttention, Source, memory::MemoryTrace};
//!
//! # fn main() -> kvsim::error::Result<()> {
//! // Row t has one weight for each position before t.
//! let rows = vec![
//!     Some(vec![1.0]),
//!     Some(vec![0.75, 0.25]),
//!     Some(vec![0.5, 0.25, 0.25]),
//!     Some(vec![0.5, 0.0625, 0.1875, 0.25]),
//!     Some(vec![0.25, 0.25, 0.25, 0.125, 0.125]),
//! ];
//! let trace = MemoryTrace::new("by hand", SelfAttention::Excluded).with_stream(0, "0", rows)?;
//! let lanes = ["sliding-window", "tova"].map(|name| LanePlan::new(find(name).unwrap(), 3));
//! let outcomes = replay(&trace, &caches_of(trace.info())?, &lanes, &Options::default(), &NoObserver)?;
//! let retained: Vec<_> = outcomes[0].tallies.iter().map(|tally| tally.figure("retained_mass")).collect();
//! assert_eq!(retained, [Some(0.8), Some(0.8875)]);
//! # Ok(())
//! # }
//! ```
//!
//! # A policy from outside the crate
//!
//! A policy is its state per slot and a choice; the engine does the rest and checks every answer.
//! This one evicts what got least in the heaviest row that it has seen of each position:
//!
//! ```
//! use kvsim::policy::table::{Make, PolicyEntry};
//! use kvsim::policy::{Admission, Observation, Overflow, Policy, choose_lowest};
//! use kvsim::position::Slot;
//! use kvsim::replay::{LanePlan, NoObserver, Options, caches_of, replay};
//! use kvsim::slots::SlotVec;
//! use kvsim::trace::{formats, options::ReadOptions};
//!
//! #[derive(Default)]
//! struct Peak(SlotVec<f32>);
//!
//! impl Policy for Peak {
//!     fn admit(&mut self, _admission: Admission<'_>) {
//!         self.0.push(f32::INFINITY); // not seen yet: stays
//!     }
//!     fn observe(&mut self, seen: Observation<'_>) {
//!         for (peak, weight) in self.0.iter_mut().zip(seen.weights) {
//!             *peak = if peak.is_finite() { peak.max(*weight) } else { *weight };
//!         }
//!     }
//!     fn choose(&mut self, overflow: Overflow<'_>, victims: &mut Vec<Slot>) {
//!         choose_lowest(&self.0, self.0.len(), overflow, victims);
//!     }
//!     fn forget(&mut self, slots: &[Slot]) {
//!         self.0.remove(slots);
//!     }
//! }
//!
//! static PEAK: PolicyEntry =
//!     PolicyEntry::new("peak", "keeps what was ever heavy", Make::Policy(|_| Box::new(Peak::default())));
//!
//! # fn main() -> kvsim::error::Result<()> {
//! let trace = formats::open("decode-4096".as_ref(), &ReadOptions::default())?;
//! let options = Options { steps: Some(600), ..Options::default() };
//! let lanes = [LanePlan::new(&PEAK, 256)];
//! let outcomes = replay(&*trace, &caches_of(trace.info())?, &lanes, &options, &NoObserver)?;
//! assert_eq!(outcomes[0].tallies[0].count("peak_kept"), 256);
//! # Ok(())
//! # }
//! ```

pub mod allocation;
pub mod analyze;
pub mod budgets;
pub mod decimal;
pub mod decisions;
pub mod error;
pub mod experiment;
pub mod inspect;
pub mod keeping;
pub mod kernels;
pub mod memory;
pub mod meter;
pub mod names;
pub mod needs;
#[cfg(feature = "pictures")]
pub mod picture;
pub mod policy;
pub mod position;
pub mod recommend;
pub mod replay;
pub mod report;
pub mod slots;
pub mod tensors;
pub mod text;
pub mod threads;
pub mod trace;
pub mod vectors;
pub mod word;
