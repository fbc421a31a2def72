//! The answer in words: one sentence that a person can repeat, a table, and what a reader should know.

use super::answer::{Answer, AnswerLine, Goal, Kept};
use super::candidates::Candidate;
use super::sums::{Figure, short};
use crate::report::text_table::TextTable;

/// A column of the table.
struct TextColumn {
    title: &'static str,
    right: bool,
    cells: Vec<String>,
}

/// Policies that a sentence names beside the first.
const MOST_NAMED: usize = 3;

impl Answer {
    /// The answer in one sentence.
    pub fn sentence(&self) -> String {
        let best = self.lines.first().and_then(|line| Some((line, line.kept.as_ref()?)));
        match (self.goal, best) {
            (_, None) => self.no_answer(),
            (Goal::Budget(_), Some((line, kept))) => format!(
                "At {}, {} serves best: it keeps {} of the attention, and {} of the rows miss a position that they gave \
                 more than a tenth of it; {}.{}",
                self.positions(kept.budget),
                named(&line.candidate),
                percent(1.0 - kept.lost_mass.value),
                Figure::PeakMisses.shown(kept.peak_misses.value),
                costs(kept),
                self.ties()
            ),
            (Goal::Promise(figure, most), Some((line, kept))) => format!(
                "To {}, {} needs least: {}{}; {}.{}",
                promised(figure, most),
                named(&line.candidate),
                self.positions(kept.budget),
                self.likely(kept).map_or(String::new(), |likely| format!(", likely {likely}")),
                costs(kept),
                self.ties()
            ),
        }
    }

    fn no_answer(&self) -> String {
        match self.goal {
            Goal::Budget(_) => "No policy is possible here.".to_owned(),
            Goal::Promise(figure, most) => format!(
                "To {}, no policy will do: none up to {}.",
                promised(figure, most),
                self.positions(self.basis.largest)
            ),
        }
    }

    fn positions(&self, budget: usize) -> String {
        let positions = self.basis.positions;
        format!("{budget} of {positions} positions ({})", percent(budget as f64 / positions.max(1) as f64))
    }

    /// Where the smallest budget would lie on other rows.
    fn likely(&self, kept: &Kept) -> Option<String> {
        let interval = kept.budget_interval?;
        let largest = self.basis.largest as f64;
        let high = if interval.high > largest { format!(">{largest}") } else { interval.high.to_string() };
        Some(format!("{}..{high}", interval.low))
    }

    /// Who cannot be told from the first.
    fn ties(&self) -> String {
        let others: Vec<&AnswerLine> = self.lines.iter().skip(1).filter(|line| line.rank == Some(1)).collect();
        let names: Vec<&str> = others.iter().take(MOST_NAMED).map(|line| line.candidate.entry.name).collect();
        let more = others.len() - names.len();
        match (&names[..], more) {
            ([], _) => String::new(),
            (names, 0) => format!(" Not to be told from it: {}.", names.join(", ")),
            (names, more) => format!(" Not to be told from it: {} and {more} more.", names.join(", ")),
        }
    }

    /// The table, and the columns that a narrow place can do without, those to go first first.
    pub fn table(&self) -> (TextTable, Vec<usize>) {
        let columns = self.text_columns();
        let spare = match self.goal {
            // With one budget for all, the share stands in the sentence.
            Goal::Budget(_) => vec!["of own"],
            Goal::Promise(..) => vec!["worst", "of own"],
        };
        let place = |title: &str| columns.iter().position(|column| column.title == title);
        let spare = spare.into_iter().filter_map(place).collect();
        let table = TextTable {
            header: columns.iter().map(|column| column.title.to_owned()).collect(),
            right: columns.iter().map(|column| column.right).collect(),
            rows: (0..self.lines.len())
                .map(|line| columns.iter().map(|column| column.cells[line].clone()).collect())
                .collect(),
        };
        (table, spare)
    }

    /// The columns that hold anything.
    fn text_columns(&self) -> Vec<TextColumn> {
        let column = |title, right, cell: &dyn Fn(&AnswerLine) -> String| TextColumn {
            title,
            right,
            cells: self.lines.iter().map(cell).collect(),
        };
        let kept = |title, right, cell: &dyn Fn(&Kept) -> String| {
            column(title, right, &|line| line.kept.as_ref().map_or(String::new(), cell))
        };
        let mut columns = vec![
            column("#", true, &|line| line.rank.map_or("-".to_owned(), |rank| rank.to_string())),
            column("policy", false, &|line| line.candidate.entry.name.to_owned()),
            column("window", false, &|line| line.candidate.in_short()),
        ];
        if matches!(self.goal, Goal::Promise(..)) {
            let none = || format!("up to {}", self.basis.largest);
            columns.extend([
                column("budget", true, &|line| {
                    line.kept.as_ref().map_or("none".to_owned(), |kept| kept.budget.to_string())
                }),
                column("likely", false, &|line| {
                    line.kept.as_ref().map_or_else(none, |kept| self.likely(kept).unwrap_or_default())
                }),
            ]);
        }
        columns.extend([
            kept(self.lead_title(), true, &|kept| self.led(kept)),
            kept("kept", true, &|kept| percent(1.0 - kept.lost_mass.value)),
            kept("worst", false, &|kept| {
                kept.worst_layer.map_or(String::new(), |(layer, lost)| format!("{layer}: {}", percent(1.0 - lost)))
            }),
            kept("cache", true, &|kept| kept.cost.and_then(|cost| cost.bytes).map_or(String::new(), bytes)),
            kept("of own", true, &|kept| kept.cost.map_or(String::new(), |cost| percent(cost.share))),
        ]);
        columns.retain(|column| column.title == "window" || column.cells.iter().any(|cell| !cell.is_empty()));
        columns
    }

    fn lead_title(&self) -> &'static str {
        match self.lead {
            Figure::PredictedLoss => "pred. loss",
            Figure::PeakMisses | Figure::LostMass => "peaks %",
        }
    }

    /// The figure that leads; with its spread where it is what orders.
    fn led(&self, kept: &Kept) -> String {
        let lead = kept.figure(self.lead).unwrap_or(kept.peak_misses);
        let scale = if self.lead == Figure::PredictedLoss { 1.0 } else { 100.0 };
        let value = short(scale * lead.value);
        match self.goal {
            Goal::Budget(_) => format!("{value} ±{}", short(scale * lead.interval.reach(lead.value))),
            Goal::Promise(..) => value,
        }
    }

    /// What a reader should know, one line each.
    pub fn notes(&self) -> Vec<String> {
        let basis = &self.basis;
        let columns = "peaks: rows that miss a position which they gave more than a tenth of their attention; kept: \
                       attention on positions still held; worst: the layer that keeps least";
        let mut notes = vec![columns.to_owned(), self.rows_note(), self.spread_note(), self.choice_note().to_owned()];
        notes
            .push(format!("{}; the figure is open loop: confirm on the running model", self.ordering_figure().known()));
        if !basis.left_out.is_empty() {
            notes.push(format!("not possible here: {}", basis.left_out.join(", ")));
        }
        notes
    }

    fn ordering_figure(&self) -> Figure {
        match self.goal {
            Goal::Budget(_) => self.lead,
            Goal::Promise(figure, _) => figure,
        }
    }

    fn rows_note(&self) -> String {
        let prompts: Vec<String> = self.basis.prompts.iter().flatten().map(usize::to_string).collect();
        match prompts.is_empty() {
            true => "figures are of rows after the first eviction, in which something can be lost".to_owned(),
            false => format!(
                "figures are of decode rows in which something can be lost; the prompt of {} positions is cut at its end, \
                 as servers do, and held whole before",
                prompts.join(", ")
            ),
        }
    }

    fn spread_note(&self) -> String {
        let (sampled, all) = self.basis.caches;
        let drawn = match self.basis.traces.len() {
            1 => format!("{} blocks of rows", self.basis.blocks),
            traces => format!("{traces} traces"),
        };
        let sample = match sampled < all {
            true => format!(" and of the {sampled} of {all} caches that stand for all (--quick)"),
            false => String::new(),
        };
        let reach = match self.goal {
            Goal::Budget(_) => "± reaches to the farther end of what",
            Goal::Promise(..) => "likely is what",
        };
        format!("{reach} 95 % of draws of {drawn}{sample} give; what draws cannot tell apart shares a rank")
    }

    fn choice_note(&self) -> &'static str {
        match self.basis.traces.len() {
            1 => "settings were chosen on the rows that they are reported on: on other text expect a little less",
            _ => "figures of each trace are of settings chosen on the others",
        }
    }
}

fn promised(figure: Figure, most: f64) -> String {
    match figure {
        Figure::LostMass => format!("lose at most {} of the attention", exact_percent(most)),
        Figure::PeakMisses => format!("miss a peak in at most {} of the rows", exact_percent(most)),
        Figure::PredictedLoss => format!("predict a loss of at most {most} nats a row"),
    }
}

fn named(candidate: &Candidate) -> String {
    match candidate.setting() {
        setting if setting.is_empty() => candidate.entry.name.to_owned(),
        setting => format!("{} ({setting})", candidate.entry.name),
    }
}

fn costs(kept: &Kept) -> String {
    match kept.cost {
        Some(cost) => match cost.bytes {
            Some(size) => format!("a sequence takes {}, {} of the model's own cache", bytes(size), percent(cost.share)),
            None => format!("a sequence takes {} of the model's own cache", percent(cost.share)),
        },
        None => "what a sequence takes is not known".to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// As it was typed: without zeros at the end.
fn exact_percent(share: f64) -> String {
    let text = format!("{:.6}", 100.0 * share);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

fn bytes(count: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} bytes") } else { format!("{} {}", short(value), units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_three_digits() {
        assert_eq!(
            [7, 999, 1536, 3 << 20, 5 << 30].map(bytes),
            ["7 bytes", "999 bytes", "1.50 KiB", "3.00 MiB", "5.00 GiB"]
        );
    }

    #[test]
    fn a_promise_is_said_as_it_was_typed() {
        assert_eq!(promised(Figure::LostMass, 0.02), "lose at most 2% of the attention");
        assert_eq!(promised(Figure::PeakMisses, 0.005), "miss a peak in at most 0.5% of the rows");
    }
}
