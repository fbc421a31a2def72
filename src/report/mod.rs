//! Reports: from tallies to tables that people and programs read. Last stage; knows no traces'
//! rows and no policies' state.
//!
//! [`schema`] is the one table of columns. [`replayed`] turns outcomes into typed [`results`], under the
//! keys of an [`identity`]; [`read`] reads them back from files, `merge` makes one line of parts of a
//! whole, [`mod@format`] writes them in each output format, and [`pivot`] lays them out as comparison
//! tables, of lines that `compare` admits. [`curves`] lays them out over a number, for [`text_chart`] and pictures.

pub mod block;
pub mod cell;
mod compare;
pub mod curves;
pub mod format;
pub mod identity;
mod merge;
mod people;
pub mod pivot;
pub mod read;
pub mod replayed;
pub mod results;
pub mod schema;
pub mod steps;
pub mod text_chart;
pub mod text_table;

pub use people::DECIMALS;
