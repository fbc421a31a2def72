//! A group: the caches that are replayed side by side, their rows, and the teams that see them.
//!
//! Most groups are a single cache. Caches stand together where a coupled lane serves them: those
//! of one head, in the order of layers.

use super::block::{Feeds, Inspector, StepBlock};
use super::plan::{CachePlan, LanePlan};
use super::planning::Schedules;
use super::policy_lane::LaneSetup;
use super::run::{Options, Outcome, Run, Stage};
use super::team::{Post, Team};
use crate::error::{Error, Result};
use crate::policy::table::Setting;
use crate::trace::Source;
use rayon::prelude::*;

/// Indices of the caches of each group.
pub(super) fn groups_of(caches: &[CachePlan], lanes: &[LanePlan]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let coupled = lanes.iter().any(|lane| lane.entry.is_coupled());
    for (index, cache) in caches.iter().enumerate() {
        let same_head = |group: &&mut Vec<usize>| caches[group[0]].label.head == cache.label.head;
        match groups.iter_mut().find(same_head).filter(|_| coupled) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups.iter_mut().for_each(|group| group.sort_by_key(|index| caches[*index].label.layer));
    groups
}

/// Caches on their way through the replay.
pub(super) struct Group<'a> {
    run: &'a Run<'a>,
    caches: Vec<&'a CachePlan>,
    inspectors: Vec<Inspector<'a>>,
    teams: Vec<Team>,
    /// Whether the work on a block is shared out over threads.
    share: bool,
}

impl<'a> Group<'a> {
    /// Makes the teams of the caches with these indices.
    pub(super) fn new(
        run: &'a Run<'a>,
        caches: &'a [CachePlan],
        indices: &[usize],
        schedules: &Schedules,
        share: bool,
    ) -> Result<Group<'a>> {
        let Run { source, lanes, options, .. } = *run;
        let team = |(lane, plan): (usize, &LanePlan)| {
            let post = |cache: &usize| -> Result<Post<'_>> {
                let setting = plan.setting_on(&caches[*cache], &options.layer_budgets).map_err(Error::usage)?;
                let setup = setup(run, &caches[*cache], plan, &setting);
                Ok(Post { setting, setup, schedule: schedules.get((*cache, lane)) })
            };
            let posts = indices.iter().map(post).collect::<Result<Vec<_>>>()?;
            Ok(Team::new(plan, &posts))
        };
        let teams = lanes.iter().enumerate().map(team).collect::<Result<Vec<Team>>>()?;
        let caches: Vec<&CachePlan> = indices.iter().map(|index| &caches[*index]).collect();
        let inspectors = inspectors(source, &caches, options);
        Ok(Group { run, caches, inspectors, teams, share })
    }

    /// Replays all blocks; one outcome for each cache.
    pub(super) fn replay(mut self) -> Result<Vec<Outcome>> {
        let steps = self.run.options.steps.unwrap_or(usize::MAX);
        let mut feeds = Feeds::open(self.run.source, &self.caches, steps)?;
        let (mut blocks, mut ahead) = (feeds.blocks(), feeds.blocks());
        let run = self.run;
        let mut fill = |blocks: &mut [StepBlock]| run.time(Stage::Read, || feeds.fill(blocks));
        let mut left = fill(&mut blocks)?;
        while left > 0 {
            left = if self.share {
                let (read, worked) = rayon::join(|| fill(&mut ahead), || self.work(&mut blocks));
                worked.and(read)?
            } else {
                self.work(&mut blocks)?;
                fill(&mut ahead)?
            };
            std::mem::swap(&mut blocks, &mut ahead);
        }
        Ok(self.finish())
    }

    fn work(&mut self, blocks: &mut [StepBlock]) -> Result<()> {
        let run = self.run;
        run.time(Stage::Select, || {
            self.inspectors.iter_mut().zip(&mut *blocks).try_for_each(|(inspector, block)| inspector.inspect(block))
        })?;
        let blocks = &*blocks;
        run.time(Stage::Lanes, || self.run_teams(blocks))?;
        let (rows, weights) = blocks.iter().map(StepBlock::size).fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        run.observer.rows(rows as u64, weights as u64);
        Ok(())
    }

    fn run_teams(&mut self, blocks: &[StepBlock]) -> Result<()> {
        if self.run.observer.wants_steps() {
            self.work_observed(blocks)?;
        } else if self.share && self.teams.len() > 1 {
            let results: Vec<Result<()>> = self.teams.par_iter_mut().map(|team| team.run(blocks, None)).collect();
            results.into_iter().collect::<Result<()>>()?;
        } else {
            self.teams.iter_mut().try_for_each(|team| team.run(blocks, None))?;
        }
        Ok(())
    }

    /// Records what every team does, and shows the records cache by cache.
    fn work_observed(&mut self, blocks: &[StepBlock]) -> Result<()> {
        let mut logs = vec![vec![Vec::new(); self.caches.len()]; self.teams.len()];
        self.teams.iter_mut().zip(&mut logs).try_for_each(|(team, logs)| team.run(blocks, Some(logs)))?;
        for (index, cache) in self.caches.iter().enumerate() {
            let records: Vec<_> = logs.iter_mut().map(|logs| std::mem::take(&mut logs[index])).collect();
            self.run.observer.steps(cache, &records)?;
        }
        Ok(())
    }

    fn finish(self) -> Vec<Outcome> {
        let excess = self.inspectors.iter().flat_map(Inspector::excess);
        excess.for_each(|excess| self.run.observer.excess_mass(excess));
        let mut tallies = vec![Vec::new(); self.caches.len()];
        for team in self.teams {
            team.finish().into_iter().zip(&mut tallies).for_each(|(tally, tallies)| tallies.push(tally));
        }
        let caches = self.caches.into_iter().cloned();
        caches.zip(tallies).map(|(cache, tallies)| Outcome { cache, tallies }).collect()
    }
}

fn setup(run: &Run<'_>, cache: &CachePlan, plan: &LanePlan, setting: &Setting) -> LaneSetup {
    let info = run.source.info();
    LaneSetup {
        name: plan.entry.name,
        budget: plan.budget.map(|_| setting.budget),
        kind: info.self_attention,
        first: info.first_position,
        view: run.options.view,
        block_prompt: run.options.block_prompt,
        window: cache.window,
    }
}

fn inspectors<'a>(source: &'a dyn Source, caches: &[&'a CachePlan], options: &Options) -> Vec<Inspector<'a>> {
    let inspector = |cache: &&'a CachePlan| Inspector::new(source, cache, options.heavy_hitters, options.bad_rows);
    caches.iter().map(inspector).collect()
}
