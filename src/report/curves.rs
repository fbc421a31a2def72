//! Curves from results: figures over a number, a curve for each value of the columns that tell lanes apart.
//! What they are drawn as is for others to say.

use super::cell::Cell;
use super::compare;
use super::results::{Line, Results};
use super::schema::{Column, Role};
use crate::meter::Better;

/// What is drawn.
#[derive(Clone, Debug, Default)]
pub struct CurvePlan {
    /// Column along the abscissa; `None`: the budget, or another number of lanes that differs.
    pub x: Option<String>,
    /// Figures, each in a panel of its own; none: those that people read first.
    pub y: Vec<String>,
    /// Columns whose values make curves; none: the columns of lanes that differ.
    pub by: Vec<String>,
}

/// Curves of one figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// The column of the abscissa.
    pub x: String,
    /// The figure.
    pub figure: Column,
    /// The curves, in the order of the lines.
    pub curves: Vec<Curve>,
}

impl Panel {
    /// The figure, and which way is better.
    pub fn title(&self) -> String {
        let better = match self.figure.better() {
            Better::Higher => ", higher is better",
            Better::Lower => ", lower is better",
            Better::Neither => "",
        };
        format!("{}{better}", self.figure.name)
    }
}

/// One curve.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// What it is of: values of the columns that tell curves apart.
    pub name: String,
    /// By abscissa, ascending. Without an abscissa, a policy without a budget say, the figure is a level.
    pub points: Vec<Point>,
    /// The figure where there is no abscissa.
    pub level: Option<f64>,
}

/// One point of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Abscissa.
    pub x: f64,
    /// The figure, or its mean where several lines fall on the point.
    pub y: f64,
    /// Least and greatest of these lines, or the interval that the results give for the figure.
    pub range: Option<(f64, f64)>,
}

/// Figures that are drawn where none is named, as far as there are any.
const DRAWN_FIRST: [&str; 3] = ["predicted_loss", "peak_miss_rate", "retained_mass"];

/// Columns of a whole and of its parts: several lines that differ in these alone are one point with a range.
const PARTS: [&str; 4] = ["trace", "content", "layer", "head"];

/// The curves of results, a panel for each figure.
///
/// # Errors
/// When a column is unknown, holds no numbers or does not differ, lines on one point differ in more than the part
/// of the traces that they are about, or lines do not compare.
pub fn curves(results: &Results, plan: &CurvePlan) -> Result<Vec<Panel>, String> {
    let x = match &plan.x {
        Some(name) => results.column(name)?,
        None => abscissa(results)?,
    };
    let figures = match plan.y.is_empty() {
        true => {
            DRAWN_FIRST.iter().filter_map(|name| results.find(name)).filter(|at| has_numbers(results, *at)).collect()
        }
        false => plan.y.iter().map(|name| results.column(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let by = match plan.by.is_empty() {
        true => differing(results, x),
        false => plan.by.iter().map(|name| results.column(name)).collect::<Result<Vec<_>, _>>()?,
    };
    if figures.is_empty() {
        return Err("there is no figure to draw: name one with --y".to_owned());
    }
    let layout = Layout { results, x, by };
    layout.check()?;
    figures.into_iter().map(|figure| layout.panel(figure)).collect()
}

fn has_numbers(results: &Results, at: usize) -> bool {
    results.lines().iter().any(|line| line[at].number().is_some())
}

/// The column of lanes that is a number and differs: the budget where it does.
fn abscissa(results: &Results) -> Result<usize, String> {
    let differs = |at: &usize| {
        let mut numbers: Vec<f64> = results.lines().iter().filter_map(|line| line[*at].number()).collect();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.len() > 1
    };
    let mut of_lanes = (0..results.columns().len()).filter(|at| results.columns()[*at].role == Role::Lane);
    let found = results.find("budget").filter(&differs).or_else(|| of_lanes.find(&differs));
    found.ok_or_else(|| "no budget and no parameter takes two values: there is no curve to draw".to_owned())
}

/// Columns of lanes that differ, apart from the abscissa.
fn differing(results: &Results, x: usize) -> Vec<usize> {
    let lines: Vec<&Line> = results.lines().iter().collect();
    // A parameter that some policies lack is blank there: what differs among those that have it counts.
    let differs = |at: &usize| {
        let having: Vec<&Line> = lines.iter().copied().filter(|line| !line[*at].is_blank()).collect();
        results.values(*at, &having).len() > 1
    };
    let of_lanes = (0..results.columns().len()).filter(|at| *at != x && results.columns()[*at].role == Role::Lane);
    of_lanes.filter(differs).collect()
}

/// Where curves come from.
struct Layout<'a> {
    results: &'a Results,
    x: usize,
    by: Vec<usize>,
}

impl Layout<'_> {
    /// Refuses lines that do not compare.
    fn check(&self) -> Result<(), String> {
        let parts = PARTS.iter().filter_map(|name| self.results.find(name));
        let shown: Vec<usize> = self.by.iter().copied().chain([self.x]).chain(parts).collect();
        compare::check(self.results, &self.results.lines().iter().collect::<Vec<_>>(), &shown)
    }

    fn panel(&self, figure: usize) -> Result<Panel, String> {
        let mut curves: Vec<(String, Vec<&Line>)> = Vec::new();
        for line in self.results.lines().iter().filter(|line| line[figure].number().is_some()) {
            let name = self.name(line);
            match curves.iter_mut().find(|(known, _)| *known == name) {
                Some((_, lines)) => lines.push(line),
                None => curves.push((name, vec![line])),
            }
        }
        let column = self.results.columns()[figure].clone();
        if curves.is_empty() {
            return Err(format!("{} holds no number", column.name));
        }
        let curve = |(name, lines): (String, Vec<&Line>)| self.curve(name, &lines, figure);
        let curves = curves.into_iter().map(curve).collect::<Result<Vec<_>, _>>()?;
        Ok(Panel { x: self.results.columns()[self.x].name.to_string(), figure: column, curves })
    }

    /// The values that tell a curve apart: words as they are, numbers with the name of their column.
    fn name(&self, line: &Line) -> String {
        let word = |at: &usize| match &line[*at] {
            Cell::Blank => None,
            Cell::Text(text) => Some(text.to_string()),
            number => Some(format!("{} {}", self.results.columns()[*at].name.replace('_', " "), number.exact())),
        };
        let words: Vec<String> = self.by.iter().filter_map(word).collect();
        if words.is_empty() { "all".to_owned() } else { words.join(", ") }
    }

    fn curve(&self, name: String, lines: &[&Line], figure: usize) -> Result<Curve, String> {
        let (with, without): (Vec<&Line>, Vec<&Line>) = lines.iter().partition(|line| !line[self.x].is_blank());
        let mut places: Vec<f64> = with.iter().map(|line| self.place(line)).collect::<Result<_, _>>()?;
        places.sort_by(f64::total_cmp);
        places.dedup();
        let at =
            |x: f64| -> Vec<&Line> { with.iter().copied().filter(|line| line[self.x].number() == Some(x)).collect() };
        let points = places.into_iter().map(|x| self.point(x, &at(x), figure)).collect::<Result<_, _>>()?;
        let level = if without.is_empty() { None } else { Some(self.point(0.0, &without, figure)?.y) };
        Ok(Curve { name, points, level })
    }

    fn place(&self, line: &Line) -> Result<f64, String> {
        let column = &self.results.columns()[self.x].name;
        line[self.x].number().ok_or_else(|| format!("{column} is {:?}, not a number", line[self.x].exact()))
    }

    fn point(&self, x: f64, lines: &[&Line], figure: usize) -> Result<Point, String> {
        let numbers: Vec<f64> = lines.iter().filter_map(|line| line[figure].number()).collect();
        let y = numbers.iter().sum::<f64>() / numbers.len() as f64;
        if let [line] = lines {
            return Ok(Point { x, y, range: self.interval(line, figure) });
        }
        self.must_be_parts(lines)?;
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Point { x, y, range: Some((least, most)) })
    }

    /// The interval that results give for a figure, in columns called after it.
    fn interval(&self, line: &Line, figure: usize) -> Option<(f64, f64)> {
        let name = &self.results.columns()[figure].name;
        let end = |end: &str| self.results.find(&format!("{name}_{end}")).and_then(|at| line[at].number());
        end("low").zip(end("high"))
    }

    /// Several lines for one point must be about different parts of the traces.
    fn must_be_parts(&self, lines: &[&Line]) -> Result<(), String> {
        let differs = |at: &usize| self.results.values(*at, lines).len() > 1;
        let keys = (0..self.results.columns().len()).filter(|at| self.results.columns()[*at].is_key());
        let differing: Vec<&str> = keys.filter(differs).map(|at| &*self.results.columns()[at].name).collect();
        match differing.iter().find(|name| !PARTS.contains(name)) {
            Some(name) => Err(format!(
                "several lines fall on one point; they differ in {}: add {name} to --by, or choose with --filter {name}=...",
                differing.join(", ")
            )),
            None if differing.is_empty() => {
                Err("two lines of the results are the same: the same file twice?".to_owned())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::read::read;

    fn results(text: &str) -> Results {
        read(text.as_bytes()).expect("sound results")
    }

    const SWEEP: &str = "trace,policy,budget,recent_window,retained_mass\n\
        a,h2o,64,16,0.5\na,h2o,32,16,0.25\na,tova,64,,0.75\na,full,,,1\n";

    #[test]
    fn a_sweep_of_budgets_is_a_curve_for_each_policy_and_what_has_no_budget_is_a_level() {
        let panels = curves(&results(SWEEP), &CurvePlan::default()).expect("curves");
        assert_eq!((panels.len(), &*panels[0].x, &*panels[0].figure.name), (1, "budget", "retained_mass"));
        let names: Vec<&str> = panels[0].curves.iter().map(|curve| &*curve.name).collect();
        assert_eq!(names, ["h2o", "tova", "full"]);
        let point = |x, y| Point { x, y, range: None };
        assert_eq!(panels[0].curves[0].points, [point(32.0, 0.25), point(64.0, 0.5)]);
        assert_eq!((panels[0].curves[2].points.len(), panels[0].curves[2].level), (0, Some(1.0)));
    }

    #[test]
    fn streams_on_one_point_are_a_mean_with_a_range_and_unnamed_parameters_are_refused() {
        let text =
            "trace,layer,policy,budget,retained_mass\na,0,h2o,1,0.25\na,1,h2o,1,0.75\na,0,h2o,2,1\na,1,h2o,2,1\n";
        let panels = curves(&results(text), &CurvePlan::default()).expect("curves");
        assert_eq!(panels[0].curves[0].points[0], Point { x: 1.0, y: 0.5, range: Some((0.25, 0.75)) });
        let text = "trace,policy,budget,recent_window,retained_mass\na,h2o,1,1,0.5\na,h2o,1,2,0.5\na,h2o,2,2,0.5\n";
        let plan = CurvePlan { by: vec!["policy".to_owned()], ..CurvePlan::default() };
        let problem = curves(&results(text), &plan).expect_err("two windows at one budget");
        assert!(problem.contains("they differ in recent_window: add recent_window to --by"), "{problem}");
        let named = curves(&results(text), &CurvePlan::default()).expect("curves");
        assert_eq!(named[0].curves[1].name, "recent window 2");
    }

    #[test]
    fn results_without_two_budgets_or_values_have_no_curve() {
        let text = "trace,policy,budget,retained_mass\na,h2o,64,0.5\na,tova,64,0.75\n";
        let problem = curves(&results(text), &CurvePlan::default()).expect_err("one budget");
        assert!(problem.contains("takes two values"), "{problem}");
        let plan = CurvePlan { x: Some("policy".to_owned()), ..CurvePlan::default() };
        let problem = curves(&results(text), &plan).expect_err("words");
        assert_eq!(problem, "policy is \"h2o\", not a number");
    }
}
