//! The parser of flags that take one of the library's [words](Word).

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use kvsim::word::Word;

/// Reads the word of a value; help lists all of them.
pub fn words<T: Word + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let possible = T::WORDS.iter().map(|(_, word, meaning)| PossibleValue::new(*word).help(*meaning));
    PossibleValuesParser::new(possible).map(|word| T::from_word(&word).expect("the parser admits known words only"))
}
