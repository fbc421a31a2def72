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
    /// The position that column 0 stands for in the row of the token at `position`.
    pub(super) fn column_zero(&self, position: usize) -> usize {
        match self.columns {
            Columns::From(zero) => zero,
            Columns::Window(window) => (position + 1).saturating_sub(window),
        }
    }

    /// The first row that is no padding.
    pub(super) fn first_row(&self) -> usize {
        self.start.saturating_sub(self.first)
    }

    /// Checks that every row has a column for its own token, and that a row is left.
    ///
    /// # Errors
    /// One line that says which positions do not fit.
    pub(super) fn check(&self, layout: &Layout) -> Result<(), String> {
        let (rows, width) = (layout.rows.len, layout.width);
        if rows == 0 && self.start == 0 {
            return Ok(());
        }
        if self.first_row() >= rows {
            return Err(format!(
                "--start {} leaves none of the rows, of positions {} to {}",
                self.start,
                self.first,
                (self.first + rows).saturating_sub(1)
            ));
        }
        match self.columns {
            Columns::From(zero) => check_fixed(zero, self.first, rows, width),
            Columns::Window(_) => Ok(()),
        }
    }

    /// How many columns at the end stand for no position in any row.
    pub(super) fn dead_columns(&self, layout: &Layout) -> usize {
        match self.columns {
            Columns::From(zero) => (zero + layout.width).saturating_sub(self.first + layout.rows.len),
            Columns::Window(_) => 0,
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
                Columns::Window(window)
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
        assert_eq!(Known { offset: Some(5), window: None }.first(&of(&[8, 8])), Some(5));
        assert_eq!(known.first(&of(&[8, 9])), None);
        assert_eq!(known.first(&of(&[8, 2, 1, 8])), None);
    }

    #[test]
    fn columns_slide_where_a_window_is_full() {
        let known = Known { offset: None, window: Some(8) };
        assert_eq!(known.columns(&of(&[4, 2, 1, 8]), 10), Columns::Window(8));
        assert_eq!(known.columns(&of(&[4, 2, 1, 8]), 4), Columns::From(0));
        assert_eq!(known.columns(&of(&[4, 2, 1, 9]), 5), Columns::From(0));
        assert_eq!(Known { offset: Some(6), ..known }.columns(&of(&[4, 2, 1, 8]), 10), Columns::From(6));
        let sliding = frame(6, Columns::Window(8), 0);
        assert_eq!([6, 7, 8, 20].map(|position| sliding.column_zero(position)), [0, 0, 1, 13]);
    }

    #[test]
    fn rows_without_a_column_of_their_own_are_refused() {
        let shape = of(&[4, 2, 1, 8]);
        assert_eq!(frame(4, Columns::From(0), 0).check(&shape), Ok(()));
        let problem = frame(5, Columns::From(0), 0).check(&shape).expect_err("too narrow");
        assert!(problem.contains("up to position 8, 8 columns only up to position 7"), "{problem}");
        let problem = frame(5, Columns::From(6), 0).check(&shape).expect_err("starts too late");
        assert!(problem.contains("column 0 stands for position 6"), "{problem}");
        let problem = frame(4, Columns::From(0), 8).check(&shape).expect_err("all padding");
        assert!(problem.contains("--start 8 leaves none"), "{problem}");
    }

    #[test]
    fn columns_past_the_last_row_are_dead() {
        assert_eq!(frame(0, Columns::From(0), 0).dead_columns(&of(&[4, 9])), 5);
        assert_eq!(frame(5, Columns::From(0), 0).dead_columns(&of(&[4, 9])), 0);
        assert_eq!(frame(7, Columns::From(3), 0).dead_columns(&of(&[4, 9])), 1);
    }
}
