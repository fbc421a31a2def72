//! The table of policies: what the command line, `kvsim policies`, the vectors, the tests and the
//! docs know of them. A new policy is its own file, a line here, and its vectors.

use super::coupled::{CoupledPolicy, CoupledSetting};
use super::cross_layer::CrossLayer;
use super::decay::{Decay, Signal};
use super::future::{Evictions, Planner};
use super::future_greedy::FutureGreedy;
use super::h2o::H2o;
use super::optimal::Optimal;
use super::oracle::Oracle;
use super::parameter::{
    ALPHA, COUNT, DROP, GAMMA, HISTORY_WINDOW, OBS_WINDOW, POOL_KERNEL, PYRAMID_RATIO, Parameter, RECENT_WINDOW, SEED,
    SIGNAL, SINKS, THRESHOLD, Value, Values,
};
use super::pyramidkv::{LayerPlace, layer_budget};
use super::random::Random;
use super::scissorhands::Scissorhands;
use super::scissorhands_paper::{Count, PaperSetting, ScissorhandsPaper, Threshold};
use super::share::Share;
use super::sliding_window::{Full, SlidingWindow};
use super::snapkv::SnapKv;
use super::streaming_llm::StreamingLlm;
use super::tova::Tova;
use super::{Bound, Policy};

/// One policy, as everything outside its file knows it.
///
/// A policy from outside the crate is a value of this type too: see the crate's front page.
pub struct PolicyEntry {
    /// Name on the command line and in reports.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Authors, venue and arXiv number, where there is a paper.
    pub paper: Option<&'static str>,
    /// Its parameters, with defaults.
    pub parameters: &'static [(&'static Parameter, Value)],
    /// Whether it has a budget at all.
    pub budgeted: bool,
    /// Says what is impossible about a setting, naming the numbers.
    pub check: fn(&Setting) -> Result<(), String>,
    /// The budget of one cache, given the setting's: most policies take it as it is.
    pub cache_budget: fn(&Setting) -> usize,
    /// Name of [`Policy::figure`] in vector files.
    pub figure: Option<&'static str>,
    /// What it is, and how one is made.
    pub make: Make,
}

/// The kinds of entry, and how one is made for a cache.
#[derive(Clone, Copy)]
pub enum Make {
    /// Manages one cache.
    Policy(fn(&Setting) -> Box<dyn Policy>),
    /// Manages the caches of one head in all layers with one state, in step order.
    Coupled(fn(&CoupledSetting) -> Box<dyn CoupledPolicy>),
    /// No policy: says what could have been retained at most.
    Bound(fn(&Setting) -> Box<dyn Bound>),
    /// No policy: knows the rows to come, and plans ahead which positions go; the plan is replayed
    /// as the kept set of one cache.
    Future {
        /// Makes the planner.
        plan: fn(Evictions) -> Box<dyn Planner>,
        /// Bytes that it needs for a stream over so many positions at a budget.
        bytes: fn(positions: usize, budget: usize) -> u64,
    },
}

/// What a policy is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// Most positions that may be held between steps; `usize::MAX` where there is no budget.
    pub budget: usize,
    /// One value for each parameter of the policy.
    pub values: Values,
    /// Where the cache stands among the layers.
    pub place: LayerPlace,
}

impl PolicyEntry {
    /// The values of all parameters by default.
    pub fn defaults(&self) -> Values {
        let mut values = Values::default();
        self.parameters.iter().for_each(|(parameter, value)| values.set(parameter, *value));
        values
    }

    /// Whether this is no policy but reads whole rows or the future.
    pub fn is_bound(&self) -> bool {
        matches!(self.make, Make::Bound(_) | Make::Future { .. })
    }

    /// Whether it holds a kept set, on which everything can be measured.
    pub fn keeps_a_set(&self) -> bool {
        !matches!(self.make, Make::Bound(_))
    }

    /// Whether one state serves several caches.
    pub fn is_coupled(&self) -> bool {
        matches!(self.make, Make::Coupled(_))
    }

    /// Whether it deals budgets out to layers by a rule of its own.
    pub fn deals_layers(&self) -> bool {
        self.takes(&PYRAMID_RATIO)
    }

    /// The least budget that leaves something to choose between.
    pub fn least_budget(&self, values: &Values) -> usize {
        let reserved = [&RECENT_WINDOW, &SINKS].into_iter().filter(|parameter| self.takes(parameter));
        reserved.map(|parameter| values.count(parameter)).fold(1, usize::saturating_add)
    }

    /// Whether it runs where no policy is named: what manages one cache, and bounds that need no
    /// future.
    pub fn runs_by_default(&self) -> bool {
        matches!(self.make, Make::Policy(_) | Make::Bound(_))
    }

    /// Whether the policy has this parameter.
    pub fn takes(&self, parameter: &Parameter) -> bool {
        self.parameters.iter().any(|(own, _)| own.name == parameter.name)
    }
}

const RECENT: (&Parameter, Value) = (&RECENT_WINDOW, Value::Count(32));
const FOUR_SINKS: (&Parameter, Value) = (&SINKS, Value::Count(4));
const OBSERVE: (&Parameter, Value) = (&OBS_WINDOW, Value::Count(16));
const POOL: (&Parameter, Value) = (&POOL_KERNEL, Value::Count(7));

/// Every policy and bound, in the order of reports.
pub static POLICIES: &[PolicyEntry] = &[
    PolicyEntry {
        name: "full",
        summary: "keeps everything; no budget",
        paper: None,
        parameters: &[],
        budgeted: false,
        check: anything_goes,
        cache_budget: as_given,
        figure: None,
        make: Make::Policy(|_| Box::new(Full)),
    },
    PolicyEntry {
        name: "sliding-window",
        summary: "keeps the newest positions",
        paper: Some("Beltagy, Peters, Cohan: Longformer, 2020, arXiv 2004.05150"),
        parameters: &[],
        budgeted: true,
        check: anything_goes,
        cache_budget: as_given,
        figure: None,
        make: Make::Policy(|_| Box::new(SlidingWindow)),
    },
    PolicyEntry {
        name: "streaming-llm",
        summary: "keeps the first positions and the newest",
        paper: Some("Xiao et al.: StreamingLLM, ICLR 2024, arXiv 2309.17453"),
        parameters: &[FOUR_SINKS],
        budgeted: true,
        check: sinks_fit,
        cache_budget: as_given,
        figure: None,
        make: Make::Policy(|setting| Box::new(StreamingLlm::new(setting.values.count(&SINKS)))),
    },
    PolicyEntry {
        name: "random",
        summary: "keeps sinks and the newest, and chance decides on the rest",
        paper: None,
        parameters: &[FOUR_SINKS, RECENT, (&SEED, Value::Count(1))],
        budgeted: true,
        check: random_fits,
        cache_budget: as_given,
        figure: None,
        make: Make::Policy(|Setting { values, .. }| {
            let seed = values.count(&SEED) as u32;
            Box::new(Random::new(values.count(&SINKS), values.count(&RECENT_WINDOW), seed))
        }),
    },
    PolicyEntry {
        name: "h2o",
        summary: "keeps the most accumulated attention, and the newest",
        paper: Some("Zhang et al.: H2O, NeurIPS 2023, arXiv 2306.14048"),
        parameters: &[RECENT],
        budgeted: true,
        check: window_fits,
        cache_budget: as_given,
        figure: Some("scoreOf"),
        make: Make::Policy(|setting| Box::new(H2o::new(setting.values.count(&RECENT_WINDOW), setting.budget))),
    },
    PolicyEntry {
        name: "scissorhands",
        summary: "keeps what most often got more than 1 / kept positions, and the newest",
        paper: Some("Liu et al.: Scissorhands, NeurIPS 2023, arXiv 2305.17118"),
        parameters: &[RECENT],
        budgeted: true,
        check: window_fits,
        cache_budget: as_given,
        figure: Some("votesOf"),
        make: Make::Policy(|setting| Box::new(Scissorhands::new(setting.values.count(&RECENT_WINDOW), setting.budget))),
    },
    PolicyEntry {
        name: "scissorhands-paper",
        summary: "drops many at once: what was low most often in a window of history",
        paper: Some("Liu et al.: Scissorhands, NeurIPS 2023, arXiv 2305.17118"),
        parameters: &[
            (&HISTORY_WINDOW, Value::Count(400)),
            (&RECENT_WINDOW, Value::Count(10)),
            (&DROP, Value::Share(Share::percent(50))),
            (&COUNT, Value::Word("low")),
            (&THRESHOLD, Value::Word("sequence")),
        ],
        budgeted: true,
        check: window_fits,
        cache_budget: as_given,
        figure: Some("votesOf"),
        make: Make::Policy(make_scissorhands_paper),
    },
    PolicyEntry {
        name: "scissorhands-cross-layer",
        summary: "one importance per position, handed from layer to layer; a reading, not the paper's",
        paper: None,
        parameters: &[(&ALPHA, Value::Real(0.5)), RECENT],
        budgeted: true,
        check: window_fits,
        cache_budget: as_given,
        figure: None,
        make: Make::Coupled(|CoupledSetting { values, .. }| {
            Box::new(CrossLayer::new(values.real(&ALPHA), values.count(&RECENT_WINDOW)))
        }),
    },
    PolicyEntry {
        name: "tova",
        summary: "keeps what the newest token attends to",
        paper: Some("Oren et al.: Transformers are Multi-State RNNs, EMNLP 2024, arXiv 2401.06104"),
        parameters: &[],
        budgeted: true,
        check: anything_goes,
        cache_budget: as_given,
        figure: Some("lastAttentionOf"),
        make: Make::Policy(|setting| Box::new(Tova::new(setting.budget))),
    },
    PolicyEntry {
        name: "decay",
        summary: "keeps the highest score that fades as rows go by, and the newest",
        paper: None,
        parameters: &[(&GAMMA, Value::Real(0.95)), (&SIGNAL, Value::Word("weight")), RECENT],
        budgeted: true,
        check: window_fits,
        cache_budget: as_given,
        figure: Some("scoreOf"),
        make: Make::Policy(make_decay),
    },
    PolicyEntry {
        name: "snapkv",
        summary: "keeps what the last rows attend to, with its neighbours, and the newest",
        paper: Some("Li et al.: SnapKV, NeurIPS 2024, arXiv 2404.14469"),
        parameters: &[RECENT, OBSERVE, POOL],
        budgeted: true,
        check: snapkv_fits,
        cache_budget: as_given,
        figure: Some("windowScoreOf"),
        make: Make::Policy(make_snapkv),
    },
    PolicyEntry {
        name: "pyramidkv",
        summary: "snapkv with more budget for early layers than for late ones",
        paper: Some("Cai et al.: PyramidKV, 2024, arXiv 2406.02069"),
        parameters: &[RECENT, OBSERVE, POOL, (&PYRAMID_RATIO, Value::Real(4.0))],
        budgeted: true,
        check: snapkv_fits,
        cache_budget: |Setting { budget, values, place }| {
            layer_budget(*budget, *place, values.real(&PYRAMID_RATIO), values.count(&RECENT_WINDOW))
        },
        figure: Some("windowScoreOf"),
        make: Make::Policy(make_snapkv),
    },
    PolicyEntry {
        name: "oracle",
        summary: "bound: the heaviest weights of each row, chosen anew every time",
        paper: None,
        parameters: &[],
        budgeted: true,
        check: anything_goes,
        cache_budget: as_given,
        figure: None,
        make: Make::Bound(|_| Box::new(Oracle)),
    },
    PolicyEntry {
        name: "optimal",
        summary: "bound: knows the future, and never takes back what it evicted",
        paper: None,
        parameters: &[],
        budgeted: true,
        check: anything_goes,
        cache_budget: as_given,
        figure: None,
        make: Make::Future { plan: |evictions| Box::new(Optimal::new(evictions)), bytes: Optimal::bytes },
    },
    PolicyEntry {
        name: "future-greedy",
        summary: "heuristic: knows the future, and evicts what will receive the least",
        paper: None,
        parameters: &[],
        budgeted: true,
        check: anything_goes,
        cache_budget: as_given,
        figure: None,
        make: Make::Future {
            plan: |evictions| Box::new(FutureGreedy::new(evictions)),
            bytes: |positions, _| FutureGreedy::bytes(positions),
        },
    },
];

/// The entry with this name.
pub fn find(name: &str) -> Option<&'static PolicyEntry> {
    POLICIES.iter().find(|entry| entry.name == name)
}

/// The answer of a policy without parameters that could clash.
pub fn anything_goes(_setting: &Setting) -> Result<(), String> {
    Ok(())
}

/// Most policies take the budget as it is given.
pub fn as_given(setting: &Setting) -> usize {
    setting.budget
}

/// Refuses a recent window that leaves nothing to choose between.
pub fn window_fits(setting: &Setting) -> Result<(), String> {
    must_be_below(setting, &[&RECENT_WINDOW])
}

fn sinks_fit(setting: &Setting) -> Result<(), String> {
    must_be_below(setting, &[&SINKS])
}

fn random_fits(setting: &Setting) -> Result<(), String> {
    must_be_below(setting, &[&SINKS, &RECENT_WINDOW])?;
    must_not_exceed(setting, &SEED, u32::MAX as usize)
}

fn snapkv_fits(setting: &Setting) -> Result<(), String> {
    window_fits(setting)?;
    must_not_exceed(setting, &OBS_WINDOW, MOST_OBSERVED)
}

/// Each slot has a ring of this length at most: 16 KiB.
const MOST_OBSERVED: usize = 4096;

fn must_not_exceed(setting: &Setting, parameter: &Parameter, most: usize) -> Result<(), String> {
    let count = setting.values.count(parameter);
    if count <= most {
        Ok(())
    } else {
        Err(format!("{} {count} is too large: at most {most} is possible", parameter.name))
    }
}

/// What the parameters keep out of reach must be less than the budget.
fn must_be_below(setting: &Setting, parameters: &[&Parameter]) -> Result<(), String> {
    let counts = parameters.iter().map(|parameter| setting.values.count(parameter));
    let reserved = counts.clone().fold(0, usize::saturating_add);
    if reserved < setting.budget {
        return Ok(());
    }
    let named: Vec<String> =
        parameters.iter().zip(counts).map(|(parameter, count)| format!("{} {count}", parameter.name)).collect();
    let budget = setting.budget;
    Err(format!("{} leaves nothing to evict at budget {budget}: it must be below the budget", named.join(" + ")))
}

fn make_snapkv(setting: &Setting) -> Box<dyn Policy> {
    let values = &setting.values;
    Box::new(SnapKv::new(
        values.count(&RECENT_WINDOW),
        values.count(&OBS_WINDOW),
        values.count(&POOL_KERNEL),
        setting.budget,
    ))
}

fn make_decay(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let signal = Signal::from_word(values.word(&SIGNAL)).expect("the parameter admits known words only");
    Box::new(Decay::new(values.real(&GAMMA), signal, values.count(&RECENT_WINDOW), *budget))
}

fn make_scissorhands_paper(Setting { budget, values, .. }: &Setting) -> Box<dyn Policy> {
    let setting = PaperSetting {
        history_window: values.count(&HISTORY_WINDOW),
        recent_window: values.count(&RECENT_WINDOW),
        drop: values.count_of(&DROP, *budget),
        count: Count::from_word(values.word(&COUNT)).expect("the parameter admits known words only"),
        threshold: Threshold::from_word(values.word(&THRESHOLD)).expect("the parameter admits known words only"),
    };
    Box::new(ScissorhandsPaper::new(setting, *budget))
}
