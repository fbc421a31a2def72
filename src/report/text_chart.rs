//! Curves in text, for a terminal: a letter for each curve, `*` where several fall on one place.

use super::curves::{Curve, Panel};

/// Lines of a chart.
const HEIGHT: usize = 16;
/// Columns left of a chart, for the figures.
const MARGIN: usize = 10;

/// A panel as text, at most so many columns wide.
pub fn text_chart(panel: &Panel, width: usize) -> String {
    let width = width.clamp(40, 200) - MARGIN - 2;
    let (xs, ys) = (extent(abscissas(panel)), extent(ordinates(panel)));
    let mut grid = vec![vec![' '; width]; HEIGHT];
    for (curve, letter) in panel.curves.iter().zip(letters()) {
        for (column, y) in places(curve, xs, width) {
            let line = HEIGHT - 1 - cell(y, ys, HEIGHT);
            let place = &mut grid[line][column];
            *place = if *place == ' ' || *place == letter { letter } else { '*' };
        }
    }
    let mut text = format!("{}\n", panel.title());
    for (line, places) in grid.iter().enumerate() {
        let figure = ys.0 + (ys.1 - ys.0) * (HEIGHT - 1 - line) as f64 / (HEIGHT - 1) as f64;
        let label = if line % 5 == 0 { format!("{figure:>MARGIN$.4}") } else { " ".repeat(MARGIN) };
        let places: String = places.iter().collect();
        text.push_str(format!("{label} |{places}").trim_end());
        text.push('\n');
    }
    let (low, high) = (format!("{}", xs.0), format!("{}", xs.1));
    let gap = width.saturating_sub(low.len() + high.len());
    text.push_str(&format!("{:MARGIN$} +{}\n", "", "-".repeat(width)));
    text.push_str(&format!("{:MARGIN$}  {low}{:^gap$}{high}\n", "", panel.x.replace('_', " ")));
    for (curve, letter) in panel.curves.iter().zip(letters()) {
        text.push_str(&format!("  {letter}  {}\n", curve.name));
    }
    text
}

fn letters() -> impl Iterator<Item = char> {
    ('a'..='z').chain('A'..='Z').cycle()
}

fn abscissas(panel: &Panel) -> impl Iterator<Item = f64> {
    panel.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.x))
}

fn ordinates(panel: &Panel) -> impl Iterator<Item = f64> {
    panel.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.y).chain(curve.level))
}

fn extent(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) =
        numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
    match (low.is_finite(), high > low) {
        (false, _) => (0.0, 1.0),
        (true, true) => (low, high),
        (true, false) => (low - 0.5, low + 0.5),
    }
}

/// Which of `count` places a number falls on.
fn cell(number: f64, (low, high): (f64, f64), count: usize) -> usize {
    ((number - low) / (high - low) * (count - 1) as f64).round() as usize
}

/// Where a curve passes: its points and straight lines between them, or a level all along.
fn places(curve: &Curve, xs: (f64, f64), width: usize) -> Vec<(usize, f64)> {
    let mut places: Vec<(usize, f64)> =
        curve.level.map_or(Vec::new(), |level| (0..width).step_by(3).map(|column| (column, level)).collect());
    places.extend(curve.points.first().map(|point| (cell(point.x, xs, width), point.y)));
    for pair in curve.points.windows(2) {
        let (from, to) = (cell(pair[0].x, xs, width), cell(pair[1].x, xs, width));
        let steps = (to - from).max(1);
        let between = (1..=steps).map(|step| {
            let share = step as f64 / steps as f64;
            (from + (to - from) * step / steps, pair[0].y + (pair[1].y - pair[0].y) * share)
        });
        places.extend(between);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::curves::{CurvePlan, curves};
    use crate::report::read::read;

    #[test]
    fn a_chart_has_a_letter_for_each_curve_and_its_ends_on_the_axes() {
        let text = "trace,policy,budget,retained_mass\na,h2o,32,0.25\na,h2o,64,0.75\na,tova,32,0.25\na,tova,64,0.5\n";
        let panels = curves(&read(text.as_bytes()).expect("sound"), &CurvePlan::default()).expect("curves");
        let chart = text_chart(&panels[0], 60);
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines[0], "retained_mass, higher is better");
        assert!(lines[1].starts_with("    0.7500 |") && lines[1].ends_with('a'), "{chart}");
        assert!(lines[16].starts_with("    0.2500 |*"), "both begin there: {chart}");
        assert!(lines[18].trim().starts_with("32") && lines[18].ends_with("64"), "{chart}");
        assert_eq!(&lines[19..], ["  a  h2o", "  b  tova"]);
        assert!(lines.iter().all(|line| line.len() <= 60), "{chart}");
    }
}
