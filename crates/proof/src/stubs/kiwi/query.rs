//! Field look-ups over flat rows: equality, `__in`, `__contains` and the like. Must not know which rows.

use serde_json::{Value, json};

use super::{Object, Reply, internal};

/// Those rows that match, with the fields that are shown; fields whose names begin with `+` are only looked up.
pub(super) fn select(rows: impl IntoIterator<Item = Object>, query: Option<&Value>) -> Reply {
    let empty = Object::new();
    let query = query.and_then(Value::as_object).unwrap_or(&empty);
    let mut found = Vec::new();
    for mut row in rows {
        let mut all = true;
        for (name, wanted) in query {
            all &= matches(&row, name, wanted)?;
        }
        if all {
            row.retain(|name, _| !name.starts_with('+'));
            found.push(Value::Object(row));
        }
    }
    Ok(json!(found))
}

fn matches(row: &Object, name: &str, wanted: &Value) -> Result<bool, (i64, String)> {
    let (field, how) = match name.rsplit_once("__") {
        Some((field, how)) if ["in", "contains", "icontains", "gt", "lt", "gte", "lte"].contains(&how) => (field, how),
        _ => (name, "exact"),
    };
    let field = if field == "pk" { "id" } else { field };
    let value = row.get(&format!("+{field}")).or_else(|| row.get(field));
    let value = value.ok_or_else(|| internal(&format!("Cannot resolve keyword '{field}' into field.")))?;
    // A list stands for a table behind: any of its rows will do.
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    Ok(values.iter().any(|value| fits(value, how, wanted)))
}

fn fits(value: &Value, how: &str, wanted: &Value) -> bool {
    let numbers = || Some((value.as_f64()?, wanted.as_f64()?));
    let texts = || Some((value.as_str()?, wanted.as_str()?));
    match how {
        "in" => wanted.as_array().is_some_and(|all| all.iter().any(|one| same(value, one))),
        "contains" => texts().is_some_and(|(value, wanted)| value.contains(wanted)),
        "icontains" => texts().is_some_and(|(value, wanted)| value.to_lowercase().contains(&wanted.to_lowercase())),
        "gt" => numbers().is_some_and(|(value, wanted)| value > wanted),
        "gte" => numbers().is_some_and(|(value, wanted)| value >= wanted),
        "lt" => numbers().is_some_and(|(value, wanted)| value < wanted),
        "lte" => numbers().is_some_and(|(value, wanted)| value <= wanted),
        _ => same(value, wanted),
    }
}

/// Numbers may be sent as text.
fn same(value: &Value, wanted: &Value) -> bool {
    value == wanted || value.as_u64().is_some_and(|value| wanted.as_str() == Some(&value.to_string()))
}
