//! How the vendor's clients find the addresses of calls: they ask for them first.

use serde_json::{Value, json};

use crate::stubs::Answer;

/// Id, name of the resource and address of each call that the stub has, as the vendor's clients know them.
const CALLS: [(&str, &str, &str); 3] = [
    ("cadb3810-d47d-4a3c-a234-fe5f3be50138", "runs", "{project}/_apis/{area}/{resource}/{runId}"),
    (
        "4637d869-3a76-4468-8057-0bb02aa385cf",
        "results",
        "{project}/_apis/{area}/runs/{runId}/{resource}/{testCaseResultId}",
    ),
    (
        "3bcfd5c8-be62-488e-b1da-b8289ce9299c",
        "points",
        "{project}/_apis/{area}/plans/{planId}/suites/{suiteId}/{resource}/{pointIds}",
    ),
];

/// What is answered to whoever asks for addresses, with a token or without.
pub(super) fn answer(method: &str, path: &[&str]) -> Option<Answer> {
    let values: Vec<Value> = match (method, path) {
        ("OPTIONS", ["_apis" | "_apis/", ..]) => CALLS.iter().map(place).collect(),
        ("GET", ["_apis", resource]) if resource.eq_ignore_ascii_case("resourceAreas") => Vec::new(),
        _ => return None,
    };
    Some(Answer::json(200, &json!({ "count": values.len(), "value": values })))
}

fn place((id, resource, route): &(&str, &str, &str)) -> Value {
    json!({
        "id": id, "area": "test", "resourceName": resource, "routeTemplate": route, "resourceVersion": 6,
        "minVersion": "1.0", "maxVersion": "7.2", "releasedVersion": "7.1",
    })
}
