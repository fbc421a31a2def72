//! A kept set and the policy that thins it: what replay and vectors have in common.

use super::{Setting, policies};

/// What a policy is shown of one row: the kept positions, ascending, with the weight of each.
pub struct Seen {
    /// The step whose row it is.
    pub step: u32,
    /// Weights in the whole row, kept or not.
    pub row_length: usize,
    /// Kept positions, ascending.
    pub positions: Vec<u32>,
    /// The weight of each of them, of the rows combined.
    pub weights: Vec<f32>,
    /// The rows that count, for policies that add: the combined one, or every head's own.
    pub rows: Vec<Vec<f32>>,
    /// How many rows were summed into one.
    pub scale: f64,
}

impl Seen {
    /// One over the number of kept positions, for as many rows as were summed.
    pub fn share(&self) -> f64 {
        self.scale / self.positions.len() as f64
    }

    /// Each position with its weight in f64, row by row.
    pub fn pairs_of_rows(&self) -> Vec<(u32, f64)> {
        let pairs = |row: &Vec<f32>| -> Vec<(u32, f64)> {
            self.positions.iter().zip(row).map(|(&position, &weight)| (position, f64::from(weight))).collect()
        };
        self.rows.iter().flat_map(pairs).collect()
    }

    /// Each position with its weight in f64.
    pub fn pairs(&self) -> Vec<(u32, f64)> {
        self.positions.iter().zip(&self.weights).map(|(&position, &weight)| (position, f64::from(weight))).collect()
    }
}

/// A policy: state keyed by position, and a choice.
pub trait Policy {
    /// Takes note of one row.
    fn observe(&mut self, _seen: &Seen) {}

    /// A position joins the kept set.
    fn admit(&mut self, _position: u32) {}

    /// The positions to give up, in any order; called with more than `budget` positions kept.
    fn choose(&mut self, kept: &[u32], budget: usize) -> Vec<u32>;

    /// For a policy with its own rule of cuts: down to how many positions it goes now, if at all.
    fn due(&self, _kept: usize, _step: usize) -> Option<Option<usize>> {
        None
    }

    /// The value of every kept position by which blocks are ranked; none for one out of reach.
    fn rank(&mut self, _kept: &[u32]) -> Vec<Option<f64>> {
        panic!("this policy does not rank what it keeps")
    }

    /// A position has left the kept set.
    fn forget(&mut self, _position: u32) {}

    /// The answer to a probe about a position that is held; `None` when the policy has no such
    /// probe.
    fn probe(&self, _name: &str, _position: u32) -> Option<f64> {
        None
    }

    /// The policy's own budget where it differs from that of its setting.
    fn own_budget(&self) -> Option<usize> {
        None
    }

    /// Down to how many positions the policy goes when `asked` is asked for.
    fn limit(&self, asked: usize) -> usize {
        asked
    }

    /// How many first positions are never given up, for a policy that has sinks.
    fn sink_count(&self) -> Option<usize> {
        None
    }
}

/// The kept set of one policy.
pub struct Cache {
    /// Positions held, ascending.
    pub kept: Vec<u32>,
    /// Decides which of them go.
    pub policy: Box<dyn Policy>,
}

impl Cache {
    /// An empty cache under the policy that `setting` names.
    pub fn new(setting: &Setting) -> Cache {
        Cache::with_policy(policies::build(setting))
    }

    /// An empty cache under a policy made elsewhere.
    pub fn with_policy(policy: Box<dyn Policy>) -> Cache {
        Cache { kept: Vec::new(), policy }
    }

    /// Shows the policy one weight for each kept position.
    pub fn observe(&mut self, step: usize, row_length: usize, weights: Vec<f32>) {
        let rows = vec![weights.clone()];
        self.observe_rows(step, row_length, weights, rows, 1.0);
    }

    /// Shows the policy the rows of several heads, combined, and those that count one by one.
    pub fn observe_rows(&mut self, step: usize, row_length: usize, weights: Vec<f32>, rows: Vec<Vec<f32>>, scale: f64) {
        assert_eq!(weights.len(), self.kept.len(), "one weight for each kept position");
        let (step, positions) = (step as u32, self.kept.clone());
        self.policy.observe(&Seen { step, row_length, positions, weights, rows, scale });
    }

    /// Adds the newest position.
    pub fn admit(&mut self, position: u32) {
        assert!(self.kept.last().is_none_or(|&last| last < position), "positions are admitted in order");
        self.kept.push(position);
        self.policy.admit(position);
    }

    /// Asks the policy to go down to `asked` positions and removes what it names; the victims,
    /// ascending.
    pub fn evict(&mut self, asked: usize) -> Vec<u32> {
        let budget = self.policy.limit(asked);
        if self.kept.len() <= budget {
            return Vec::new();
        }
        let mut victims = self.policy.choose(&self.kept, budget);
        victims.sort();
        self.remove(&victims, budget);
        victims
    }

    /// Removes whole blocks of `page` positions, those with the fewest slots out of reach and of least worth first, the lower of equal ones, until no
    /// more than `budget` is kept.
    pub fn evict_blocks(&mut self, budget: usize, page: usize) -> Vec<u32> {
        let ranks = self.policy.rank(&self.kept);
        let newest = *self.kept.last().expect("more than the budget is kept") as usize;
        let mut blocks = Vec::new();
        for block in 0..=newest / page {
            let slots: Vec<usize> =
                (0..self.kept.len()).filter(|&slot| self.kept[slot] as usize / page == block).collect();
            let filling = block == newest / page && !(newest + 1).is_multiple_of(page);
            if slots.is_empty() || filling {
                continue;
            }
            let mut sum = 0.0;
            for &slot in &slots {
                sum += ranks[slot].unwrap_or(0.0);
            }
            let worth = if slots.len() == page { sum } else { sum / slots.len() as f64 * page as f64 };
            let out_of_reach = slots.iter().filter(|&&slot| ranks[slot].is_none()).count();
            blocks.push((out_of_reach, worth, slots));
        }
        blocks.sort_by(|left, right| left.partial_cmp(right).expect("no worth is NaN"));
        let mut victims: Vec<u32> = Vec::new();
        for (_, _, slots) in blocks {
            if self.kept.len() - victims.len() > budget {
                victims.extend(slots.iter().map(|&slot| self.kept[slot]));
            }
        }
        victims.sort();
        self.remove(&victims, budget);
        victims
    }

    fn remove(&mut self, victims: &[u32], budget: usize) {
        for &victim in victims {
            let slot = self.kept.iter().position(|&position| position == victim);
            self.kept.remove(slot.expect("a policy names what it holds, once"));
            self.policy.forget(victim);
        }
        assert!(self.kept.len() <= budget, "a policy reaches the budget");
    }

    /// The answer to a probe about one position: -1 when it is not held.
    pub fn probe(&self, name: &str, position: u32) -> Option<f64> {
        match self.kept.contains(&position) {
            true => self.policy.probe(name, position),
            false => Some(-1.0),
        }
    }
}
