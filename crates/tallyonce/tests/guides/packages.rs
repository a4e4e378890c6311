//! The packages as the guides use them: every input that a guide gives is one that the package has.
//! Must not know what an input does.

use serde_json::Value;

use crate::{commands, pages, root};

/// A file of a package.
fn load(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A package that a mapping uses: its file, where the file lists the inputs, and what is given.
fn used(value: &Value) -> Option<(String, &'static str, &Value)> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| text.contains("tallyonce"));
    if let Some(action) = text("uses") {
        let folder = if action.contains("/flush@") { "flush/action.yml" } else { "action.yml" };
        return Some((folder.to_owned(), "/inputs", value.get("with")?));
    }
    if text("component").is_some() {
        return Some(("packages/gitlab/templates/tallyonce.yml".to_owned(), "/spec/inputs", value.get("inputs")?));
    }
    if let Some(template) = text("template") {
        return Some((template.split('@').next()?.to_owned(), "/parameters", value.get("parameters")?));
    }
    value.as_object()?.iter().find_map(|(key, given)| {
        if key.contains("/packages/buildkite#") {
            return Some(("packages/buildkite/plugin.yml".to_owned(), "/configuration/properties", given));
        }
        // Others name folders so.
        let file = format!("packages/circleci/src/commands/{}.yml", key.strip_prefix("tallyonce/")?);
        root().join(&file).exists().then_some((file, "/parameters", given))
    })
}

/// The names that a file lists: keys of a mapping, or the field `name` of a list.
fn listed(file: &str, place: &str) -> Vec<String> {
    let documents = load(file);
    let list = documents[0].pointer(place).unwrap_or_else(|| panic!("{file} has no {place}"));
    match list {
        Value::Object(map) => map.keys().cloned().collect(),
        other => other.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect(),
    }
}

/// Checks all uses in a value; gives their files.
fn check(value: &Value, place: &str, seen: &mut Vec<String>) {
    if let Some((file, list, given)) = used(value) {
        let known = listed(&file, list);
        for name in given.as_object().unwrap().keys() {
            assert!(known.contains(name), "{place}: {file} has no input {name}, but {known:?}");
        }
        seen.push(file);
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| check(item, place, seen)),
        Value::Object(map) => map.values().for_each(|item| check(item, place, seen)),
        _ => {}
    }
}

#[test]
fn guides_give_packages_inputs_that_they_have() {
    let mut seen = Vec::new();
    for page in pages() {
        for block in &page.blocks {
            let place = format!("{}.md:{}", page.name, block.line);
            commands::documents(block).iter().flatten().for_each(|document| check(document, &place, &mut seen));
        }
    }
    seen.sort();
    seen.dedup();
    eprintln!("used by guides: {seen:?}");
    let expected = [
        "action.yml",
        "flush/action.yml",
        "packages/azure/tallyonce.yml",
        "packages/buildkite/plugin.yml",
        "packages/circleci/src/commands/push.yml",
        "packages/gitlab/templates/tallyonce.yml",
    ];
    assert_eq!(seen, expected, "packages that guides use");
}
