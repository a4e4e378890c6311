//! Forwarding, described: routes and shapes. Must follow `api/forwards.rs` and the types of `domain::listing`.

use domain::intent::{Flag, IntentState};
use serde_json::{Value, json};

use super::Operation;
use super::operations::reading;
use super::schemas::{Schemas, list, nullable, object, schema, text, truth, whole, words};

/// The routes, in the order of the router: that of a push, and the list.
pub(super) fn operations() -> [Operation; 2] {
    [
        reading(
            "/api/v1/projects/{project}/pushes/{push}/forwards",
            "pushForwards",
            "How far a push is at every target that the server hands it on to; waits, if asked, until nothing more happens by itself.",
            &["project", "push", "prefer"],
            schema("PushForwards"),
        ),
        reading(
            "/api/v1/projects/{project}/forwards",
            "forwards",
            "What is in doubt at targets, then what waits to be forwarded, then what else is open, then what is settled; each oldest first.",
            &["project", "target", "state", "cycle-optional", "forwards-limit"],
            schema("ForwardsReport"),
        ),
    ]
}

/// `GET /metrics`: no JSON.
pub(super) fn metrics() -> Operation {
    let answer = json!({ "type": "string", "contentMediaType": "text/plain" });
    Operation {
        problems: &["store-unavailable"],
        ..reading("/metrics", "metrics", "Forwarding in numbers, as Prometheus reads them.", &[], answer)
    }
}

/// The words of states.
pub(super) fn state() -> Value {
    words(&IntentState::ALL.map(IntentState::word))
}

fn flag() -> Value {
    words(&Flag::ALL.map(Flag::word))
}

fn numbers() -> Value {
    json!({ "type": "object", "additionalProperties": whole() })
}

/// Shapes by name.
pub(super) fn schemas() -> Schemas {
    let forward = [
        ("target", text()),
        ("kind?", text()),
        ("revision", whole()),
        ("state", schema("IntentState")),
        ("cases", whole()),
        ("states", numbers()),
        ("flags", list(schema("Flag"))),
        ("refused", list(schema("RefusedItem"))),
        ("cycle_there", nullable(text())),
        ("tries", whole()),
        ("due_ms?", whole()),
        ("cause?", text()),
    ];
    let waiting = object(&[("revision", whole()), ("tries", whole()), ("due_ms", whole())]);
    let intent = [
        ("id?", text()),
        ("target", text()),
        ("project", text()),
        ("cycle", text()),
        ("round", text()),
        ("key", text()),
        ("number", whole()),
        ("cases", whole()),
        ("state", schema("IntentState")),
        ("sends", whole()),
        ("planned_ms", whole()),
        ("changed_ms", whole()),
        ("seen_ms", nullable(whole())),
        ("cycle_there", nullable(text())),
        ("flags", list(schema("Flag"))),
        ("cause", nullable(text())),
        ("refused", list(schema("RefusedItem"))),
        ("waiting?", waiting),
    ];
    let of_push =
        [("push", text()), ("key", text()), ("settled", truth()), ("forwards", list(schema("ForwardReport")))];
    let listed =
        [("states", numbers()), ("flags", numbers()), ("forwards", list(schema("IntentReport"))), ("more?", truth())];
    vec![
        ("IntentState", state()),
        ("Flag", flag()),
        ("RefusedItem", object(&[("item", text()), ("case?", text()), ("why", text()), ("again?", truth())])),
        ("ForwardReport", object(&forward)),
        ("PushForwards", object(&of_push)),
        ("IntentReport", object(&intent)),
        ("ForwardsReport", object(&listed)),
    ]
}
