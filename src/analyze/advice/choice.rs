//! The choice among the lanes of a sweep: the least of them that is enough. Knows figures; no traces and
//! no engine.

use serde::Serialize;

/// The least of a sweep that is enough, and the best it is compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The policy.
    pub policy: &'static str,
    /// Its budget.
    pub budget: usize,
    /// Its recent window; absent where it has none.
    pub recent_window: Option<usize>,
    /// What it retains.
    pub retained_mass: f64,
    /// The best retained mass that was within reach.
    pub best_retained_mass: f64,
    /// The budget that does.
    pub best_budget: usize,
    /// The recent window that does; absent where there is none.
    pub best_recent_window: Option<usize>,
    /// What could have been retained at this budget at most.
    pub bound: f64,
    /// The retained mass over the bound; absent where the bound is 0.
    pub headroom: Option<f64>,
}

/// What one lane of the sweep retained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub policy: &'static str,
    pub budget: usize,
    pub window: Option<usize>,
    pub retained: f64,
}

/// All points of a sweep.
pub(super) struct Points {
    pub points: Vec<Point>,
    pub bound: &'static str,
    pub tolerance: f64,
}

impl Points {
    /// One choice for each budget at which the policy is possible.
    pub(super) fn at_budgets(&self, policy: &str, budgets: &[usize]) -> Vec<Choice> {
        let at = |budget: &usize| self.choose(|point| point.policy == policy && point.budget == *budget);
        budgets.iter().filter_map(at).collect()
    }

    /// What a bound retains at each of these budgets.
    pub(super) fn of(&self, bound: &str, budgets: &[usize]) -> Vec<f64> {
        let at = |budget: &usize| self.points.iter().find(|point| point.policy == bound && point.budget == *budget);
        budgets.iter().filter_map(at).map(|point| point.retained).collect()
    }

    /// The smallest budget, then window, that is enough among some points; `None` where there are none.
    pub(super) fn choose(&self, among: impl Fn(&Point) -> bool) -> Option<Choice> {
        let points = || self.points.iter().filter(|point| among(point));
        // The first of those that tie: the smallest budget and window.
        let best = points().reduce(|best, next| if next.retained > best.retained { next } else { best })?;
        let enough = points().filter(|point| point.retained >= best.retained - self.tolerance);
        let least = enough.min_by_key(|point| (point.budget, point.window)).expect("the best is enough");
        Some(self.choice(least, best))
    }

    fn choice(&self, least: &Point, best: &Point) -> Choice {
        let is_bound = |point: &&Point| point.policy == self.bound && point.budget == least.budget;
        let bound = self.points.iter().find(is_bound).expect("the bound runs at every budget").retained;
        Choice {
            policy: least.policy,
            budget: least.budget,
            recent_window: least.window,
            retained_mass: least.retained,
            best_retained_mass: best.retained,
            best_budget: best.budget,
            best_recent_window: best.window,
            bound,
            headroom: (bound > 0.0).then(|| least.retained / bound),
        }
    }
}
