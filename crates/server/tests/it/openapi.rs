//! The API description: complete in both directions, sound in its references, and under a snapshot.

use std::collections::BTreeSet;

use serde_json::Value;
use server::openapi::document;
use server::router::routes;

use crate::served::standard;

#[test]
fn routes_and_description_are_the_same() {
    let routed: BTreeSet<(String, String)> =
        routes().into_iter().map(|(method, path)| (method.to_owned(), path)).collect();
    let document = document();
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            described.insert((method.clone(), path.clone()));
        }
    }
    assert_eq!(routed, described);
}

#[test]
fn every_path_segment_is_a_parameter() {
    let document = document();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let names: BTreeSet<String> = operation["parameters"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| resolve(&document, p["$ref"].as_str().unwrap()))
                .filter(|p| p["in"] == "path")
                .map(|p| p["name"].as_str().unwrap().to_owned())
                .collect();
            let segments: BTreeSet<String> =
                path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')).map(str::to_owned).collect();
            assert_eq!(names, segments, "{path}");
        }
    }
}

fn resolve<'a>(document: &'a Value, reference: &str) -> &'a Value {
    let pointer = reference.strip_prefix('#').expect("a reference within the document");
    document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

fn references<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(map) => {
            into.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|v| references(v, into));
        }
        Value::Array(list) => list.iter().for_each(|v| references(v, into)),
        _ => {}
    }
}

#[test]
fn references_lead_somewhere_and_everything_shared_is_used() {
    let document = document();
    let mut used = BTreeSet::new();
    references(&document, &mut used);
    for reference in &used {
        resolve(&document, reference);
    }
    for kind in ["schemas", "parameters", "headers"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(used.contains(reference.as_str()), "{reference} is not used");
        }
    }
}

#[test]
fn problem_codes_in_it_exist() {
    for methods in document()["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            for code in operation["x-problem-codes"].as_array().unwrap() {
                let word = code.as_str().unwrap();
                assert!(domain::ProblemCode::ALL.iter().any(|c| c.word() == word), "{word}");
            }
        }
    }
}

#[test]
fn the_document_changes_on_purpose_only() {
    let mut document = document();
    document["info"]["version"] = "VERSION".into();
    insta::assert_json_snapshot!("openapi", document);
}

#[tokio::test]
async fn it_is_served() {
    let served = standard().await;
    assert_eq!(served.get("/openapi.json").await.json(), document());
}
