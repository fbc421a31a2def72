//! placeholder front page
pub mod decimal;
pub mod error;
pub mod inspect;
pub mod kernels;
pub mod policy;
pub mod position;
pub mod replay;
pub mod report;
pub mod slots;
pub mod trace;
pub mod vectors;
