//! Queries as Jira and Zephyr Scale take them, as far as stubs need: clauses of equality joined by `AND`.
//! Must not know which fields there are.

/// Field and value of each clause, in order; `None` if it is not such a query.
pub(super) fn clauses(query: &str) -> Option<Vec<(String, String)>> {
    let end = query.to_ascii_uppercase().find(" ORDER BY ").unwrap_or(query.len());
    query[..end].split(" AND ").map(clause).collect()
}

fn clause(text: &str) -> Option<(String, String)> {
    let (field, value) = text.split_once('=')?;
    let (field, value) = (field.trim(), value.trim());
    let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let value = bare.map_or_else(|| value.to_owned(), |value| value.replace("\\\"", "\"").replace("\\\\", "\\"));
    (!field.is_empty() && field.chars().all(char::is_alphanumeric)).then(|| (field.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_told_apart() {
        let pair = |field: &str, value: &str| (field.to_owned(), value.to_owned());
        let read = clauses("project = \"P\" AND labels = x ORDER BY created ASC");
        assert_eq!(read, Some(vec![pair("project", "P"), pair("labels", "x")]));
        assert_eq!(clauses("project in (P)"), None);
    }
}
