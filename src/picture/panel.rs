//! One panel: axes, bands, curves with marks, and a legend beside them, which covers nothing.

use super::style::{self, CurveStyle, FONT, Mark};
use crate::report::curves::{Curve, Panel, Point};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use std::ops::Range;

type Failure<B> = DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>;
type Chart<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Pixels that a legend takes: a sample and its name.
const LEGEND: i32 = 250;
/// Letters of a name that fit beside its sample.
const NAME: usize = 30;

pub(super) fn draw<B: DrawingBackend>(panel: &Panel, area: &DrawingArea<B, Shift>) -> Result<(), Failure<B>> {
    let (width, _) = area.dim_in_pixel();
    let (plot, legend) = area.split_horizontally((width as i32 - LEGEND).max(LEGEND));
    let (xs, ys) = extents(panel);
    let mut chart = ChartBuilder::on(&plot)
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(xs.clone(), ys)?;
    let label = |number: &f64| shortest(*number);
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.15))
        .x_desc(panel.x.replace('_', " "))
        .y_desc(panel.title())
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .draw()?;
    for (index, curve) in panel.curves.iter().enumerate() {
        draw_curve(&mut chart, curve, style::of(index), &xs)?;
    }
    for (index, curve) in panel.curves.iter().enumerate() {
        draw_entry(&legend, curve, style::of(index), index as i32)?;
    }
    Ok(())
}

/// What the axes cover: all points, ranges and levels, with a little air.
fn extents(panel: &Panel) -> (Range<f64>, Range<f64>) {
    let points = || panel.curves.iter().flat_map(|curve| &curve.points);
    let ends = |point: &Point| point.range.map_or([point.y; 2], |(low, high)| [low, high]);
    let levels = panel.curves.iter().filter_map(|curve| curve.level);
    (around(points().map(|point| point.x)), around(points().flat_map(ends).chain(levels)))
}

fn around(numbers: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) =
        numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
    match (high - low).is_finite() {
        true => {
            let air = if high > low { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.04 };
            low - air..high + air
        }
        false => 0.0..1.0,
    }
}

/// A number as an axis shows it.
fn shortest(number: f64) -> String {
    // Steps of an axis are round numbers; what is left behind the ninth decimal is not.
    let rounded = (number * 1e9).round() / 1e9;
    format!("{}", if rounded == 0.0 { 0.0 } else { rounded })
}

fn draw_curve<B: DrawingBackend>(
    chart: &mut Chart<'_, B>,
    curve: &Curve,
    look: CurveStyle,
    xs: &Range<f64>,
) -> Result<(), Failure<B>> {
    let band: Vec<(f64, (f64, f64))> = curve.points.iter().filter_map(|point| Some((point.x, point.range?))).collect();
    if band.len() > 1 {
        let upper = band.iter().map(|(x, (_, high))| (*x, *high));
        let lower = band.iter().rev().map(|(x, (low, _))| (*x, *low));
        chart.draw_series([Polygon::new(upper.chain(lower).collect::<Vec<_>>(), look.colour.mix(0.15))])?;
    }
    let line: Vec<(f64, f64)> = curve.points.iter().map(|point| (point.x, point.y)).collect();
    let level = curve.level.map(|level| vec![(xs.start, level), (xs.end, level)]);
    for line in [Some(line.clone()), level].into_iter().flatten() {
        draw_line(chart, line, look)?;
    }
    let pixels = chart.plotting_area().strip_coord_spec();
    let base = pixels.get_base_pixel();
    line.iter().try_for_each(|point| {
        let (x, y) = chart.plotting_area().map_coordinate(point);
        draw_mark(&pixels, (x - base.0, y - base.1), look)
    })
}

fn draw_line<B: DrawingBackend>(
    chart: &mut Chart<'_, B>,
    line: Vec<(f64, f64)>,
    look: CurveStyle,
) -> Result<(), Failure<B>> {
    let stroke = look.colour.stroke_width(2);
    match look.dash {
        (_, 0) => chart.draw_series(LineSeries::new(line, stroke)).map(|_| ()),
        (drawn, left_out) => chart.draw_series(DashedLineSeries::new(line, drawn, left_out, stroke)).map(|_| ()),
    }
}

/// Marks a place, in pixels of the area.
fn draw_mark<B: DrawingBackend>(
    area: &DrawingArea<B, Shift>,
    (x, y): (i32, i32),
    look: CurveStyle,
) -> Result<(), Failure<B>> {
    let corners: &[(i32, i32)] = match look.mark {
        Mark::Circle => &[(-4, 0), (-3, 3), (0, 4), (3, 3), (4, 0), (3, -3), (0, -4), (-3, -3)],
        Mark::Square => &[(-3, -3), (3, -3), (3, 3), (-3, 3)],
        Mark::Triangle => &[(-4, 3), (4, 3), (0, -4)],
        Mark::Diamond => &[(-4, 0), (0, 4), (4, 0), (0, -4)],
    };
    let corners: Vec<(i32, i32)> = corners.iter().map(|(right, down)| (x + right, y + down)).collect();
    area.draw(&Polygon::new(corners, look.colour.filled()))
}

/// A line of the legend: a sample of the curve and its name.
fn draw_entry<B: DrawingBackend>(
    legend: &DrawingArea<B, Shift>,
    curve: &Curve,
    look: CurveStyle,
    index: i32,
) -> Result<(), Failure<B>> {
    let y = 24 + 18 * index;
    legend.draw(&PathElement::new([(6, y), (34, y)], look.colour.stroke_width(2)))?;
    draw_mark(legend, (20, y), look)?;
    legend.draw(&Text::new(short_name(&curve.name), (42, y - 6), (FONT, 13)))
}

/// A name in letters that the font has, cut where the legend ends.
fn short_name(name: &str) -> String {
    let letter = |letter: char| if letter.is_ascii() { letter } else { '?' };
    let mut short: String = name.chars().take(NAME).map(letter).collect();
    if name.chars().nth(NAME).is_some() {
        short.push_str("...");
    }
    short
}
