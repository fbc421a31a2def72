//! Budgets that were dealt out, in words, as a table, for programs, and as the file that `--layer-budget` takes.

use super::allocate::{Dealt, Objective};
use super::sums::{Figure, short};
use crate::report::cell::Cell;
use crate::report::results::Results;
use crate::report::schema::{self, Column};
use crate::report::text_table::TextTable;
use crate::word::Word;
use serde_json::{Map, Value};

impl Dealt {
    /// What it gives, in one sentence.
    pub fn sentence(&self) -> String {
        let (trace, held_out) = &self.replayed_on;
        let part = if *held_out { "which took no part in the choice" } else { "on which it was chosen" };
        let gain = self.replayed.iter().find(|way| way.shape == "uniform").zip(self.replayed.first());
        let gain = gain.map_or(String::new(), |(uniform, found)| {
            format!(
                " On {trace}, {part}, it keeps {} of the attention and {} of the rows miss a peak; one budget for all \
                 keeps {} and {}.",
                kept(found.lost_mass.value),
                Figure::PeakMisses.shown(found.peak_misses.value),
                kept(uniform.lost_mass.value),
                Figure::PeakMisses.shown(uniform.peak_misses.value)
            )
        });
        let caches = self.budgets.len();
        let budget = self.budget;
        format!(
            "{} positions for {caches} caches, {budget} on average, dealt out by {}: loss {}{}.{gain}",
            self.budgets.iter().map(|(_, budget)| budget).sum::<usize>(),
            self.objective.word(),
            short(self.loss),
            self.uniform_loss.map_or(String::new(), |uniform| format!(" for {} of one budget for all", short(uniform)))
        )
    }

    /// What each way to deal gives.
    pub fn ways(&self) -> TextTable {
        let row = |way: &super::allocate::Replayed| {
            let spread = short(100.0 * way.peak_misses.interval.reach(way.peak_misses.value));
            let peaks = format!("{} ±{spread}", Figure::PeakMisses.shown(way.peak_misses.value));
            vec![way.shape.to_owned(), peaks, kept(way.lost_mass.value)]
        };
        TextTable {
            header: ["budgets", "peak misses", "kept"].map(str::to_owned).to_vec(),
            rows: self.replayed.iter().map(row).collect(),
            right: vec![false, true, true],
        }
    }

    /// A row for each layer, a column for each head, and their budgets.
    pub fn table(&self) -> TextTable {
        let mut heads: Vec<String> = self.budgets.iter().map(|(label, _)| label.head.to_string()).collect();
        let mut layers: Vec<u32> = self.budgets.iter().map(|(label, _)| label.layer).collect();
        let mut seen = std::collections::BTreeSet::new();
        heads.retain(|head| seen.insert(head.clone()));
        layers.dedup();
        let of = |layer: u32, head: &String| {
            let found = self.budgets.iter().find(|(label, _)| label.layer == layer && label.head.to_string() == *head);
            found.map_or(String::new(), |(_, budget)| budget.to_string())
        };
        let row = |layer: &u32| {
            let budgets = heads.iter().map(|head| of(*layer, head));
            std::iter::once(layer.to_string()).chain(budgets).collect()
        };
        TextTable {
            rows: layers.iter().map(row).collect(),
            right: vec![true; heads.len() + 1],
            header: std::iter::once("layer".to_owned()).chain(heads.clone()).collect(),
        }
    }

    /// What a reader should know, one line each.
    pub fn notes(&self) -> Vec<String> {
        let known = match self.objective {
            Objective::LostMass => {
                "budgets dealt out by lost mass raised the real loss of a model by 8 to 11 %, pyramids by 10 to 12 %, at \
                 the same total: mass that is saved is not loss that is saved"
            }
            Objective::PeakMisses => {
                "budgets dealt out by peak misses alone raised the real loss of a model in two of four checks (by 12 and \
                 38 %) and cut it in two"
            }
            Objective::SensitivePeakMisses => {
                "budgets dealt out by peak misses times sensitivity cut the real loss of a model by 14 to 32 % in four of \
                 four checks, at one budget"
            }
        };
        let mut notes = vec![known.to_owned()];
        if self.marginal_loss > self.loss {
            let more = short(self.marginal_loss - self.loss);
            notes.push(format!("these budgets are the best of the grid; going along the hulls would lose {more} more"));
        }
        if !self.replayed_on.1 {
            notes.push(
                "chosen and replayed on the same trace: name another one behind it to see what is left".to_owned(),
            );
        }
        notes
    }

    /// One line for each cache.
    pub fn results(&self) -> Results {
        let names = ["layer", "head", "budget", "objective"];
        let column = |name: &str| schema::find(name).unwrap_or_else(|| Column::unknown(name));
        let mut results = Results::new(names.map(column).to_vec());
        for (label, budget) in &self.budgets {
            let head = Cell::text(&label.head.to_string());
            let layer = Cell::Count(u64::from(label.layer));
            results.push(vec![layer, head, Cell::count(Some(*budget)), Cell::text(self.objective.word())]);
        }
        results
    }

    /// The file that `--layer-budget` takes: each cache with its budget. At the average budget it is taken as it
    /// stands.
    pub fn file(&self) -> String {
        let entry = |(label, budget): &(crate::trace::StreamLabel, usize)| (label.to_string(), Value::from(*budget));
        let table: Map<String, Value> = self.budgets.iter().map(entry).collect();
        let text = serde_json::to_string_pretty(&Value::Object(table)).expect("text keys and whole numbers");
        text + "\n"
    }
}

fn kept(lost: f64) -> String {
    format!("{:.1}%", 100.0 * (1.0 - lost))
}
