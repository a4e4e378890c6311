//! The keys of `[target.NAME]` that only one kind of product has. Each is read once; what nobody read is an error, so that a
//! typing error never turns into a default. Must not know files or formats.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use thiserror::Error;

/// A key that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OptionError {
    /// It is needed, and not there.
    #[error("{key} is missing: {why}")]
    Missing {
        /// The key.
        key: String,
        /// What it is for.
        why: &'static str,
    },
    /// Another type, or a value that means nothing.
    #[error("{key} can't be used: {why}")]
    Wrong {
        /// The key.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// Nobody knows it.
    #[error("unknown key {key}; this kind of target takes {known}")]
    Unknown {
        /// The key.
        key: String,
        /// Those that are known.
        known: String,
    },
}

/// Keys of one target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// What stands before each key: the table that they are in, and a dot.
    prefix: String,
    values: BTreeMap<String, Value>,
    asked: BTreeSet<String>,
}

impl Options {
    /// From what the configuration holds beyond the keys that all targets have.
    pub fn new(values: BTreeMap<String, Value>) -> Self {
        Self { prefix: String::new(), values, asked: BTreeSet::new() }
    }

    /// A value of any form.
    pub fn value(&mut self, key: &str) -> Option<Value> {
        self.asked.insert(key.to_owned());
        self.values.remove(key)
    }

    /// The same, left where it is.
    pub fn peek(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// The keys of a table within. To be finished by itself.
    ///
    /// # Errors
    /// Something else stands there.
    pub fn section(&mut self, key: &str) -> Result<Option<Options>, OptionError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(members)) => {
                let values = members.into_iter().collect();
                Ok(Some(Self { prefix: format!("{}.", self.full(key)), values, asked: BTreeSet::new() }))
            }
            Some(_) => Err(self.wrong(key, "a table is expected")),
        }
    }

    /// A key with the table that it is in, as errors name it.
    pub fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// The error that a key's value can't be used.
    pub fn wrong(&self, key: &str, why: impl Into<String>) -> OptionError {
        OptionError::Wrong { key: self.full(key), why: why.into() }
    }

    /// A text; numbers are taken as written, as ids are often such.
    ///
    /// # Errors
    /// Neither text nor number, or empty.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, OptionError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong(key, "a text is expected")),
        }
    }

    /// A text that has to be there.
    ///
    /// # Errors
    /// Not there, or as [`Self::text`].
    pub fn need(&mut self, key: &str, why: &'static str) -> Result<String, OptionError> {
        self.text(key)?.ok_or_else(|| OptionError::Missing { key: self.full(key), why })
    }

    /// A whole number from 0.
    ///
    /// # Errors
    /// Something else.
    pub fn number(&mut self, key: &str) -> Result<Option<u64>, OptionError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| self.wrong(key, "a whole number from 0 is expected")),
        }
    }

    /// Yes or no.
    ///
    /// # Errors
    /// Something else.
    pub fn flag(&mut self, key: &str) -> Result<Option<bool>, OptionError> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => value.as_bool().map(Some).ok_or_else(|| self.wrong(key, "true or false is expected")),
        }
    }

    /// Texts by name, such as a status map.
    ///
    /// # Errors
    /// Something else.
    pub fn table(&mut self, key: &str) -> Result<BTreeMap<String, String>, OptionError> {
        let Some(value) = self.value(key) else { return Ok(BTreeMap::new()) };
        let Value::Object(members) = value else { return Err(self.wrong(key, "a table is expected")) };
        members
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name, text)),
                Value::Number(number) => Ok((name, number.to_string())),
                _ => Err(self.wrong(&format!("{key}.{name}"), "a text is expected")),
            })
            .collect()
    }

    /// To be called once all are read.
    ///
    /// # Errors
    /// A key is left that nobody asked for.
    pub fn finish(self) -> Result<(), OptionError> {
        match self.values.into_keys().next() {
            None => Ok(()),
            Some(key) => {
                let known: Vec<String> = self.asked.into_iter().collect();
                Err(OptionError::Unknown { key: format!("{}{key}", self.prefix), known: known.join(", ") })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(json: Value) -> Options {
        Options::new(serde_json::from_value(json).unwrap())
    }

    #[test]
    fn what_nobody_asks_for_is_an_error_that_names_what_there_is() {
        let mut options = options(serde_json::json!({"suite": 3, "siute": 4}));
        assert_eq!(options.text("suite").unwrap().as_deref(), Some("3"));
        let error = options.finish().unwrap_err().to_string();
        assert_eq!(error, "unknown key siute; this kind of target takes suite");
    }

    #[test]
    fn keys_of_a_table_within_are_named_with_it() {
        let mut options = options(serde_json::json!({"write": {"path": 1, "paht": 2}, "read": 3}));
        let mut write = options.section("write").unwrap().unwrap();
        assert_eq!(write.text("path").unwrap().as_deref(), Some("1"));
        let error = write.finish().unwrap_err().to_string();
        assert_eq!(error, "unknown key write.paht; this kind of target takes path");
        assert_eq!(options.section("read").unwrap_err().to_string(), "read can't be used: a table is expected");
        assert_eq!(options.section("delete").unwrap(), None);
    }

    #[test]
    fn values_of_another_type_are_errors() {
        let json = serde_json::json!({"a": true, "b": "x", "c": -1, "d": 1, "e": {"f": []}, "g": " "});
        let mut options = options(json);
        assert!(options.text("a").is_err());
        assert!(options.flag("b").is_err());
        assert!(options.number("c").is_err());
        assert!(options.table("d").is_err());
        assert_eq!(options.table("e").unwrap_err().to_string(), "e.f can't be used: a text is expected");
        assert!(options.text("g").is_err());
        assert!(options.need("h", "where it is").unwrap_err().to_string().contains("h is missing: where it is"));
    }
}
