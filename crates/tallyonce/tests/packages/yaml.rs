//! YAML of the packages as JSON values, and short ways into them. Must not know what the files mean.

use serde_json::Value;

use crate::file_of;

/// The one document of a file.
pub(crate) fn load(name: &str) -> Value {
    let mut all = documents(name);
    assert_eq!(all.len(), 1, "{name} has {} documents", all.len());
    all.remove(0)
}

/// All documents of a file.
pub(crate) fn documents(name: &str) -> Vec<Value> {
    parse(name, &file_of(name))
}

pub(crate) fn parse(name: &str, text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{name} is no YAML: {error}"))
}

/// The keys of a mapping.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no mapping: {value}")).keys().map(String::as_str).collect()
}

/// A value as the platforms turn it into a variable.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Every string in a value, with the way to it.
pub(crate) fn strings(value: &Value) -> Vec<(String, String)> {
    fn walk(value: &Value, at: &str, found: &mut Vec<(String, String)>) {
        match value {
            Value::String(text) => found.push((at.to_owned(), text.clone())),
            Value::Array(items) => items.iter().enumerate().for_each(|(n, v)| walk(v, &format!("{at}/{n}"), found)),
            Value::Object(map) => map.iter().for_each(|(key, v)| walk(v, &format!("{at}/{key}"), found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

/// The names in `prefix.NAME` wherever they stand between these marks.
pub(crate) fn references(text: &str, open: &str, close: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for piece in text.split(open).skip(1) {
        let inside = piece.split(close).next().unwrap_or_default();
        for after in inside.split(prefix).skip(1) {
            found.push(after.chars().take_while(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect());
        }
    }
    found
}
