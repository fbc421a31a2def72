//! How caches are kept, as it is asked for: lists that multiply, and the prompt's length once the trace is
//! known.

use crate::error::{Error, Result};
use crate::keeping::{Combine, Keeping, PromptMode, PromptPlan, Scope};
use crate::policy::entry::PolicyEntry;
use crate::quantise::KvBits;
use crate::trace::TraceInfo;
use crate::word::Word;

/// How caches are kept. An empty list stands for what is done where nothing is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeepingRequest {
    /// Rows that policies see.
    pub combines: Vec<Combine>,
    /// Who shares a kept set.
    pub scopes: Vec<Scope>,
    /// Positions by which the budget is outgrown before it is cut back to.
    pub evict_every: Vec<usize>,
    /// Positions of the blocks that go; 1: single positions do.
    pub pages: Vec<usize>,
    /// What happens to the prompt.
    pub prompts: Vec<PromptMode>,
    /// Positions of the prompt; `None`: as the trace says.
    pub prompt_len: Option<usize>,
    /// Rows after which a prompt is cut while it is read.
    pub prompt_chunks: Vec<usize>,
    /// In how many bits keys and values are held.
    pub bits: Vec<KvBits>,
}

/// A request about a trace whose prompt is known, as far as it is.
#[derive(Clone, Debug)]
pub struct KeepingOf<'a> {
    request: &'a KeepingRequest,
    /// Positions of the prompt, where somebody says them.
    prompt_len: Option<usize>,
    /// Position of the first row.
    first: usize,
}

impl KeepingRequest {
    /// Refuses what none of these policies can be told, naming the flag.
    ///
    /// # Errors
    /// Says why it is idle.
    pub fn check(&self, entries: &[&PolicyEntry]) -> Result<()> {
        let none = |can: fn(&PolicyEntry) -> bool| !entries.iter().any(|entry| can(entry));
        let cuts_prompts = self.prompts.iter().any(|mode| *mode != PromptMode::Stream)
            || entries.iter().any(|entry| entry.own.prompt.is_some());
        let idle = match () {
            () if !self.combines.is_empty() && none(PolicyEntry::combines) => {
                "--combine: no chosen policy looks at rows that could be combined"
            }
            () if !self.scopes.is_empty() && none(PolicyEntry::scopes) => {
                "--scope: no chosen policy has a kept set that could be shared"
            }
            () if !self.evict_every.is_empty() && none(PolicyEntry::cut_late) => {
                "--evict-every: no chosen policy is cut to a budget"
            }
            () if !self.pages.is_empty() && none(PolicyEntry::pages) => "--page: no chosen policy evicts slots",
            () if !self.prompt_chunks.is_empty() && !cuts_prompts => {
                "--prompt-chunk says after how many rows a prompt is cut while it is read: add --prompt block or once"
            }
            () if self.prompt_len.is_some() && !cuts_prompts => {
                "--prompt-len says where a prompt ends that is cut down at once: add --prompt block or once"
            }
            () => return Ok(()),
        };
        Err(Error::usage(idle))
    }

    /// The request about a trace.
    ///
    /// # Errors
    /// When the prompt would be longer than the trace.
    pub fn of<'a>(&'a self, info: &TraceInfo) -> Result<KeepingOf<'a>> {
        let (name, positions) = (&info.name, info.positions);
        let prompt_len = self.prompt_len.or(info.facts.prompt_len);
        let cut = self.prompts.iter().any(|mode| *mode != PromptMode::Stream);
        match prompt_len.filter(|len| *len > positions && (cut || self.prompt_len.is_some())) {
            Some(len) => {
                Err(Error::usage(format!("{name}: a prompt of {len} positions is longer than its {positions}")))
            }
            None if cut && prompt_len.is_none() => Err(Error::usage(format!(
                "{name}: it does not say how long its prompt is: --prompt {} needs --prompt-len",
                self.prompts.iter().find(|mode| **mode != PromptMode::Stream).map_or("block", |mode| mode.word())
            ))),
            None => Ok(KeepingOf { request: self, prompt_len, first: info.first_position.index() }),
        }
    }
}

impl KeepingOf<'_> {
    /// Every combination for a policy, without what makes no difference to it.
    ///
    /// # Errors
    /// When the policy has its own way with the prompt, and another was asked for.
    pub fn all_for(&self, entry: &PolicyEntry) -> std::result::Result<Vec<Keeping>, String> {
        let mut all = vec![entry.default_keeping()];
        let request = self.request;
        multiply(&mut all, &self.prompts_for(entry)?, |keeping, prompt| Keeping { prompt, ..keeping });
        multiply(&mut all, &request.scopes, |keeping, scope| Keeping { scope, ..keeping });
        multiply(&mut all, &request.combines, |keeping, combine| Keeping { combine, ..keeping });
        multiply(&mut all, &request.evict_every, |keeping, evict_every| Keeping { evict_every, ..keeping });
        multiply(&mut all, &request.pages, |keeping, page| Keeping { page, ..keeping });
        multiply(&mut all, &request.bits, |keeping, bits| Keeping { bits: Some(bits), ..keeping });
        Ok(all.into_iter().map(|keeping| entry.keeping(keeping)).collect())
    }

    fn prompts_for(&self, entry: &PolicyEntry) -> std::result::Result<Vec<PromptPlan>, String> {
        let KeepingRequest { prompts, prompt_chunks, .. } = self.request;
        let modes = match entry.own.prompt {
            None if prompts.is_empty() => vec![PromptMode::Stream],
            None => prompts.clone(),
            // Nothing is cut: it says no more than where the prompt ends.
            Some(own) if entry.is_selector() => vec![own],
            Some(own) if prompts.is_empty() || prompts.contains(&own) => vec![own],
            Some(own) => {
                return Err(format!("it is --prompt {}: any other way with the prompt is not its own", own.word()));
            }
        };
        let len = self.prompt_len.unwrap_or(0);
        let mut plans = Vec::new();
        for mode in modes {
            // Where no row of it is there, the budget holds from the first row on.
            let mode = if mode == PromptMode::Block && len <= self.first { PromptMode::Stream } else { mode };
            let mut of_mode = vec![PromptPlan { mode, len, chunk: None }];
            multiply(&mut of_mode, prompt_chunks, |prompt, chunk| PromptPlan { chunk: Some(chunk), ..prompt });
            plans.extend(of_mode);
        }
        Ok(plans)
    }

    /// What a user should know of the prompt, where these are the lanes' ways with it.
    pub fn note(&self, info: &TraceInfo, modes: &[PromptMode]) -> Option<String> {
        let known = info.facts.prompt_len?;
        if let Some(said) = self.request.prompt_len {
            return (said != known).then(|| {
                format!("its metadata says that the prompt has {known} positions: --prompt-len makes it {said}")
            });
        }
        let streams = !modes.is_empty() && modes.iter().all(|mode| *mode == PromptMode::Stream);
        (streams && known > info.first_position.index()).then(|| {
            format!(
                "its first {known} positions are a prompt; the budget holds from the first row on (--prompt stream), where \
                 a server cuts the prompt at its end (--prompt block) and may keep all that follows (--prompt once)"
            )
        })
    }
}

/// Replaces each of `all` by one for each value; leaves them where there is none.
fn multiply<T: Copy, V: Copy>(all: &mut Vec<T>, values: &[V], with: impl Fn(T, V) -> T) {
    if !values.is_empty() {
        *all = all.iter().flat_map(|one| values.iter().map(|value| with(*one, *value))).collect();
    }
}
