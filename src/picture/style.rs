//! How curves look: colours that colour blindness and greyscale leave apart, with dashes and marks of their own.

use plotters::style::RGBColor;

/// The font that the program brings.
pub(super) const FONT: &str = "kvsim";

/// Okabe and Ito's colours without the yellow, which white paper swallows, from dark to light and back, so that
/// neighbours differ in lightness too.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(0, 114, 178),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
];

/// Pixels drawn and left out; no gap is a full line.
const DASHES: [(i32, i32); 3] = [(1, 0), (8, 4), (2, 3)];

/// What a point is marked with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
}

const MARKS: [Mark; 4] = [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Diamond];

/// How one curve looks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CurveStyle {
    pub colour: RGBColor,
    pub dash: (i32, i32),
    pub mark: Mark,
}

/// The look of the curve with this number.
pub(super) fn of(curve: usize) -> CurveStyle {
    CurveStyle {
        colour: COLOURS[curve % COLOURS.len()],
        dash: DASHES[curve / COLOURS.len() % DASHES.len()],
        mark: MARKS[curve % MARKS.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_four_curves_look_different() {
        let looks: Vec<CurveStyle> = (0..84).map(of).collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "curve {index}");
        }
    }
}
