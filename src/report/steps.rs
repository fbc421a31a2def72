//! The per-step report: one CSV line for each lane and step.

use crate::policy::parameter::PARAMETERS;
use crate::replay::{CachePlan, LanePlan, StepRecord};
use crate::text;
use std::io::{self, Write};

/// Writes step records as CSV.
pub struct StepWriter<W: Write> {
    writer: csv::Writer<W>,
}

impl<W: Write> StepWriter<W> {
    /// Starts the report with its header.
    ///
    /// # Errors
    /// When the output refuses.
    pub fn new(output: W) -> io::Result<StepWriter<W>> {
        let mut writer = csv::Writer::from_writer(output);
        let parameters = PARAMETERS.iter().map(|parameter| parameter.column);
        let keys = ["trace", "layer", "head", "policy", "budget"];
        let figures = [
            "step",
            "kept",
            "retained_mass",
            "heavy_hits",
            "heavy_possible",
            "pivotal_hits",
            "pivotal_possible",
            "victims",
        ];
        writer.write_record(keys.into_iter().chain(parameters).chain(figures)).map_err(as_io)?;
        Ok(StepWriter { writer })
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
        let measured =
            |figure: fn(&crate::replay::StepMeasure) -> String| record.measured.as_ref().map_or(String::new(), figure);
        let victims: Vec<String> = record.victims.iter().map(ToString::to_string).collect();
        let figures = [
            record.step.to_string(),
            record.kept.to_string(),
            measured(|row| row.retained.to_string()),
            measured(|row| row.heavy_hits.to_string()),
            measured(|row| row.heavy_possible.to_string()),
            measured(|row| row.pivotal_hits.to_string()),
            measured(|row| row.pivotal_possible.to_string()),
            victims.join(" "),
        ];
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
