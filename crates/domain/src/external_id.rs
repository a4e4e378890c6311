//! An id of an item in another system, and where the report gives it: what a test is, or only what it is about.
//! Must not know which system an id belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where an id stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdSource {
    /// In a property for ids of cases (`test_key`, `testrail_case_id`), or given by whoever pushes: it is meant.
    Property,
    /// In the item's name, where other things look like ids (`SHA-256`).
    Name,
    /// In a property for requirements: what the item is about. It never leads to a case.
    Requirement,
}

impl IdSource {
    const ALL: [Self; 3] = [Self::Property, Self::Name, Self::Requirement];

    fn prefix(self) -> &'static str {
        match self {
            IdSource::Property => "property:",
            IdSource::Name => "name:",
            IdSource::Requirement => "requirement:",
        }
    }
}

/// An id of an item in another system.
///
/// Its text is the id; one from a name or for a requirement has `name:` or `requirement:` before it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ExternalId {
    source: IdSource,
    id: String,
}

impl ExternalId {
    /// An id as it stands there.
    pub fn new(source: IdSource, id: impl Into<String>) -> Self {
        Self { source, id: id.into() }
    }

    /// Where it stands.
    pub fn source(&self) -> IdSource {
        self.source
    }

    /// The id alone.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Bytes of its text.
    pub fn text_bytes(&self) -> usize {
        self.prefix().len() + self.id.len()
    }

    /// What stands before the id in its text. A given id needs it only if it would be read as another one.
    fn prefix(&self) -> &'static str {
        let is_plain = self.source == IdSource::Property
            && IdSource::ALL.iter().all(|source| !self.id.starts_with(source.prefix()));
        if is_plain { "" } else { self.source.prefix() }
    }
}

impl fmt::Display for ExternalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.prefix(), self.id)
    }
}

impl From<String> for ExternalId {
    fn from(text: String) -> Self {
        let named = IdSource::ALL.into_iter().find_map(|source| Some((source, text.strip_prefix(source.prefix())?)));
        match named {
            Some((source, id)) => Self::new(source, id),
            None => Self::new(IdSource::Property, text),
        }
    }
}

impl From<ExternalId> for String {
    fn from(id: ExternalId) -> String {
        if id.prefix().is_empty() { id.id } else { id.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn given_ids_stand_alone_and_others_say_where_they_are_from() {
        for (source, text) in
            [(IdSource::Property, "C12"), (IdSource::Name, "name:C12"), (IdSource::Requirement, "requirement:C12")]
        {
            assert_eq!(ExternalId::new(source, "C12").to_string(), text);
        }
        assert_eq!(ExternalId::new(IdSource::Property, "name:C12").to_string(), "property:name:C12");
    }

    proptest! {
        #[test]
        fn every_id_comes_back(place in 0..3_usize, id in "((property|name|requirement):){0,2}.{0,5}") {
            let id = ExternalId::new(IdSource::ALL[place], id);
            prop_assert_eq!(id.text_bytes(), id.to_string().len());
            prop_assert_eq!(ExternalId::from(id.to_string()), id.clone());
            prop_assert_eq!(ExternalId::from(String::from(id.clone())), id);
        }
    }
}
