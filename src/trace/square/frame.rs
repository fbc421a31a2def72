//! The positions behind the rows and columns of a stream.
//!
//! Row `i` belongs to the token at position `first + i`. Columns count positions from a fixed one, or
//! slide with the row as in the cache of a layer that attends through a window.

use super::layout::Layout;

/// What column 0 stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Columns {
    /// This position, in every row.
    From(usize),
    /// The oldest position in a window of this many that ends at the row's own token.
    Window(usize),
    /// Position `p` is in column `p` mod this many.
    Ring(usize),
}

/// Positions behind the rows and columns of a stream, before padding is taken off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    /// The position that row 0 stands at.
    pub first: usize,
    pub columns: Columns,
    /// What lies before is padding.
    pub start: usize,
}

impl Frame {
    /// The position that column 0 stands for in the row of the token at `position`, once its columns ascend.
    pub(super) fn column_zero(&self, position: usize) -> usize {
        match self.columns {
            Columns::From(zero) => zero,
            Columns::Window(window) | Columns::Ring(window) => (position + 1).saturating_sub(window),
        }
    }

    /// The column, as stored, of the token at `position`.
    pub(super) fn own_column(&self, position: usize) -> usize {
        match self.columns {
            Columns::Ring(window) => position % window,
            _ => position - self.column_zero(position),
        }
    }

    /// Puts the columns of the row of the token at `position` into ascending order.
    pub(super) fn ascend(&self, row: &mut [f32], position: usize) {
        if let Columns::Ring(window) = self.columns
            && position >= window
        {
            row.rotate_left((position + 1) % window);
        }
    }

    /// Checks that every row has a column for its own token.
    ///
    /// # Errors
    /// One line that says which positions do not fit.
    pub(super) fn check(&self, layout: &Layout) -> Result<(), String> {
        match self.columns {
            Columns::From(_) if layout.rows.len == 0 => Ok(()),
            Columns::From(zero) => check_fixed(zero, self.first, layout.rows.len, layout.width),
            Columns::Window(_) | Columns::Ring(_) => Ok(()),
        }
    }

    /// How many columns at the end stand for no position in any row.
    pub(super) fn dead_columns(&self, layout: &Layout) -> usize {
        match self.columns {
            Columns::From(zero) => (zero + layout.width).saturating_sub(self.first + layout.rows.len),
            Columns::Window(_) | Columns::Ring(_) => 0,
        }
    }
}

fn check_fixed(zero: usize, first: usize, rows: usize, width: usize) -> Result<(), String> {
    if zero > first {
        return Err(format!(
            "column 0 stands for position {zero}, but row 0 already for position {first}: \
             one of --column-offset and --first-position is wrong"
        ));
    }
    let (end, needed) = (zero + width, first + rows);
    if end < needed {
        return Err(format!(
            "rows go up to position {}, {width} columns only up to position {}: say what column 0 stands for with \
             --column-offset, or the window of a sliding layer with --layer-window",
            needed - 1,
            end.saturating_sub(1)
        ));
    }
    Ok(())
}

/// What is known of the columns of a stream before it is known where its rows stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Known {
    /// The position of column 0, where it is not 0.
    pub offset: Option<usize>,
    /// The layer's own window.
    pub window: Option<usize>,
    /// Whether columns go round where the window is full.
    pub ring: bool,
}

impl Known {
    /// Where row 0 must stand if the shape alone decides it; `None` where it cannot.
    ///
    /// Only a square does: its last row belongs to the token of its last column.
    pub(super) fn first(&self, layout: &Layout) -> Option<usize> {
        let square = layout.rows.len == layout.width && !layout.decode;
        square.then_some(self.offset.unwrap_or(0))
    }

    /// The columns of a stream whose row 0 stands at `first`.
    pub(super) fn columns(&self, layout: &Layout, first: usize) -> Columns {
        match (self.offset, self.window) {
            (Some(zero), _) => Columns::From(zero),
            // As wide as the window, too narrow to count from 0: a cache that has let old columns go.
            (None, Some(window)) if window == layout.width && first.saturating_add(layout.rows.len) > window => {
                if self.ring { Columns::Ring(window) } else { Columns::Window(window) }
            }
            _ => Columns::From(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::square::layout::layout;

    fn of(shape: &[usize]) -> Layout {
        layout(shape, false, true).expect("attention")
    }

    fn frame(first: usize, columns: Columns, start: usize) -> Frame {
        Frame { first, columns, start }
    }

    #[test]
    fn only_a_square_tells_where_its_rows_stand() {
        let known = Known::default();
        assert_eq!(known.first(&of(&[8, 8])), Some(0));
        assert_eq!(Known { offset: Some(5), ..known }.first(&of(&[8, 8])), Some(5));
        assert_eq!(known.first(&of(&[8, 9])), None);
        assert_eq!(known.first(&of(&[8, 2, 1, 8])), None);
    }

    #[test]
    fn columns_slide_where_a_window_is_full() {
        let known = Known { window: Some(8), ..Known::default() };
        assert_eq!(known.columns(&of(&[4, 2, 1, 8]), 10), Columns::Window(8));
        assert_eq!(known.columns(&of(&[4, 2, 1, 8]), 4), Columns::From(0));
        assert_eq!(known.columns(&of(&[4, 2, 1, 9]), 5), Columns::From(0));
        assert_eq!(Known { offset: Some(6), ..known }.columns(&of(&[4, 2, 1, 8]), 10), Columns::From(6));
        let sliding = frame(6, Columns::Window(8), 0);
        assert_eq!([6, 7, 8, 20].map(|position| sliding.column_zero(position)), [0, 0, 1, 13]);
    }

    #[test]
    fn columns_of_a_ring_are_put_into_order() {
        let known = Known { window: Some(4), ring: true, ..Known::default() };
        assert_eq!(known.columns(&of(&[4, 2, 1, 4]), 2), Columns::Ring(4));
        let ring = frame(0, Columns::Ring(4), 0);
        // Positions 3 to 6 lie in columns 3, 0, 1, 2.
        let mut row = [4.0, 5.0, 6.0, 3.0];
        ring.ascend(&mut row, 6);
        assert_eq!((row, ring.column_zero(6), ring.own_column(6)), ([3.0, 4.0, 5.0, 6.0], 3, 2));
        let mut filling = [0.0, 1.0, 0.0, 0.0];
        ring.ascend(&mut filling, 1);
        assert_eq!((filling, ring.column_zero(1), ring.own_column(1)), ([0.0, 1.0, 0.0, 0.0], 0, 1));
        let mut full = [0.0, 1.0, 2.0, 3.0];
        ring.ascend(&mut full, 3);
        assert_eq!(full, [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn rows_without_a_column_of_their_own_are_refused() {
        let shape = of(&[4, 2, 1, 8]);
        assert_eq!(frame(4, Columns::From(0), 0).check(&shape), Ok(()));
        let problem = frame(5, Columns::From(0), 0).check(&shape).expect_err("too narrow");
        assert!(problem.contains("up to position 8, 8 columns only up to position 7"), "{problem}");
        let problem = frame(5, Columns::From(6), 0).check(&shape).expect_err("starts too late");
        assert!(problem.contains("column 0 stands for position 6"), "{problem}");
    }

    #[test]
    fn columns_past_the_last_row_are_dead() {
        assert_eq!(frame(0, Columns::From(0), 0).dead_columns(&of(&[4, 9])), 5);
        assert_eq!(frame(5, Columns::From(0), 0).dead_columns(&of(&[4, 9])), 0);
        assert_eq!(frame(7, Columns::From(3), 0).dead_columns(&of(&[4, 9])), 1);
    }
}
