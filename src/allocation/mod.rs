//! A total of positions dealt out to caches so that they lose least together: arithmetic on loss curves.
//!
//! A curve says what a cache loses at each budget of a grid. Caches do not interact, so that the total is the
//! sum. [`exact`] finds the least there is; [`marginal`] goes along the lower convex hulls, which is as good
//! wherever it ends with nothing left over. Knows no traces.

pub mod exact;
pub mod marginal;

/// What caches lose at the budgets of a grid.
#[derive(Clone, PartialEq, Debug)]
pub struct Curves {
    /// Budgets, ascending.
    grid: Vec<usize>,
    /// For each cache, what it loses at each of them.
    losses: Vec<Vec<f64>>,
}

/// Budgets of caches.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocation {
    /// One for each cache.
    pub budgets: Vec<usize>,
    /// What the caches lose together.
    pub loss: f64,
}

impl Curves {
    /// Curves over budgets.
    ///
    /// # Errors
    /// When the budgets do not ascend, or a curve has not one loss for each.
    pub fn new(grid: Vec<usize>, losses: Vec<Vec<f64>>) -> Result<Curves, String> {
        if grid.is_empty() || grid[0] == 0 || !grid.is_sorted_by(|a, b| a < b) {
            return Err("the budgets of a grid ascend from 1 on".to_owned());
        }
        match losses.iter().find(|curve| curve.len() != grid.len()) {
            Some(curve) => Err(format!("a curve has {} losses at {} budgets", curve.len(), grid.len())),
            None => Ok(Curves { grid, losses }),
        }
    }

    /// Budgets, ascending.
    pub fn grid(&self) -> &[usize] {
        &self.grid
    }

    /// What a cache loses at each budget.
    pub fn of_cache(&self, cache: usize) -> &[f64] {
        &self.losses[cache]
    }

    /// Number of caches.
    pub fn caches(&self) -> usize {
        self.losses.len()
    }

    /// The least total that there is an allocation of.
    pub fn least_total(&self) -> usize {
        self.grid[0] * self.caches()
    }

    /// The caches at these places of the grid.
    fn at(&self, places: &[usize]) -> Allocation {
        let loss = |(cache, place): (usize, &usize)| self.losses[cache][*place];
        Allocation {
            budgets: places.iter().map(|place| self.grid[*place]).collect(),
            loss: places.iter().enumerate().map(loss).sum(),
        }
    }

    /// Every cache at one budget, where it is on the grid.
    pub fn uniform(&self, budget: usize) -> Option<Allocation> {
        let place = self.grid.binary_search(&budget).ok()?;
        Some(self.at(&vec![place; self.caches()]))
    }
}
