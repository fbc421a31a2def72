//! The meters again, each counted from whole rows and kept positions: the twins of the crate's list.

use super::outcome::Measured;

/// What a meter has to count.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Every measured row.
    pub rows: Vec<Measured>,
    /// Every step.
    pub steps: Vec<StepSeen>,
    /// Positions held between steps at most; none without a budget.
    pub budget: Option<usize>,
    /// Newest positions that are never evicted, where the policy has such a window.
    pub window: Option<usize>,
    /// First positions that are never evicted, where the policy has some.
    pub own_sinks: Option<usize>,
    /// Positions that count as sinks.
    pub sinks: usize,
}

impl Seen {
    /// One measured step, its rows alone.
    pub fn step(rows: Vec<Measured>) -> Seen {
        let step = StepSeen { measured: true, ..StepSeen::default() };
        Seen { rows, steps: vec![step], sinks: 4, ..Seen::default() }
    }
}

/// One step.
#[derive(Clone, Debug, Default)]
pub struct StepSeen {
    /// Positions held after it.
    pub kept: usize,
    /// Which they are.
    pub positions: Vec<u32>,
    /// Positions evicted in it.
    pub evicted: usize,
    /// Positions that expired in it.
    pub expired: usize,
    /// It was measured.
    pub measured: bool,
    /// It belongs to a prompt that is cut down at once.
    pub in_prompt: bool,
}

/// Counts the sums of one meter: each by its name, none where there is nothing to count.
pub type Twin = fn(&Seen) -> Vec<(&'static str, Option<f64>)>;

/// Every meter, in the order of the crate's list.
pub const METERS: &[(&str, Twin)] = &[
    ("rows", rows),
    ("mass", mass),
    ("heavy", heavy),
    ("pivotal", pivotal),
    ("peaks", peaks),
    ("kept", kept),
    ("memory", memory),
    ("budget", budget),
    ("read", read),
    ("kept_entropy", kept_entropy),
    ("sink_mass", sink_mass),
    ("pages", pages),
];

fn count<T>(items: &[T], holds: impl Fn(&T) -> bool) -> Option<f64> {
    Some(items.iter().filter(|item| holds(item)).count() as f64)
}

fn total<T>(items: &[T], number: impl Fn(&T) -> f64) -> Option<f64> {
    let mut sum = 0.0;
    for item in items {
        sum += number(item);
    }
    Some(sum)
}

fn rows(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("steps", count(&seen.steps, |step| step.measured)),
        ("rows_measured", Some(seen.rows.len() as f64)),
        ("skipped_rows", count(&seen.steps, |step| !step.measured && !step.in_prompt)),
        ("prompt_steps", count(&seen.steps, |step| step.in_prompt)),
    ]
}

fn mass(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    let late: Vec<Measured> = seen.rows.iter().filter(|row| row.after_first_eviction).cloned().collect();
    vec![
        ("retained_mass_sum", total(&seen.rows, |row| row.mass)),
        ("rows_full", Some(late.len() as f64)),
        ("retained_mass_full_sum", total(&late, |row| row.mass)),
        ("row_mass_sum", total(&seen.rows, |row| row.row_total)),
        ("min_step_mass", seen.rows.iter().map(|row| row.mass).reduce(f64::min)),
        ("broken_rows", count(&seen.rows, |row| row.broken)),
    ]
}

fn heavy(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("heavy_hits", total(&seen.rows, |row| row.heavy_hits as f64)),
        ("heavy_possible", total(&seen.rows, |row| row.heavy_possible as f64)),
    ]
}

fn pivotal(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("pivotal_hits", total(&seen.rows, |row| row.pivotal_hits as f64)),
        ("pivotal_possible", total(&seen.rows, |row| row.pivotal_possible as f64)),
    ]
}

fn peaks(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    vec![("peak_misses", count(&seen.rows, |row| row.peak_missed))]
}

/// The bytes that an implementation takes are its own affair: they have no twin.
fn kept(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    let in_prompt = seen.steps.iter().filter(|step| step.in_prompt);
    let prompt_peak = in_prompt.map(|step| step.kept + step.evicted).max();
    let after_prompt: Vec<StepSeen> = seen.steps.iter().filter(|step| !step.in_prompt).cloned().collect();
    vec![
        ("eviction_calls", count(&seen.steps, |step| step.evicted > 0)),
        ("evicted", total(&seen.steps, |step| step.evicted as f64)),
        ("expired", total(&seen.steps, |step| step.expired as f64)),
        ("kept_sum", total(&after_prompt, |step| step.kept as f64)),
        ("peak_kept", Some(after_prompt.iter().map(|step| step.kept).max().unwrap_or(0) as f64)),
        ("prompt_peak", prompt_peak.map(|peak| peak as f64)),
    ]
}

fn budget(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    let (number, one) = (|count: usize| count as f64, |_: usize| 1.0);
    vec![
        ("budget_sum", seen.budget.map(number)),
        ("budgeted_caches", seen.budget.map(one)),
        ("window_sum", seen.window.map(number)),
        ("windowed_caches", seen.window.map(one)),
        ("sinks_sum", seen.own_sinks.map(number)),
        ("caches_with_sinks", seen.own_sinks.map(one)),
    ]
}

/// No test of the reference says how large a model is.
fn memory(_seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    ["token_bytes", "kv_bytes_mean", "kv_bytes_peak", "kv_bytes_model", "kv_bytes_full"]
        .map(|name| (name, None))
        .to_vec()
}

/// Of a single cache, which is its layer and its trace.
fn pages(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    let after_prompt: Vec<&StepSeen> = seen.steps.iter().filter(|step| !step.in_prompt).collect();
    let in_place = |step: &&&StepSeen| {
        let mut pages: Vec<u32> = step.positions.iter().map(|position| position / 16).collect();
        pages.dedup();
        pages.len()
    };
    let in_place: Vec<usize> = after_prompt.iter().map(|step| in_place(&step)).collect();
    let compacted: Vec<usize> = after_prompt.iter().map(|step| step.kept.div_ceil(16)).collect();
    let sum = |counts: &[usize]| Some(counts.iter().sum::<usize>() as f64);
    let most = |counts: &[usize]| Some(counts.iter().copied().max().unwrap_or(0) as f64);
    let steps = Some(after_prompt.len() as f64);
    vec![
        ("pages_steps", steps),
        ("pages_in_place_sum", sum(&in_place)),
        ("pages_in_place_peak", most(&in_place)),
        ("pages_compacted_sum", sum(&compacted)),
        ("pages_compacted_peak", most(&compacted)),
        ("pages_layer_steps", steps),
        ("pages_layer_sum", sum(&in_place)),
        ("pages_layer_peak", most(&in_place)),
        ("pages_trace_steps", steps),
        ("pages_trace_sum", sum(&in_place)),
        ("pages_trace_peak", most(&in_place)),
    ]
}

/// Of a selector: its kept positions are those that it reads. Laws have a test of their own.
fn read(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    vec![
        ("read_sum", total(&seen.rows, |row| row.kept.len() as f64)),
        ("peak_read", Some(seen.rows.iter().map(|row| row.kept.len()).max().unwrap_or(0) as f64)),
        ("fits", Some(0.0)),
        ("fit_log_scale_sum", Some(0.0)),
        ("fit_exponent_sum", Some(0.0)),
    ]
}

fn kept_entropy(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    let with_weight: Vec<Measured> = seen.rows.iter().filter(|row| row.mass > 0.0).cloned().collect();
    vec![("kept_entropy_sum", total(&with_weight, entropy)), ("kept_entropy_rows", Some(with_weight.len() as f64))]
}

/// Minus the sum of p ln p over the kept positions, p being the share of the kept weight.
fn entropy(row: &Measured) -> f64 {
    let mut entropy = 0.0;
    for position in &row.kept {
        let share = f64::from(row.row[*position as usize]) / row.mass;
        if share > 0.0 {
            entropy -= share * share.ln();
        }
    }
    entropy
}

fn sink_mass(seen: &Seen) -> Vec<(&'static str, Option<f64>)> {
    let of_row = |row: &Measured| {
        let sinks = row.kept.iter().filter(|position| (**position as usize) < seen.sinks);
        sinks.map(|position| f64::from(row.row[*position as usize])).sum()
    };
    vec![("sink_mass_sum", total(&seen.rows, of_row)), ("sink_mass_sinks", Some(seen.sinks as f64))]
}
