//! The per-step report: one CSV line for each lane and step.
//!
//! Its figures are those of the meters that run, read from what they counted of the step alone, over all
//! its query heads.

use crate::meter::{MeterPlan, Number, Run, Tally};
use crate::policy::parameter::PARAMETERS;
use crate::replay::{CachePlan, LanePlan, StepRecord};
use crate::text;
use std::io::{self, Write};

/// Writes step records as CSV.
pub struct StepWriter<W: Write> {
    writer: csv::Writer<W>,
    /// Names of the figures and sums of one step.
    counted: Vec<&'static str>,
}

impl<W: Write> StepWriter<W> {
    /// Starts the report of these meters with its header.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn new(output: W, meters: &[MeterPlan]) -> io::Result<StepWriter<W>> {
        let mut writer = csv::Writer::from_writer(output);
        let parameters = PARAMETERS.iter().map(|parameter| parameter.column);
        let keys = ["trace", "layer", "head", "policy", "budget"];
        let counted: Vec<&str> = meters.iter().filter(|plan| is_written(plan)).flat_map(names).collect();
        let figures = ["step", "kept"].into_iter().chain(counted.iter().copied()).chain(["victims"]);
        writer.write_record(keys.into_iter().chain(parameters).chain(figures)).map_err(as_io)?;
        Ok(StepWriter { writer, counted })
    }

    /// Writes what each lane did in the steps of a block, step by step.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn write(
        &mut self,
        trace: &str,
        cache: &CachePlan,
        lanes: &[LanePlan],
        records: &[Vec<StepRecord>],
    ) -> io::Result<()> {
        let steps = records.iter().map(Vec::len).max().unwrap_or(0);
        for step in 0..steps {
            for (lane, records) in lanes.iter().zip(records) {
                if let Some(record) = records.get(step) {
                    self.write_one(trace, cache, lane, record).map_err(as_io)?;
                }
            }
        }
        Ok(())
    }

    fn write_one(&mut self, trace: &str, cache: &CachePlan, lane: &LanePlan, record: &StepRecord) -> csv::Result<()> {
        let label = &cache.label;
        let budget = lane.budget.map_or(String::new(), |budget| budget.to_string());
        let keys = [
            text::csv(trace).into_owned(),
            label.layer.to_string(),
            text::csv(&label.head.to_string()).into_owned(),
            lane.entry.name.to_owned(),
            budget,
        ];
        let value = |parameter: &&_| lane.values.get(parameter).map_or(String::new(), |value| value.to_string());
        let parameters = PARAMETERS.iter().map(value);
        let counted =
            self.counted.iter().map(|name| record.measured.as_ref().map_or(String::new(), |step| spelled(step, name)));
        let victims: Vec<String> = record.victims.iter().map(ToString::to_string).collect();
        let figures = [record.step.to_string(), record.kept.to_string()];
        let figures = figures.into_iter().chain(counted).chain([victims.join(" ")]);
        self.writer.write_record(keys.into_iter().chain(parameters).chain(figures))
    }

    /// Ends the report and hands back the output.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(|error| io::Error::new(error.error().kind(), error.to_string()))
    }
}

/// The error of the output behind an error of its writer: cells are text, nothing else can fail.
fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// What others are read by is not written.
fn is_written(plan: &MeterPlan) -> bool {
    plan.entry.by_step && plan.entry.run != Run::Always
}

/// What is written of a meter: its figures, then its sums.
fn names(plan: &MeterPlan) -> Vec<&'static str> {
    let figures = plan.entry.figures.iter().map(|figure| figure.name);
    let sums = plan.entry.sums.iter().map(|sum| sum.name);
    let mut all: Vec<&'static str> = figures.collect();
    all.extend(sums.filter(|sum| !plan.entry.figures.iter().any(|figure| figure.name == *sum)));
    all
}

/// A figure or a sum of one step; blank where nothing was counted.
fn spelled(step: &Tally, name: &str) -> String {
    match step.number(name) {
        Some(Number::Count(count)) => count.to_string(),
        Some(Number::Real(real)) => real.to_string(),
        None => step.figure(name).map_or(String::new(), |figure| figure.to_string()),
    }
}
