//! Attention as runtimes dump it: every layout, container and trap, against the same attention in memory.

mod attention;
mod containers;
mod content;
mod ends;
mod files;
mod fuzz;
mod normalize;
mod positions;
mod refusals;
mod shared;
mod unsound;
