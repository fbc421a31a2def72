//! `kvsim policies`: the table of policies, as it stands in the code.

use super::block_args::BlockArgs;
use anyhow::Result;
use clap::Args;
use kvsim::budgets::LayerPlace;
use kvsim::policy::coupled::CoupledSetting;
use kvsim::policy::table::{Make, POLICIES, PolicyEntry};
use kvsim::replay::LanePlan;
use kvsim::report::text_table::TextTable;
use std::process::ExitCode;

/// Budget at which state is quoted.
const BUDGET: usize = 512;

/// List the policies, their parameters and what they cost
///
/// Bytes are policy state and 4 for the position itself, per slot and for the slots of a budget of
/// 512 with one more while a step is under way.
#[derive(Args)]
#[command(after_help = "Example:\n  kvsim policies --markdown")]
pub struct PoliciesArgs {
    /// As a markdown table
    #[arg(long)]
    markdown: bool,

    #[command(flatten)]
    block: BlockArgs,
}

impl PoliciesArgs {
    pub fn run(&self) -> Result<ExitCode> {
        let table = table();
        let text = if self.markdown { table.markdown() } else { table.aligned() };
        self.block.write(&text)
    }
}

fn table() -> TextTable {
    let names = ["policy", "what it does", "parameters (defaults)", "bytes per slot", "bytes at 512", "paper"];
    TextTable {
        header: names.map(str::to_owned).to_vec(),
        rows: POLICIES.iter().map(row).collect(),
        right: vec![false, false, false, true, true, false],
    }
}

fn row(entry: &'static PolicyEntry) -> Vec<String> {
    let parameters: Vec<String> =
        entry.parameters.iter().map(|(parameter, default)| format!("{} {default}", parameter.name)).collect();
    let bytes = slot_bytes(entry);
    let figure = |bytes: Option<usize>| bytes.map_or(String::new(), |bytes| bytes.to_string());
    vec![
        entry.name.to_owned(),
        entry.summary.to_owned(),
        parameters.join(", "),
        figure(bytes),
        figure(bytes.filter(|_| entry.budgeted).map(|bytes| bytes * (BUDGET + 1))),
        entry.paper.unwrap_or("").to_owned(),
    ]
}

fn slot_bytes(entry: &'static PolicyEntry) -> Option<usize> {
    let setting = LanePlan::new(entry, BUDGET).setting(LayerPlace::ONLY);
    let state = match entry.make {
        Make::Policy(make) => make(&setting).slot_bytes(),
        Make::Coupled(make) => make(&CoupledSetting { caches: vec![setting] }).slot_bytes(),
        Make::PromptEnd(_) => 0,
        Make::Bound(_) | Make::Selector(_) | Make::Future { .. } | Make::Played => return None,
    };
    Some(state + size_of::<u32>())
}
