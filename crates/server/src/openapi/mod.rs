//! The API described for machines: one entry per route of `router.rs`, and a test that neither has one more. Written by
//! hand, as it is a promise to others and not a by-product. Must not describe what is not routed.

mod forwards;
mod operations;
mod parameters;
mod schemas;
mod staged;

use serde_json::{Map, Value, json};

/// One route described.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    /// Names of shared parameters (`components/parameters`).
    parameters: &'static [&'static str],
    /// The body, where there is one.
    body: Option<Value>,
    /// Status and schema of the good answer.
    answer: (u16, Value),
    /// Another good answer with the same headers.
    also: Option<(u16, Value)>,
    /// Names of shared headers of the good answer.
    headers: &'static [&'static str],
    /// Problem codes that this route ends in, besides those that every route can.
    problems: &'static [&'static str],
}

/// Codes in which every route below the API can end.
const EVERYWHERE: &[&str] = &["internal", "overloaded"];

/// The `OpenAPI` 3.1 document.
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations::all() {
        let path = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        path[operation.method] = describe(&operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tallyonce",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Retry every push. Count every outcome once.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas::schemas(),
            "parameters": parameters::parameters(),
            "headers": parameters::headers(),
            "responses": schemas::problem_responses(),
        },
    })
}

fn describe(operation: &Operation) -> Value {
    let Operation { method: _, path: _, id, summary, parameters, body, answer, also, headers, problems } = operation;
    let refer = |kind: &str, name: &str| json!({ "$ref": format!("#/components/{kind}/{name}") });
    let headers: Map<String, Value> = headers.iter().map(|name| ((*name).to_owned(), refer("headers", name))).collect();
    let mut responses = schemas::responses_for(problems.iter().chain(EVERYWHERE).copied());
    for (status, schema) in [Some(answer), also.as_ref()].into_iter().flatten() {
        let media = schema["contentMediaType"].as_str().unwrap_or("application/json");
        let content = json!({ media: { "schema": schema } });
        let good = json!({ "description": "Done.", "headers": headers, "content": content });
        responses.insert(status.to_string(), good);
    }
    let mut described = json!({
        "operationId": id,
        "summary": summary,
        "parameters": parameters.iter().map(|name| refer("parameters", name)).collect::<Vec<_>>(),
        "responses": responses,
        "x-problem-codes": problems.iter().chain(EVERYWHERE).collect::<Vec<_>>(),
    });
    if let Some(body) = body {
        described["requestBody"] = body.clone();
    }
    described
}
