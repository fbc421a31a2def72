//! Values that are one of a few, each with its word: one mechanism for files, reports and the command
//! line. Knows no user of it.

/// A value that is one of a few, each with its word.
pub trait Word: Copy + PartialEq + 'static {
    /// Every value, its word, and one line of what it means.
    const WORDS: &'static [(Self, &'static str, &'static str)];

    /// The word for the value.
    fn word(self) -> &'static str {
        let named = Self::WORDS.iter().find(|(value, ..)| *value == self);
        named.map(|(_, word, _)| *word).expect("the list holds every value")
    }

    /// The value for a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known, _)| *known == word).map(|(value, ..)| *value)
    }
}
