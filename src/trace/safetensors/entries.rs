//! The entries of a header, read one by one: a file may have a million of them, and may use a name twice, which
//! reading it into a map would hide.

use safetensors::tensor::{Metadata, TensorInfo};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

/// What a header says, in its order.
#[derive(Default)]
pub(super) struct Entries {
    metadata: Option<HashMap<String, String>>,
    tensors: Vec<(String, TensorInfo)>,
}

impl Entries {
    /// Reads the text of a header.
    pub(super) fn read(json: &[u8]) -> Result<Entries, serde_json::Error> {
        let mut text = serde_json::Deserializer::from_slice(json);
        let entries = text.deserialize_map(AllEntries)?;
        text.end()?;
        Ok(entries)
    }

    /// A name that two tensors have.
    pub(super) fn twice(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.tensors.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// The description of the file, whose sizes and places have been checked against each other.
    pub(super) fn checked(mut self) -> Result<Metadata, String> {
        self.tensors.sort_by_key(|(_, tensor)| tensor.data_offsets);
        Metadata::new(self.metadata, self.tensors).map_err(|error| error.to_string())
    }
}

/// A key, which stays where it is unless it holds an escape.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

struct AllEntries;

impl<'de> Visitor<'de> for AllEntries {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        let mut entries = Entries::default();
        while let Some(Key(key)) = map.next_key::<Key<'de>>()? {
            match key.as_ref() {
                "__metadata__" if entries.metadata.is_some() => return Err(A::Error::duplicate_field("__metadata__")),
                "__metadata__" => entries.metadata = map.next_value()?,
                _ => entries.tensors.push((key.into_owned(), map.next_value()?)),
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, from: usize) -> String {
        format!(r#""{name}": {{"dtype": "U8", "shape": [2], "data_offsets": [{from}, {}]}}"#, from + 2)
    }

    fn header(entries: &[String]) -> Result<Entries, serde_json::Error> {
        Entries::read(format!("{{{}}}", entries.join(", ")).as_bytes())
    }

    #[test]
    fn a_name_that_is_there_twice_is_found() {
        let entries = |names: [&str; 3]| header(&names.map(|name| tensor(name, 0))).expect("sound JSON");
        assert_eq!(entries(["a", "b", "\\u0061"]).twice(), Some("a"));
        assert_eq!(entries(["a", "b", "c"]).twice(), None);
    }

    #[test]
    fn tensors_may_stand_in_any_order() {
        let entries = header(&[tensor("b", 2), r#""__metadata__": {"x": "y"}"#.to_owned(), tensor("a", 0)]);
        let metadata = entries.expect("sound JSON").checked().expect("sound sizes");
        assert_eq!((metadata.data_len(), metadata.offset_keys()), (4, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(metadata.metadata().as_ref().expect("said")["x"], "y");
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let metadata = || r#""__metadata__": {}"#.to_owned();
        for entries in [vec![r#""a": 1"#.to_owned()], vec![metadata(), metadata()], vec!["x".to_owned()]] {
            assert!(header(&entries).is_err(), "{entries:?}");
        }
        assert!(Entries::read(b"{} x").is_err() && Entries::read(b"[]").is_err());
    }
}
