//! The answer for programs: a line for each policy, numbers as exact as they are.

use super::answer::{Answer, AnswerLine, Goal, Kept};
use super::trials::Estimate;
use crate::policy::parameter::PARAMETERS;
use crate::report::cell::Cell;
use crate::report::results::Results;
use crate::report::schema::{self, Column};

impl Answer {
    /// One line for each policy, in the order of ranks.
    pub fn results(&self) -> Results {
        let named: Vec<(&str, Vec<Cell>)> = self.columns();
        let column = |name: &str| schema::find(name).unwrap_or_else(|| Column::unknown(name));
        let mut results = Results::new(named.iter().map(|(name, _)| column(name)).collect());
        for line in 0..self.lines.len() {
            results.push(named.iter().map(|(_, cells)| cells[line].clone()).collect());
        }
        results
    }

    /// Every column with its cells.
    fn columns(&self) -> Vec<(&'static str, Vec<Cell>)> {
        let mut columns: Vec<(&'static str, Vec<Cell>)> = Vec::new();
        let mut add =
            |name, cell: &dyn Fn(&AnswerLine) -> Cell| columns.push((name, self.lines.iter().map(cell).collect()));
        add("trace", &|_| Cell::text(&self.basis.traces.join(" ")));
        add("goal", &|_| Cell::text(self.goal_word()));
        add("promise", &|_| match self.goal {
            Goal::Budget(_) => Cell::Blank,
            Goal::Promise(_, most) => Cell::Real(most),
        });
        add("rank", &|line| Cell::count(line.rank));
        add("policy", &|line| Cell::text(line.candidate.entry.name));
        add("spelled", &|line| Cell::text(&line.candidate.spelled()));
        for parameter in PARAMETERS {
            if self.lines.iter().any(|line| line.candidate.values.get(parameter).is_some()) {
                add(parameter.column, &|line| {
                    line.candidate.values.get(parameter).map_or(Cell::Blank, |value| Cell::text(&value.to_string()))
                });
            }
        }
        self.add_kept(&mut columns);
        columns
    }

    fn add_kept(&self, columns: &mut Vec<(&'static str, Vec<Cell>)>) {
        let positions = self.basis.positions;
        let mut add = |name, cell: &dyn Fn(&Kept) -> Cell| {
            let cells = self.lines.iter().map(|line| line.kept.as_ref().map_or(Cell::Blank, cell));
            columns.push((name, cells.collect()));
        };
        add("positions", &|_| Cell::count(Some(positions)));
        add("budget", &|kept| Cell::count(Some(kept.budget)));
        add("budget_low", &|kept| kept.budget_interval.map(|interval| interval.low).into());
        add("budget_high", &|kept| kept.budget_interval.map(|interval| interval.high).into());
        add("largest_budget", &|_| Cell::count(Some(self.basis.largest)));
        add_estimate(&mut add, ["peak_misses", "peak_misses_low", "peak_misses_high"], &|kept| Some(kept.peak_misses));
        add_estimate(&mut add, ["lost_mass", "lost_mass_low", "lost_mass_high"], &|kept| Some(kept.lost_mass));
        let names = ["predicted_loss", "predicted_loss_low", "predicted_loss_high"];
        add_estimate(&mut add, names, &|kept| kept.predicted_loss);
        add("worst_layer", &|kept| Cell::count(kept.worst_layer.map(|(layer, _)| layer as usize)));
        add("worst_layer_lost_mass", &|kept| kept.worst_layer.map(|(_, lost)| lost).into());
        add("kv_bytes", &|kept| kept.cost.and_then(|cost| cost.bytes).map_or(Cell::Blank, Cell::Count));
        add("kv_share", &|kept| kept.cost.map(|cost| cost.share).into());
    }

    fn goal_word(&self) -> &'static str {
        match self.goal {
            Goal::Budget(_) => "budget",
            Goal::Promise(figure, _) => figure.column(),
        }
    }
}

/// Adds a column: its name, and its cell of what a policy keeps.
type AddColumn<'a> = dyn FnMut(&'static str, &dyn Fn(&Kept) -> Cell) + 'a;

/// Adds a figure and the ends of its interval.
fn add_estimate(add: &mut AddColumn<'_>, names: [&'static str; 3], of: &dyn Fn(&Kept) -> Option<Estimate>) {
    add(names[0], &|kept| of(kept).map(|estimate| estimate.value).into());
    add(names[1], &|kept| of(kept).map(|estimate| estimate.interval.low).into());
    add(names[2], &|kept| of(kept).map(|estimate| estimate.interval.high).into());
}
