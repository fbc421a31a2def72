//! From the shape of an array to the streams in it: which index is the layer, the head, the row.

/// An index of an array: how many values it takes, and how many rows apart they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    pub len: usize,
    pub stride: usize,
}

/// Where the rows of an array are, counted in rows from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    pub layers: Axis,
    pub heads: Axis,
    pub rows: Axis,
    /// Weights in a row.
    pub width: usize,
    /// Whether rows are single decode steps, `[steps, heads, 1, width]`, and not a square.
    pub decode: bool,
}

impl Layout {
    /// The number of the first row of a layer and head.
    pub(super) fn first_row(&self, layer: usize, head: usize) -> usize {
        layer * self.layers.stride + head * self.heads.stride
    }
}

/// What an index counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Layer,
    Head,
    Row,
    /// A batch of one sequence, or the one row of a decode step.
    One,
}

/// Finds the streams of an array; `alone` says that no other array of the trace holds other layers.
///
/// Rows lie in the order of their indices, the first index fastest where `fortran` says so.
///
/// # Errors
/// One line that says why this is no attention, or which two readings a shape has.
pub(super) fn layout(shape: &[usize], fortran: bool, alone: bool) -> Result<Layout, String> {
    let roles = roles(shape, alone)?;
    let (width, leading) = shape.split_last().expect("roles need two sizes");
    let axis = |role: Role| {
        let found = roles.iter().position(|other| *other == role);
        found.map_or(Axis { len: 1, stride: 0 }, |at| Axis { len: leading[at], stride: stride(leading, at, fortran) })
    };
    let (layers, heads, rows) = (axis(Role::Layer), axis(Role::Head), axis(Role::Row));
    let decode = roles.first() == Some(&Role::Row) && leading.len() > 1;
    Ok(Layout { layers, heads, rows, width: *width, decode })
}

fn stride(leading: &[usize], at: usize, fortran: bool) -> usize {
    if fortran { leading[..at].iter().product() } else { leading[at + 1..].iter().product() }
}

fn roles(shape: &[usize], alone: bool) -> Result<&'static [Role], String> {
    use Role::{Head, Layer, One, Row};
    match *shape {
        [_, _] => Ok(&[Row]),
        [heads, 1, width] if heads > 1 && width > 1 => Err(ambiguous(shape, "heads or decode steps")),
        [_, _, _] => Ok(&[Head, Row]),
        [_, _, 1, width] if width > 1 => Ok(&[Row, Head, One]),
        [batch, _, _, _] if batch != 1 && !alone => Err(batched(shape, batch)),
        [_, _, _, _] => Ok(&[Layer, Head, Row]),
        [_, batch, _, _, _] if batch != 1 => Err(batched(shape, batch)),
        [layers, _, _, 1, width] if layers > 1 && width > 1 => Err(ambiguous(shape, "layers or decode steps")),
        [layers, _, _, _, _] if layers != 1 && !alone => Err(batched(shape, layers)),
        [_, _, _, _, _] => Ok(&[Layer, One, Head, Row]),
        _ => Err(format!(
            "shape {shape:?} is no attention: expected [rows, columns], [heads, rows, columns], \
             [layers, heads, rows, columns] or decode steps [steps, heads, 1, columns]"
        )),
    }
}

fn ambiguous(shape: &[usize], readings: &str) -> String {
    format!("shape {shape:?} could be {readings}: save decode steps as [steps, heads, 1, columns]")
}

fn batched(shape: &[usize], batch: usize) -> String {
    format!("shape {shape:?} is a batch of {batch} sequences: a trace is one sequence, save them one by one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(shape: &[usize]) -> [(usize, usize); 3] {
        let found = layout(shape, false, true).expect("attention");
        [found.layers, found.heads, found.rows].map(|axis| (axis.len, axis.stride))
    }

    #[test]
    fn squares_of_two_to_five_dimensions_are_known() {
        assert_eq!(axes(&[8, 8]), [(1, 0), (1, 0), (8, 1)]);
        assert_eq!(axes(&[3, 8, 8]), [(1, 0), (3, 8), (8, 1)]);
        assert_eq!(axes(&[1, 3, 8, 8]), [(1, 24), (3, 8), (8, 1)]);
        assert_eq!(axes(&[2, 3, 8, 8]), [(2, 24), (3, 8), (8, 1)]);
        assert_eq!(axes(&[2, 1, 3, 8, 8]), [(2, 24), (3, 8), (8, 1)]);
    }

    #[test]
    fn decode_steps_are_told_from_layers() {
        let found = layout(&[5, 3, 1, 9], false, true).expect("attention");
        assert!(found.decode);
        assert_eq!((found.rows, found.heads, found.width), (Axis { len: 5, stride: 3 }, Axis { len: 3, stride: 1 }, 9));
        assert!(!layout(&[5, 3, 1, 1], false, true).expect("a square of one").decode);
    }

    #[test]
    fn the_first_index_may_run_fastest() {
        let found = layout(&[2, 3, 8, 8], true, true).expect("attention");
        assert_eq!([found.layers, found.heads, found.rows].map(|axis| axis.stride), [1, 2, 6]);
    }

    #[test]
    fn shapes_with_two_readings_and_none_are_refused() {
        let problem = |shape: &[usize], alone| layout(shape, false, alone).expect_err("refused");
        assert!(problem(&[5, 1, 9], true).contains("heads or decode steps"));
        assert!(problem(&[5, 1, 3, 1, 9], true).contains("layers or decode steps"));
        assert!(problem(&[2, 3, 8, 8], false).contains("batch of 2"));
        assert!(problem(&[2, 4, 3, 8, 8], true).contains("batch of 4"));
        assert!(problem(&[8], true).contains("no attention"));
        assert!(problem(&[1, 1, 1, 1, 8, 8], true).contains("no attention"));
    }
}
