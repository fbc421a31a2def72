//! Arrays of one generation: a prompt, then a row or more for each step, told from layers by their names and by
//! widths that grow with the rows. Finds their order; reads no weights.

use super::array::Array;
use super::layout::{Layout, layout_of, layout_of_step};
use super::names::Name;
use crate::trace::axes::Axes;
use std::collections::BTreeMap;

/// Arrays that continue each other.
pub(super) struct Chain {
    /// Indices of the arrays, in step order.
    pub arrays: Vec<usize>,
    /// Their layouts.
    pub layouts: Vec<Layout>,
}

/// Groups the arrays of a generation; `None` where they are something else.
///
/// # Errors
/// The index of an array and one line that says why it does not continue the others.
pub(super) fn chains(arrays: &[Array], axes: Option<&Axes>) -> Result<Option<Vec<Chain>>, (usize, String)> {
    let names: Vec<Name> = arrays.iter().map(|array| Name::parse(&array.name)).collect();
    let said = names.iter().all(Name::says_step);
    let mut groups: BTreeMap<_, Vec<(u32, usize)>> = BTreeMap::new();
    for (index, name) in names.iter().enumerate() {
        let Some(step) = name.step() else { return Ok(None) };
        groups.entry(name.stream()).or_default().push((step, index));
    }
    let is_single = |group: &Vec<(u32, usize)>| group.len() < 2;
    if groups.values().all(is_single) || !said && !groups.values().all(|group| is_growing(arrays, group)) {
        return Ok(None);
    }
    groups.into_values().map(|group| chain(arrays, group, axes)).collect::<Result<_, _>>().map(Some)
}

/// Whether each array is wider than the one before by its own rows, or a square is followed by single rows that
/// grow: no layers are.
fn is_growing(arrays: &[Array], group: &[(u32, usize)]) -> bool {
    let mut group = group.to_vec();
    group.sort_unstable();
    let size = |(_, index): &(u32, usize)| match arrays[*index].shape[..] {
        [.., rows, width] => (rows, width),
        _ => (0, 0),
    };
    let sizes: Vec<(usize, usize)> = group.iter().map(size).collect();
    let exactly = sizes.windows(2).all(|pair| pair[1].1 == pair[0].1.saturating_add(pair[1].0) && pair[1].0 > 0);
    let single = sizes.windows(2).all(|pair| pair[1].1 > pair[0].1 && pair[1].0 == 1);
    exactly || single && sizes[0].0 == sizes[0].1
}

fn chain(arrays: &[Array], mut group: Vec<(u32, usize)>, axes: Option<&Axes>) -> Result<Chain, (usize, String)> {
    group.sort_unstable();
    let order: Vec<usize> = group.iter().map(|(_, index)| *index).collect();
    let layout = |index: &usize| {
        let Array { shape, fortran, .. } = &arrays[*index];
        let found = axes.map_or_else(|| layout_of_step(shape, *fortran), |axes| layout_of(shape, *fortran, axes));
        found.map_err(|problem| (*index, problem))
    };
    let layouts: Vec<Layout> = order.iter().map(layout).collect::<Result<_, _>>()?;
    for (at, pair) in layouts.windows(2).enumerate() {
        let twice = group[at].0 == group[at + 1].0;
        let follows = check_pair(&pair[0], &pair[1]).filter(|_| !twice);
        follows.ok_or_else(|| (order[at + 1], broken(&arrays[order[at]].name, pair, twice)))?;
    }
    Ok(Chain { arrays: order, layouts })
}

/// Whether an array continues another: the same streams, and a cache that grew by its rows or is of one size.
fn check_pair(before: &Layout, after: &Layout) -> Option<()> {
    let same = before.layers.len == after.layers.len && before.heads.len == after.heads.len;
    let grown = after.width == before.width + after.rows.len;
    let fixed = after.width == before.width && after.rows.len < after.width;
    (same && (grown || fixed)).then_some(())
}

fn broken(before: &str, pair: &[Layout], twice: bool) -> String {
    if twice {
        return format!("is the same step as array {before:?}");
    }
    let size = |layout: &Layout| {
        let Layout { layers, heads, rows, width, .. } = layout;
        format!("{} layers, {} heads, {} rows of {width} columns", layers.len, heads.len, rows.len)
    };
    format!(
        "{} do not follow the {} of array {before:?}: a step is missing, or these are no steps of one sequence",
        size(&pair[1]),
        size(&pair[0])
    )
}

impl Chain {
    /// The position of the first row, where widths that grow tell it: the last row's token is the last column.
    pub(super) fn first(&self) -> Option<usize> {
        let grows = self.layouts.windows(2).all(|pair| pair[1].width > pair[0].width);
        let first = &self.layouts[0];
        (grows && self.layouts.len() > 1).then(|| first.width.checked_sub(first.rows.len)).flatten()
    }

    /// Rows of the prompt: of the first array, where it is a square.
    pub(super) fn prompt_len(&self) -> Option<usize> {
        let Layout { rows, width, .. } = &self.layouts[0];
        (self.layouts.len() > 1 && rows.len == *width && *width > 1).then_some(*width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::square::{CellType, Cells};
    use crate::trace::storage::Storage;
    use std::sync::Arc;

    fn arrays(described: &[(&str, &[usize])]) -> Vec<Array> {
        let array = |(name, shape): &(&str, &[usize])| Array {
            name: (*name).to_owned(),
            shape: shape.to_vec(),
            cells: Cells::little_endian(CellType::F32),
            fortran: false,
            storage: Arc::new(Storage::Memory(Vec::new().into())),
            start: 0,
        };
        described.iter().map(array).collect()
    }

    fn orders(described: &[(&str, &[usize])]) -> Option<Vec<Vec<usize>>> {
        let found = chains(&arrays(described), None).expect("sound");
        found.map(|chains| chains.into_iter().map(|chain| chain.arrays).collect())
    }

    #[test]
    fn steps_follow_each_other_in_the_order_of_their_numbers() {
        let steps: &[(&str, &[usize])] =
            &[("step_1", &[2, 1, 2, 1, 7]), ("step_0", &[2, 1, 2, 6, 6]), ("step_2", &[2, 1, 2, 1, 8])];
        assert_eq!(orders(steps), Some(vec![vec![1, 0, 2]]));
        let positions: &[(&str, &[usize])] = &[("6", &[1, 2, 6, 6]), ("10", &[1, 2, 1, 8]), ("7", &[1, 2, 1, 7])];
        assert_eq!(orders(positions), Some(vec![vec![0, 2, 1]]));
        let layers: &[(&str, &[usize])] = &[
            ("layer_0_step_0", &[2, 3, 3]),
            ("layer_1_step_0", &[2, 3, 3]),
            ("layer_0_step_1", &[2, 1, 4]),
            ("layer_1_step_1", &[2, 1, 4]),
        ];
        assert_eq!(orders(layers), Some(vec![vec![0, 2], vec![1, 3]]));
    }

    #[test]
    fn layers_are_not_steps() {
        assert_eq!(orders(&[("0", &[3, 8, 8]), ("1", &[3, 8, 8])]), None);
        assert_eq!(orders(&[("layer_0", &[3, 8, 8]), ("layer_1", &[3, 1, 9])]), None);
        assert_eq!(orders(&[("0", &[5, 5]), ("1", &[5, 8])]), None);
        assert_eq!(orders(&[("step_0", &[3, 8, 8])]), None);
    }

    #[test]
    fn a_missing_step_and_one_that_is_there_twice_are_refused() {
        let problem = |described| chains(&arrays(described), None).err().expect("refused").1;
        assert!(problem(&[("step_0", &[2, 6, 6]), ("step_2", &[2, 1, 8])]).contains("a step is missing"));
        assert!(problem(&[("step_0", &[2, 6, 6]), ("a_step_00", &[2, 1, 7])]).contains("the same step"));
    }

    #[test]
    fn growing_widths_tell_where_the_first_row_stands() {
        let found = chains(&arrays(&[("step_5", &[2, 1, 6]), ("step_6", &[2, 1, 7])]), None).expect("sound");
        let chain = &found.expect("steps")[0];
        assert_eq!((chain.first(), chain.prompt_len()), (Some(5), None));
    }
}
