//! The flags that say how caches are kept, whatever the policy.

use super::list::expand_all;
use clap::Args;
use kvsim::error::Error;
use kvsim::experiment::KeepingRequest;
use kvsim::keeping::{Combine, PromptMode, Scope};
use kvsim::word::Word;

/// How caches are kept.
#[derive(Args, Clone, Debug)]
pub struct KeepingArgs {
    /// The row that a policy sees where query heads share a cache: their mean, max or sum, or each head's own
    /// (for policies that add or vote) [default: mean]
    #[arg(long, value_name = "LIST")]
    combine: Vec<String>,

    /// Who shares a kept set: head, one for each KV head; layer, one for all KV heads of a layer, chosen by all of
    /// its query heads [default: head]
    #[arg(long, value_name = "LIST")]
    scope: Vec<String>,

    /// Let a cache grow N positions beyond its budget, then cut it back to the budget at once: the peak is
    /// budget + N - 1, so compare it with budgets as large as that (peak_kept) [default: 1]
    #[arg(long, value_name = "LIST")]
    evict_every: Vec<String>,

    /// Evict whole blocks of N consecutive positions, as engines do that free memory by pages; the budget is a
    /// multiple of N [default: 1]
    #[arg(long, value_name = "LIST")]
    page: Vec<String>,

    /// What the prompt gets: stream, the budget holds from the first row; block, its rows are observed with nothing
    /// evicted, then the cache is cut to the budget at once, as serving engines do, and figures are over decode
    /// rows only; once, the same cut, and every later token stays [default: stream]
    #[arg(long, value_name = "LIST")]
    prompt: Vec<String>,

    /// Positions of the prompt [default: as the trace says]
    #[arg(long, value_name = "N")]
    prompt_len: Option<usize>,

    /// Cut the prompt to the budget after every N rows while it is read, as chunked prefill does: the prompt's peak
    /// is budget + N [default: at its end alone]
    #[arg(long, value_name = "LIST")]
    prompt_chunk: Vec<String>,
}

impl KeepingArgs {
    /// What the library is told.
    pub fn request(&self) -> Result<KeepingRequest, Error> {
        Ok(KeepingRequest {
            combines: words::<Combine>("combine", &self.combine)?,
            scopes: words::<Scope>("scope", &self.scope)?,
            evict_every: counts("evict-every", &self.evict_every)?,
            pages: counts("page", &self.page)?,
            prompts: words::<PromptMode>("prompt", &self.prompt)?,
            prompt_len: self.prompt_len,
            prompt_chunks: counts("prompt-chunk", &self.prompt_chunk)?,
        })
    }
}

impl KeepingArgs {
    /// What the library is told where caches are kept in one way.
    pub fn request_one(&self) -> Result<KeepingRequest, Error> {
        let request = self.request()?;
        let lists = [
            ("combine", request.combines.len()),
            ("scope", request.scopes.len()),
            ("evict-every", request.evict_every.len()),
            ("page", request.pages.len()),
            ("prompt", request.prompts.len()),
            ("prompt-chunk", request.prompt_chunks.len()),
        ];
        match lists.iter().find(|(_, values)| *values > 1) {
            Some((flag, _)) => {
                Err(Error::usage(format!("--{flag}: an answer is for one way to keep caches: name one")))
            }
            None => Ok(request),
        }
    }
}

/// The values of a list of words.
fn words<T: Word>(flag: &str, typed: &[String]) -> Result<Vec<T>, Error> {
    let word = |text: &String| {
        let known = T::WORDS.iter().map(|(_, word, _)| *word).collect::<Vec<_>>().join(", ");
        T::from_word(text).ok_or_else(|| Error::usage(format!("--{flag}: {text:?} is none of {known}")))
    };
    expand_all(flag, typed)?.iter().map(word).collect()
}

/// The values of a list of whole numbers from 1 on.
fn counts(flag: &str, typed: &[String]) -> Result<Vec<usize>, Error> {
    let count = |text: &String| {
        let count = text.parse().ok().filter(|count| *count > 0);
        count.ok_or_else(|| Error::usage(format!("--{flag}: {text:?} is not a whole number from 1 on")))
    };
    expand_all(flag, typed)?.iter().map(count).collect()
}
