//! Attention as runtimes dump it: every layout, container and trap, against the same attention in memory.

mod attention;
mod axes;
#[path = "../suite/common/binary.rs"]
#[allow(dead_code)]
mod binary;
mod cases;
mod changing;
mod containers;
mod content;
mod contents;
mod ends;
mod files;
mod foreign;
mod fuzz;
mod inspect;
mod join;
mod names;
mod normalize;
mod pipes;
mod positions;
mod refusals;
mod several;
mod shared;
mod steps;
mod unsound;
