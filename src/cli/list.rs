//! Lists of flags that may be repeated.

use kvsim::error::Error;
use kvsim::experiment::list::expand;

/// Expands what was given to a flag that may be repeated.
///
/// # Errors
/// Names the flag.
pub fn expand_all(flag: &str, typed: &[String]) -> Result<Vec<String>, Error> {
    let expanded = typed.iter().map(|text| expand(text)).collect::<Result<Vec<_>, _>>();
    expanded.map(|lists| lists.concat()).map_err(|problem| Error::usage(format!("--{flag}: {problem}")))
}
