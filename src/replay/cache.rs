//! A cache: the kept set, and the policy that manages it under the engine's eyes.
//!
//! Every answer of a policy is checked here before anything is removed; a broken contract is an
//! error that stops the run.

use super::blocks::choose_blocks;
use super::view::Shown;
use crate::error::{Error, Result};
use crate::policy::rounding::Rounding;
use crate::policy::sight::CacheTensors;
use crate::policy::{Admission, HeadRows, Observation, Overflow, Policy};
use crate::position::{Position, Slot};
use crate::slots::SlotVec;
use std::sync::Arc;

/// The kept set of one cache and the policy that manages it.
pub struct Cache {
    name: &'static str,
    policy: Box<dyn Policy>,
    kept: SlotVec<Position>,
    victims: Vec<Slot>,
    /// What blocks are ranked by.
    ranks: Vec<Option<f64>>,
    most_held: usize,
    rounding: Option<Rounding>,
    /// What the policy looks at besides rows.
    tensors: Option<Arc<CacheTensors>>,
}

impl Cache {
    /// An empty cache; `name` is the policy's, for messages, `slots` what it will hold about.
    pub fn new(name: &'static str, policy: Box<dyn Policy>, slots: usize) -> Cache {
        Cache {
            name,
            policy,
            kept: SlotVec::with_capacity(slots),
            victims: Vec::new(),
            ranks: Vec::new(),
            most_held: 0,
            rounding: None,
            tensors: None,
        }
    }

    /// The same for a policy that looks at more than rows.
    pub(crate) fn seeing(self, tensors: Option<Arc<CacheTensors>>) -> Cache {
        Cache { tensors, ..self }
    }

    /// Has the policy's scores rounded after every row that it sees.
    pub fn rounding_scores(self, rounding: Option<Rounding>) -> Cache {
        Cache { rounding, ..self }
    }

    /// Each held position with what the policy judges it by.
    pub fn judged(&self) -> Vec<(Position, Option<f64>)> {
        let judged = |(slot, position): (usize, &Position)| (*position, self.policy.probe(Slot(slot)));
        self.kept.iter().enumerate().map(judged).collect()
    }

    /// The kept positions, ascending.
    #[inline]
    pub fn kept(&self) -> &[Position] {
        &self.kept
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Admits the next position, which must be the highest so far.
    #[inline]
    pub fn admit(&mut self, position: Position) {
        debug_assert!(self.kept.last().is_none_or(|newest| *newest < position));
        self.kept.push(position);
        let sight = self.tensors.as_ref().map(|tensors| tensors.at(position));
        self.policy.admit(sight.map_or(Admission::of(position), |sight| Admission::seen(position, sight)));
        self.most_held = self.most_held.max(self.kept.len());
        debug_assert_eq!(self.state_problem(), None, "{} after admitting {position}", self.name);
    }

    /// Shows the policy a step's rows of `row_len` weights.
    #[inline]
    pub fn observe(&mut self, step: Position, row_len: usize, shown: Shown<'_>) {
        let Shown { weights, heads, scale, each } = shown;
        let seen = Observation::new(step, &self.kept, weights, row_len);
        let heads = heads.map(|heads| HeadRows::new(heads, self.kept.len()));
        self.policy.observe(Observation { heads, scale, each, ..seen });
        if let Some(to) = self.rounding {
            self.policy.round_scores(to);
        }
        debug_assert_eq!(self.state_problem(), None, "{} after observing row {step}", self.name);
    }

    /// Lets positions below `first` go without asking the policy, and returns how many went.
    pub fn expire(&mut self, first: Position) -> usize {
        let gone = self.kept.partition_point(|position| *position < first);
        if gone > 0 {
            self.victims.clear();
            self.victims.extend((0..gone).map(Slot));
            self.remove();
        }
        gone
    }

    /// Has the policy evict down to `budget`, or where whole blocks of `page` positions go, so many that no
    /// more is left. Returns how many went; `victims` gets their positions where it is given.
    ///
    /// # Errors
    /// When the policy names slots out of order, twice, not held, or too few.
    pub fn shrink(
        &mut self,
        budget: usize,
        page: usize,
        step: Position,
        victims: Option<&mut Vec<Position>>,
    ) -> Result<usize> {
        let excess = self.kept.len().saturating_sub(budget);
        if excess == 0 {
            return Ok(0);
        }
        self.victims.clear();
        self.choose(excess, page, step);
        self.check(excess, step)?;
        if let Some(victims) = victims {
            victims.extend(self.victims.iter().map(|slot| self.kept[slot.0]));
        }
        self.remove();
        Ok(self.victims.len())
    }

    #[inline]
    fn choose(&mut self, excess: usize, page: usize, step: Position) {
        if page == 1 {
            let sight = self.tensors.as_ref().map(|tensors| tensors.at(step));
            return self.policy.choose(Overflow { sight, ..Overflow::of(&self.kept, excess) }, &mut self.victims);
        }
        self.ranks.clear();
        self.policy.rank(&self.kept, &mut self.ranks);
        assert_eq!(self.ranks.len(), self.kept.len(), "{} ranks every slot", self.name);
        choose_blocks(&self.kept, &self.ranks, page, excess, &mut self.victims);
    }

    /// Checks that the policy holds state for the slots that are held; debug builds do so after every call.
    ///
    /// # Errors
    /// When it has lost count of them.
    pub fn check_state(&self, step: Position) -> Result<()> {
        match self.state_problem() {
            None => Ok(()),
            Some(problem) => Err(Error::Contract { policy: self.name.to_owned(), step: step.0, problem }),
        }
    }

    /// Bytes of policy state and kept positions at the most slots ever held.
    pub fn state_bytes(&self) -> u64 {
        let slot_bytes = self.policy.slot_bytes() + size_of::<Position>();
        (slot_bytes * self.most_held + self.policy.fixed_bytes()) as u64
    }

    #[inline]
    fn remove(&mut self) {
        self.kept.remove(&self.victims);
        self.policy.forget(&self.victims);
        debug_assert_eq!(self.state_problem(), None, "{} after {} slots left", self.name, self.victims.len());
    }

    /// What is wrong about the policy's state per slot: it must have the length of the kept set.
    #[inline]
    fn state_problem(&self) -> Option<String> {
        let (slots, held) = (self.policy.slots()?, self.kept.len());
        (slots != held).then(|| format!("holds state for {slots} slots, {held} are held"))
    }

    #[inline]
    fn check(&self, excess: usize, step: Position) -> Result<()> {
        let held = self.kept.len();
        let named = self.victims.len();
        let ascending = self.victims.is_sorted_by(|a, b| a < b);
        let held_all = self.victims.iter().all(|slot| slot.0 < held);
        if named >= excess && ascending && held_all {
            return Ok(());
        }
        let problem = if named < excess {
            format!("named {named} victims of {held} held, {excess} must go")
        } else if let Some(slot) = self.victims.iter().find(|slot| slot.0 >= held) {
            format!("named slot {} as one of {named} victims, {held} are held", slot.0)
        } else {
            format!("named {named} victims of {held} held out of order or twice")
        };
        Err(Error::Contract { policy: self.name.to_owned(), step: step.0, problem })
    }
}
