//! Curves as pictures: SVG and PNG, drawn by the plotters crate. Knows curves, and nothing of where they come from.

mod panel;
mod style;

use crate::report::curves::Panel;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;

/// A picture's size in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Width, the legend's included.
    pub width: u32,
    /// Height of each panel.
    pub panel_height: u32,
}

impl Default for Size {
    fn default() -> Size {
        Size { width: 960, panel_height: 360 }
    }
}

/// The panels, one under the other, as SVG.
///
/// # Errors
/// When they cannot be drawn in this size.
pub fn svg(panels: &[Panel], size: Size) -> Result<String, String> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, whole(panels, size)).into_drawing_area();
    draw(panels, &area)?;
    drop(area);
    Ok(text)
}

/// The panels, one under the other, as PNG.
///
/// # Errors
/// As [`svg`].
pub fn png(panels: &[Panel], size: Size) -> Result<Vec<u8>, String> {
    let (width, height) = whole(panels, size);
    let mut pixels = vec![0; 3 * width as usize * height as usize];
    let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
    draw(panels, &area)?;
    drop(area);
    let mut file = Vec::new();
    encode(&mut file, width, height, &pixels).map_err(|error| format!("the picture cannot be written: {error}"))?;
    Ok(file)
}

fn encode(file: &mut Vec<u8>, width: u32, height: u32, pixels: &[u8]) -> Result<(), png::EncodingError> {
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)
}

fn whole(panels: &[Panel], size: Size) -> (u32, u32) {
    (size.width, size.panel_height * panels.len() as u32)
}

fn draw<B: DrawingBackend>(panels: &[Panel], area: &DrawingArea<B, Shift>) -> Result<(), String> {
    // Text is measured and, in PNG, drawn with this font, so that a picture is the same on every machine.
    let font = register_font(style::FONT, FontStyle::Normal, include_bytes!("DejaVuSans.ttf"));
    font.map_err(|_| "the font of the program cannot be read".to_owned())?;
    let failed = |problem: DrawingAreaErrorKind<B::ErrorType>| format!("the picture cannot be drawn: {problem}");
    area.fill(&WHITE).map_err(failed)?;
    for (panel, area) in panels.iter().zip(area.split_evenly((panels.len(), 1))) {
        panel::draw(panel, &area).map_err(failed)?;
    }
    area.present().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::curves::{CurvePlan, curves};
    use crate::report::read::read;

    fn panels() -> Vec<Panel> {
        let text = "trace,policy,budget,retained_mass,peak_miss_rate\n\
            a,h2o,32,0.25,0.5\na,h2o,64,0.5,0.25\na,<b>&,32,0.75,0.125\na,<b>&,64,1,0\na,full,,1,0\n";
        curves(&read(text.as_bytes()).expect("sound"), &CurvePlan::default()).expect("curves")
    }

    #[test]
    fn an_svg_names_its_figures_and_curves_and_is_the_same_every_time() {
        let text = svg(&panels(), Size::default()).expect("drawn");
        assert_eq!(text, svg(&panels(), Size::default()).expect("drawn"));
        for word in ["peak_miss_rate", "retained_mass", "budget", "h2o", "full", "&lt;b&gt;&amp;"] {
            assert!(text.contains(word), "{word}");
        }
        assert!(text.starts_with("<svg width=\"960\" height=\"720\""), "{}", &text[..60]);
    }

    #[test]
    fn a_png_has_the_size_asked_for_and_is_not_blank() {
        let size = Size { width: 640, panel_height: 240 };
        let file = png(&panels(), size).expect("drawn");
        let mut reader = png::Decoder::new(std::io::Cursor::new(&file)).read_info().expect("a PNG");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("pixels");
        assert_eq!((info.width, info.height), (640, 480));
        assert!(pixels.iter().filter(|channel| **channel < 128).count() > 1000, "lines and letters are dark");
    }
}
