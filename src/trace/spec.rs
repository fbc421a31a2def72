//! The description of a synthetic trace: a small JSON file, read and checked here, nothing more.

use super::limits::MOST_POSITIONS;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Masses lie so far apart at most that every share of one, down to that of a position among all, is a number
/// above zero: a row without any could not be divided by its total.
const LEAST_MASS: f64 = 1e-100;
const MOST_MASS: f64 = 1e6;

/// A mixture of sinks, a local band, heavy hitters and noise, self excluded.
///
/// The parts' masses need not sum to one: every row is divided by its total. A part that is left out
/// has no mass.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MixtureSpec {
    /// Version of this layout: 1.
    pub kvsim_spec: u32,
    /// How reports call the trace.
    pub name: String,
    /// Number of positions; there is one row fewer.
    pub positions: usize,
    /// Seed of the generator that draws the heavy hitters.
    pub seed: u32,
    /// Weight on the first positions, whatever the step.
    #[serde(default)]
    pub sinks: SinkSpec,
    /// Weight on the newest positions, falling linearly with the distance.
    #[serde(default)]
    pub local: LocalSpec,
    /// Weight on a random set of positions that changes from time to time.
    #[serde(default)]
    pub heavy_hitters: HeavySpec,
    /// Weight on all positions, the same on each unless it is spread.
    pub noise: NoiseSpec,
}

/// The sinks: position `i` takes `weights[i]` of the mass, relative to those in view.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct SinkSpec {
    /// Total of the part.
    pub mass: f64,
    /// Relative weight of each sink, from position 0 on.
    pub weights: Vec<f64>,
}

/// The local band: distance `d` takes a share proportional to `width + 1 - d`.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LocalSpec {
    /// Total of the part; before the first draw of heavy hitters their mass is added to it.
    pub mass: f64,
    /// Number of newest positions.
    pub width: usize,
}

/// The heavy hitters: the one drawn `r`-th takes a share proportional to `1 / (r + 1)`.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct HeavySpec {
    /// Total of the part.
    pub mass: f64,
    /// Number of positions drawn.
    pub count: usize,
    /// Step of the first draw.
    pub from: usize,
    /// The set is drawn anew at every later step that is a multiple of this.
    pub redraw_every: usize,
}

impl Default for HeavySpec {
    /// No heavy hitters, never drawn.
    fn default() -> HeavySpec {
        HeavySpec { mass: 0.0, count: 0, from: 0, redraw_every: usize::MAX }
    }
}

/// The noise floor: in row `t` each position has `mass / t`, multiplied by
/// `1 + spread * (2 * u - 1)` where the noise is spread.
///
/// `u` is the next 32 random bits over 2^32, drawn for each row from position 0 on; its generator is
/// a second one, seeded with `seed ^ 0x9e3779b9`, so that spread does not move the heavy hitters.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct NoiseSpec {
    /// Total of the part.
    pub mass: f64,
    /// How far a position's noise may lie from the even share, at least 0 (the default) and below 1.
    #[serde(default)]
    pub spread: f64,
}

/// The specs that the binary carries: name and text.
const BUILT_IN: [(&str, &str); 2] = [
    ("decode-4096", include_str!("../../traces/decode-4096.json")),
    ("control-2048", include_str!("../../traces/control-2048.json")),
];

/// The name of the trace that is replayed when none is named.
pub const DEFAULT_TRACE: &str = BUILT_IN[0].0;

/// Names of the built-in specs.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

impl MixtureSpec {
    /// A built-in spec by name.
    pub fn built_in(name: &str) -> Option<MixtureSpec> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(MixtureSpec::parse(name, text).expect("built-in specs are checked by a test"))
    }

    /// Reads a spec file.
    ///
    /// # Errors
    /// When the file cannot be read, is no spec, or describes no possible trace.
    pub fn read(path: &Path) -> Result<MixtureSpec> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        MixtureSpec::parse(&path.display().to_string(), &text)
    }

    /// Reads the text of a spec; `place` names it in errors.
    ///
    /// # Errors
    /// When the text is no spec or describes no possible trace.
    pub fn parse(place: &str, text: &str) -> Result<MixtureSpec> {
        let spec: MixtureSpec = serde_json::from_str(text)
            .map_err(|error| Error::data(format!("{place}:{}", error.line()), format!("not a trace spec: {error}")))?;
        spec.check().map_err(|problem| Error::data(place, problem))?;
        Ok(spec)
    }

    /// Says what is impossible about the spec.
    pub fn check(&self) -> Result<(), String> {
        let masses = [self.sinks.mass, self.local.mass, self.heavy_hitters.mass, self.noise.mass];
        let heavy = &self.heavy_hitters;
        let reserved = self.local.width.saturating_add(self.sinks.weights.len());
        if self.kvsim_spec != 1 {
            return Err(format!("kvsim_spec is {}, this version reads 1", self.kvsim_spec));
        }
        let is_possible = |mass: &f64| *mass == 0.0 || (LEAST_MASS..=MOST_MASS).contains(mass);
        if let Some(mass) = masses.iter().chain(&self.sinks.weights).find(|mass| !is_possible(mass)) {
            let range = format!("masses and sink weights must lie between {LEAST_MASS:e} and {MOST_MASS}, or be 0");
            return Err(format!("{mass:?} is out of range: {range}"));
        }
        if !(0.0..1.0).contains(&self.noise.spread) {
            return Err(format!("noise.spread is {}, must be at least 0 and below 1", self.noise.spread));
        }
        if self.noise.mass <= 0.0 && self.local.mass <= 0.0 {
            return Err("local.mass and noise.mass are both 0: some rows would be empty".to_owned());
        }
        if (self.local.mass > 0.0 && self.local.width == 0) || self.sinks.weights.contains(&0.0) {
            return Err("local.width (where local.mass is) and every sink weight must be above 0".to_owned());
        }
        for (name, count) in [("positions", self.positions), ("local.width + number of sinks", reserved)] {
            if count > MOST_POSITIONS {
                return Err(format!("{name} is {count}, at most {MOST_POSITIONS} are possible"));
            }
        }
        if heavy.redraw_every == 0 {
            return Err("heavy_hitters.redraw_every must be above 0".to_owned());
        }
        if heavy.count > 0 && heavy.from < reserved.saturating_add(heavy.count) {
            return Err(format!(
                "heavy_hitters.from is {}, needs at least {} (local.width + number of sinks + heavy_hitters.count)",
                heavy.from,
                reserved.saturating_add(heavy.count)
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_spec_is_sound_and_carries_its_name() {
        for name in built_in_names() {
            assert_eq!(MixtureSpec::built_in(name).map(|spec| spec.name).as_deref(), Some(name));
        }
    }

    #[test]
    fn a_spec_with_too_early_heavy_hitters_is_refused() {
        let mut spec = MixtureSpec::built_in(DEFAULT_TRACE).expect("built in");
        spec.heavy_hitters.from = 99;
        assert!(spec.check().is_err_and(|problem| problem.contains("at least 100")));
    }

    #[test]
    fn a_mass_that_vanishes_when_it_is_shared_out_is_refused() {
        let spec = |mass: &str| {
            let noise = format!(r#""noise": {{"mass": {mass}}}"#);
            MixtureSpec::parse(
                "x.json",
                &format!(r#"{{"kvsim_spec": 1, "name": "x", "positions": 9, "seed": 1, {noise}}}"#),
            )
        };
        for mass in ["5e-324", "1e-101", "-1", "1.1e6"] {
            let problem = spec(mass).expect_err("out of range").to_string();
            assert!(problem.starts_with("x.json: ") && problem.contains("out of range"), "{problem}");
        }
        assert!(spec("1e-100").is_ok() && spec("1e6").is_ok());
    }

    #[test]
    fn parts_may_be_left_out_but_not_all_of_them() {
        let spec = |rest: &str| {
            let text = format!(r#"{{"kvsim_spec": 1, "name": "x", "positions": 9, "seed": 1, {rest}}}"#);
            MixtureSpec::parse("x.json", &text)
        };
        assert!(spec(r#""noise": {"mass": 1}"#).is_ok_and(|spec| spec.noise.spread == 0.0));
        assert!(spec(r#""noise": {"mass": 0}, "local": {"mass": 1, "width": 2}"#).is_ok());
        assert!(spec(r#""noise": {"mass": 0}"#).is_err(), "rows of nothing");
        assert!(spec(r#""noise": {"mass": 1}, "local": {"mass": 1, "width": 0}"#).is_err(), "a band of no width");
        assert!(spec(r#""noise": {"mass": 1, "spread": 1}"#).is_err(), "a row could be empty");
    }
}
