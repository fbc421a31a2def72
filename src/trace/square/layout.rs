//! From the shape of an array to the streams in it: which index is the layer, the head, the row.

use crate::trace::axes::{Axes, AxisName};

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
    /// Rows before those of the sequence that is read, in a batch.
    pub skipped: usize,
    /// Weights in a row.
    pub width: usize,
    /// Whether rows are single decode steps, `[steps, heads, 1, width]`, and not a square.
    pub decode: bool,
}

impl Layout {
    /// The number of the first row of a layer and head.
    pub(super) fn first_row(&self, layer: usize, head: usize) -> usize {
        self.skipped + layer * self.layers.stride + head * self.heads.stride
    }
}

impl Layout {
    /// The reading of a shape with so many sizes, as `--axes` takes it.
    pub(super) fn axes(&self, sizes: usize) -> &'static str {
        match (self.decode, sizes) {
            (true, _) => "step,head,query,key",
            _ => "layer,head,query,key",
        }
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
    /// A batch of which the sequence with this index is read.
    Chosen(usize),
}

/// Finds the streams of an array; `alone` says that no other array of the trace holds other layers.
///
/// Rows lie in the order of their indices, the first index fastest where `fortran` says so.
///
/// # Errors
/// One line that says why this is no attention, or which two readings a shape has.
pub(super) fn layout(shape: &[usize], fortran: bool, alone: bool) -> Result<Layout, String> {
    let roles = roles(shape, alone)?;
    Ok(of_roles(shape, fortran, roles, roles.first() == Some(&Role::Row) && shape.len() > 2))
}

/// The streams of an array whose indices are named.
///
/// # Errors
/// One line that says why the names do not fit the shape.
pub(super) fn layout_of(shape: &[usize], fortran: bool, axes: &Axes) -> Result<Layout, String> {
    let names = axes.names();
    if names.len() != shape.len() {
        return Err(format!("--axes names {} axes, shape {shape:?} has {}", names.len(), shape.len()));
    }
    let has_steps = names.contains(&AxisName::Step);
    let leading = names.iter().zip(shape).take(shape.len() - 1);
    let roles = leading.map(|(name, size)| role(*name, *size, has_steps)).collect::<Result<Vec<_>, _>>()?;
    Ok(of_roles(shape, fortran, &roles, has_steps || roles.last() != Some(&Role::Row)))
}

fn role(name: AxisName, size: usize, has_steps: bool) -> Result<Role, String> {
    match name {
        AxisName::Layer => Ok(Role::Layer),
        AxisName::Head => Ok(Role::Head),
        AxisName::Query if has_steps && size == 1 => Ok(Role::One),
        AxisName::Query if has_steps => Err(format!("a decode step has one query, --axes names an axis of {size}")),
        AxisName::Query | AxisName::Step | AxisName::Key => Ok(Role::Row),
        AxisName::Batch(None) if size == 1 => Ok(Role::One),
        AxisName::Batch(None) => {
            Err(format!("a batch of {size} sequences: a trace is one sequence, choose one, such as batch=0"))
        }
        AxisName::Batch(Some(index)) if index < size => Ok(Role::Chosen(index)),
        AxisName::Batch(Some(index)) => Err(format!("--axes chooses sequence {index} of {size}, counted from 0")),
    }
}

fn of_roles(shape: &[usize], fortran: bool, roles: &[Role], decode: bool) -> Layout {
    let (width, leading) = shape.split_last().expect("roles need two sizes");
    let axis = |role: Role| {
        let found = roles.iter().position(|other| *other == role);
        found.map_or(Axis { len: 1, stride: 0 }, |at| Axis { len: leading[at], stride: stride(leading, at, fortran) })
    };
    let skipped = |(at, role): (usize, &Role)| match role {
        Role::Chosen(index) => index * stride(leading, at, fortran),
        _ => 0,
    };
    let skipped = roles.iter().enumerate().map(skipped).sum();
    Layout { layers: axis(Role::Layer), heads: axis(Role::Head), rows: axis(Role::Row), skipped, width: *width, decode }
}

/// The streams of an array that holds the rows of one step of a generation: any number of queries.
///
/// # Errors
/// One line that says why this is no step of one sequence.
pub(super) fn layout_of_step(shape: &[usize], fortran: bool) -> Result<Layout, String> {
    use Role::{Head, Layer, One, Row};
    let roles: &[Role] = match *shape {
        [_, _] => &[Row],
        [_, _, _] => &[Head, Row],
        [1, _, _, _] => &[Layer, Head, Row],
        [sizes, _, _, _] => {
            return Err(format!(
                "shape {shape:?} of a step could be {sizes} layers or a batch of {sizes} sequences: say which with \
                 --axes layer,head,query,key or --axes batch=0,head,query,key"
            ));
        }
        [_, 1, _, _, _] => &[Layer, One, Head, Row],
        [_, batch, _, _, _] => return Err(batched(shape, batch)),
        _ => return Err(no_attention(shape)),
    };
    Ok(of_roles(shape, fortran, roles, false))
}

/// What is said of a shape with two readings, and how to choose the other; `None` where it has one.
pub(super) fn reading(shape: &[usize]) -> Option<String> {
    let said = |read: &str, others: &str| {
        Some(format!("shape {shape:?} is read as [{read}]: choose another reading with --axes {others}"))
    };
    match *shape {
        [steps, _, 1, width] if steps > 1 && width > 1 => said("step, head, 1, key", "layer,head,query,key"),
        [layers, _, _, _] if layers > 1 => {
            said("layer, head, query, key", "batch=0,head,query,key (one sequence of a batch)")
        }
        _ => None,
    }
}

fn stride(leading: &[usize], at: usize, fortran: bool) -> usize {
    if fortran { leading[..at].iter().product() } else { leading[at + 1..].iter().product() }
}

fn roles(shape: &[usize], alone: bool) -> Result<&'static [Role], String> {
    use Role::{Head, Layer, One, Row};
    match *shape {
        [_, _] => Ok(&[Row]),
        [heads, 1, width] if heads > 1 && width > 1 => {
            Err(ambiguous(shape, "heads or decode steps", "head,query,key or step,head,key"))
        }
        [_, _, _] => Ok(&[Head, Row]),
        [_, _, 1, width] if width > 1 => Ok(&[Row, Head, One]),
        [batch, _, _, _] if batch != 1 && !alone => Err(batched(shape, batch)),
        [_, _, _, _] => Ok(&[Layer, Head, Row]),
        [_, batch, _, _, _] if batch != 1 => Err(batched(shape, batch)),
        [layers, _, _, 1, width] if layers > 1 && width > 1 => {
            Err(ambiguous(shape, "layers or decode steps", "layer,batch,head,query,key or step,batch,head,query,key"))
        }
        [layers, _, _, _, _] if layers != 1 && !alone => Err(batched(shape, layers)),
        [_, _, _, _, _] => Ok(&[Layer, One, Head, Row]),
        _ => Err(no_attention(shape)),
    }
}

fn no_attention(shape: &[usize]) -> String {
    format!(
        "shape {shape:?} is not attention: expected [rows, columns], [heads, rows, columns], \
         [layers, heads, rows, columns] or decode steps [steps, heads, 1, columns]"
    )
}

fn ambiguous(shape: &[usize], readings: &str, axes: &str) -> String {
    format!("shape {shape:?} could be {readings}: say which with --axes {axes}")
}

fn batched(shape: &[usize], batch: usize) -> String {
    let axes = if shape.len() == 5 { "layer,batch=0,head,query,key" } else { "batch=0,head,query,key" };
    format!(
        "shape {shape:?} is a batch of {batch} sequences: a trace is one sequence, choose one with --axes {axes} \
         (not of beams, which change places from step to step)"
    )
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
    fn axes_decide_against_the_shape() {
        let of = |shape: &[usize], axes: &str| layout_of(shape, false, &axes.parse().expect("axes"));
        let found = of(&[2, 3, 8, 8], "batch=1,head,query,key").expect("attention");
        assert_eq!((found.layers.len, found.heads.len, found.skipped, found.decode), (1, 3, 24, false));
        let found = of(&[5, 3, 1, 9], "layer,head,query,key").expect("attention");
        assert_eq!((found.layers.len, found.heads.len, found.rows.len, found.decode), (5, 3, 1, false));
        let found = of(&[5, 1, 3, 1, 9], "step,batch,head,query,key").expect("attention");
        assert_eq!((found.rows, found.heads.len, found.decode), (Axis { len: 5, stride: 3 }, 3, true));
        assert!(of(&[5, 1, 9], "step,head,key").expect("attention").decode);
        assert!(of(&[2, 8, 8], "layer,head,query,key").expect_err("too many").contains("names 4 axes, shape"));
        assert!(of(&[2, 3, 8, 8], "batch,head,query,key").expect_err("a batch").contains("batch=0"));
        assert!(of(&[2, 3, 8, 8], "batch=2,head,query,key").expect_err("too few").contains("sequence 2 of 2"));
        assert!(of(&[2, 8, 8], "step,query,key").expect_err("two rows").contains("one query"));
    }

    #[test]
    fn a_shape_with_two_readings_says_how_to_choose_the_other() {
        assert!(reading(&[2, 3, 8, 8]).expect("two").contains("--axes batch=0,head,query,key"));
        assert!(reading(&[5, 3, 1, 9]).expect("two").contains("--axes layer,head,query,key"));
        assert_eq!(reading(&[1, 3, 8, 8]), None);
        assert_eq!(reading(&[3, 8, 8]), None);
    }

    #[test]
    fn a_step_holds_any_number_of_queries() {
        let rows = |shape: &[usize]| layout_of_step(shape, false).map(|layout| layout.rows.len);
        assert_eq!(rows(&[2, 1, 2, 1, 7]), Ok(1));
        assert_eq!(rows(&[1, 2, 6, 6]), Ok(6));
        assert!(rows(&[2, 2, 1, 7]).expect_err("two readings").contains("--axes"));
        assert!(rows(&[2, 4, 2, 1, 7]).expect_err("beams").contains("batch of 4"));
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
        assert!(problem(&[8], true).contains("not attention"));
        assert!(problem(&[1, 1, 1, 1, 8, 8], true).contains("not attention"));
    }
}
