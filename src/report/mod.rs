//! Reports: from tallies to tables that people and programs read. Last stage; knows no traces'
//! rows and no policies' state.
//!
//! [`mod@line`] turns outcomes into lines, [`mod@column`] is the one table of columns, [`mod@format`] writes
//! lines in each output format, [`pivot`] turns written CSV into comparison tables.

pub mod block;
pub mod cell;
pub mod column;
pub mod format;
pub mod line;
pub mod pivot;
pub mod steps;
pub mod text_table;
