//! Looks for a name that a header uses twice, which reading it into a map would hide.

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;

/// The first key that is there twice, if the text is an object.
pub(super) fn twice(json: &[u8]) -> Option<String> {
    serde_json::Deserializer::from_slice(json).deserialize_map(Keys).ok().flatten()
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seen, mut twice) = (BTreeSet::new(), None);
        while let Some((key, IgnoredAny)) = map.next_entry::<String, _>()? {
            if seen.contains(&key) {
                twice.get_or_insert(key);
            } else {
                seen.insert(key);
            }
        }
        Ok(twice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_found() {
        assert_eq!(twice(br#"{"a": {"b": 1}, "b": [], "a": 2}"#), Some("a".to_owned()));
        assert_eq!(twice(br#"{"a": {"b": 1}, "b": []}"#), None);
        assert_eq!(twice(b"[1"), None);
    }
}
