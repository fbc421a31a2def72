//! The list of policies and bounds. A new one is its own file, a line here, its vectors, and its twin
//! in the slow reference.

pub use super::entry::{Make, PolicyEntry, Setting};
use super::prompt_end::{ada_kv, cake, defensive_kv, simlayer_kv, snapkv_prompt};
use super::selectors::{fixed_threshold, sift_attention, top_k, top_p};
use super::{
    caote, criticalkv, cross_layer, decay, expected_attention, full, future_greedy, g_kv, h2o, keydiff, knorm, lru,
    openvino, optimal, oracle, pyramidkv, random, roco, scissorhands, scissorhands_paper, sliding_window, snapkv,
    streaming_llm, tova, vatp,
};
use crate::names::find_named;

/// Every policy, bound and selector, in the order of reports.
pub static POLICIES: &[PolicyEntry] = &[
    full::ENTRY,
    sliding_window::ENTRY,
    streaming_llm::ENTRY,
    random::ENTRY,
    lru::ENTRY,
    h2o::ENTRY,
    roco::ENTRY,
    scissorhands::ENTRY,
    scissorhands_paper::ENTRY,
    cross_layer::ENTRY,
    tova::ENTRY,
    decay::ENTRY,
    snapkv::ENTRY,
    pyramidkv::ENTRY,
    g_kv::ENTRY,
    openvino::ENTRY,
    snapkv_prompt::ENTRY,
    ada_kv::ENTRY,
    defensive_kv::ENTRY,
    cake::ENTRY,
    simlayer_kv::ENTRY,
    knorm::ENTRY,
    keydiff::ENTRY,
    vatp::ENTRY,
    caote::ENTRY,
    criticalkv::ENTRY,
    expected_attention::ENTRY,
    oracle::ENTRY,
    optimal::ENTRY,
    future_greedy::ENTRY,
    sift_attention::ENTRY,
    top_k::ENTRY,
    top_p::ENTRY,
    fixed_threshold::ENTRY,
];

/// The entry with this very name.
pub fn find(name: &str) -> Option<&'static PolicyEntry> {
    POLICIES.iter().find(|entry| entry.name == name)
}

/// The entry that a user means by a name.
///
/// # Errors
/// Says which one was probably meant, or which there are.
pub fn named(typed: &str) -> Result<&'static PolicyEntry, String> {
    find_named("policy", typed, POLICIES, |entry| entry.name)
}
