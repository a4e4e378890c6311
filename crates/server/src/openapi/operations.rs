//! Routes of the API, described. Must stay in the order of `router.rs`.

use domain::wire::PUSH_MEDIA_TYPE;
use serde_json::{Value, json};

use super::schemas::{list, schema};
use super::{Operation, forwards, staged};

const READ: &[&str] = &["parameter-malformed", "unknown-project", "not-found", "store-unavailable"];
const RECEIPT_HEADERS: &[&str] = &[
    "Location",
    "ETag",
    "Idempotent-Replayed",
    "Push-Difference",
    "Push-Current-Revision",
    "Push-Current-Counts",
    "Push-Warnings",
    "Link",
];

/// What says which push it is, who delivers it and how.
pub(super) const PLACE_OF_A_PUSH: &[&str] = &[
    "project",
    "key-header",
    "cycle",
    "run",
    "round-label",
    "round-id",
    "job",
    "shard",
    "variant",
    "attempt",
    "attempt-scope",
    "on-difference",
    "outside-ci",
    "expect",
    "commit",
    "workflow",
    "run-counter",
    "run-url",
    "push-attempt",
    "push-executor",
    "push-incarnation",
    "content-digest",
    "content-encoding",
];

/// As [`PLACE_OF_A_PUSH`], and how to read a report.
const ONE_SHOT: &[&str] = &[
    "project",
    "key-header",
    "cycle",
    "run",
    "round-label",
    "round-id",
    "job",
    "shard",
    "variant",
    "attempt",
    "attempt-scope",
    "on-difference",
    "outside-ci",
    "expect",
    "commit",
    "workflow",
    "run-counter",
    "run-url",
    "partial",
    "push-attempt",
    "push-executor",
    "push-incarnation",
    "content-digest",
    "content-encoding",
];

/// Every operation, in the order of the router.
pub(super) fn all() -> Vec<Operation> {
    let mut all = vec![record()];
    all.extend(staged::operations());
    all.extend([attach(), promote()]);
    all.extend(readings());
    all.extend(rounds());
    all.extend(items());
    all.extend(forwards::operations());
    all.extend(health());
    all
}

fn record() -> Operation {
    Operation {
        method: "post",
        path: "/api/v1/projects/{project}/pushes",
        id: "recordPush",
        summary: "Record a whole push: JSON, a raw report, or several files. Repeat it with the same key until it is \
                  answered; it is recorded once.",
        parameters: ONE_SHOT,
        body: Some(push_body()),
        answer: (201, schema("Receipt")),
        also: None,
        headers: RECEIPT_HEADERS,
        problems: &[
            "foreign-origin",
            "key-missing",
            "key-malformed",
            "run-missing",
            "parameter-malformed",
            "report-unreadable",
            "body-incomplete",
            "push-in-progress",
            "stale-attempt",
            "superseded",
            "tombstoned",
            "too-large",
            "unsupported-media",
            "digest-mismatch",
            "key-reused",
            "key-collision",
            "shard-plan-changed",
            "differs",
            "store-unavailable",
            "commit-unknown",
        ],
    }
}

fn attach() -> Operation {
    Operation {
        method: "get",
        path: "/api/v1/projects/{project}/pushes",
        id: "attach",
        summary: "What became of a key and what is staged under it; waits with Prefer: wait=N until it is recorded, or the \
                  epoch has ended or is idle. Learning of a receipt here is not recording.",
        parameters: &["project", "key", "prefer"],
        body: None,
        answer: (200, schema("Attached")),
        also: None,
        headers: &["ETag", "Push-Epoch"],
        problems: &["parameter-malformed", "unknown-push", "store-unavailable"],
    }
}

fn promote() -> Operation {
    Operation {
        method: "post",
        path: "/api/v1/projects/{project}/pushes/{push}/promote",
        id: "promote",
        summary: "A revision's verdicts count from now on. May be repeated with the same key.",
        parameters: &["project", "push", "key-header", "revision", "exact", "if-match"],
        body: None,
        answer: (201, schema("Receipt")),
        also: None,
        headers: RECEIPT_HEADERS,
        problems: &[
            "foreign-origin",
            "key-missing",
            "key-malformed",
            "parameter-malformed",
            "not-found",
            "receipt-mismatch",
            "key-reused",
            "store-unavailable",
            "commit-unknown",
        ],
    }
}

pub(super) fn reading(
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    parameters: &'static [&'static str],
    answer: Value,
) -> Operation {
    let answer = (200, answer);
    Operation {
        method: "get",
        path,
        id,
        summary,
        parameters,
        body: None,
        answer,
        also: None,
        headers: &[],
        problems: READ,
    }
}

fn readings() -> Vec<Operation> {
    let receipt = reading(
        "/api/v1/projects/{project}/pushes/{push}/receipt",
        "receipt",
        "The newest receipt of a push, or that of one revision, byte for byte.",
        &["project", "push", "revision"],
        schema("Receipt"),
    );
    vec![
        reading(
            "/api/v1/projects/{project}/pushes/{push}",
            "push",
            "A push with its revisions, every delivery, and how far it is at the targets that the server hands it on to.",
            &["project", "push"],
            schema("PushReport"),
        ),
        Operation { headers: &["ETag"], ..receipt },
        reading(
            "/api/v1/projects/{project}/pushes/{push}/differences/{n}",
            "difference",
            "How a revision differs from what counted before it, item by item.",
            &["project", "push", "n"],
            schema("DifferenceReport"),
        ),
        reading("/api/v1/projects", "projects", "Projects, by name.", &[], list(json!({ "type": "string" }))),
        reading(
            "/api/v1/projects/{project}/cycles",
            "cycles",
            "Cycles of a project, by name.",
            &["project"],
            list(schema("CycleSummary")),
        ),
        reading(
            "/api/v1/projects/{project}/rounds",
            "rounds",
            "A cycle with its headline and the rounds asked for.",
            &["project", "cycle", "round"],
            schema("CycleReport"),
        ),
    ]
}

fn rounds() -> Vec<Operation> {
    let act = |path, id, summary| Operation {
        method: "post",
        path,
        id,
        summary,
        parameters: &["project", "round-segment", "cycle"],
        body: None,
        answer: (200, schema("CycleReport")),
        also: None,
        headers: &[],
        problems: &[
            "foreign-origin",
            "parameter-malformed",
            "unknown-project",
            "not-found",
            "store-unavailable",
            "commit-unknown",
        ],
    };
    vec![
        act(
            "/api/v1/projects/{project}/rounds/{round}/close",
            "closeRound",
            "The round is complete as it is. Refuses nothing: a later push is recorded and shown as late. May be repeated.",
        ),
        act(
            "/api/v1/projects/{project}/rounds/{round}/pin",
            "pinRound",
            "The round is authoritative, whatever comes. May be repeated.",
        ),
        act(
            "/api/v1/projects/{project}/rounds/{round}/unpin",
            "unpinRound",
            "The round is pinned no longer. May be repeated.",
        ),
    ]
}

fn items() -> Vec<Operation> {
    vec![
        reading(
            "/api/v1/projects/{project}/outcomes",
            "outcomes",
            "Items of the rounds asked for, each item and variant once.",
            &["project", "cycle", "round", "status", "flaky", "search", "sort", "cursor", "limit"],
            schema("ItemPage"),
        ),
        reading(
            "/api/v1/projects/{project}/items",
            "items",
            "Items of the cycle's headline, each item and variant once.",
            &["project", "cycle", "status", "flaky", "search", "sort", "cursor", "limit"],
            schema("ItemPage"),
        ),
        reading(
            "/api/v1/projects/{project}/items/{hash}/history",
            "itemHistory",
            "What an item did, oldest round first.",
            &["project", "hash", "cycle-optional"],
            list(schema("HistoryEntry")),
        ),
        reading(
            "/api/v1/projects/{project}/unseen",
            "unseen",
            "Items of earlier rounds that the headline doesn't hold: not seen since, and not counted.",
            &["project", "cycle"],
            list(schema("UnseenItem")),
        ),
    ]
}

fn health() -> Vec<Operation> {
    let open = |path, id, summary, answer, problems| Operation { problems, ..reading(path, id, summary, &[], answer) };
    let object = || json!({ "type": "object" });
    vec![
        open("/healthz", "alive", "The process answers.", object(), &[] as &[&str]),
        open(
            "/readyz",
            "ready",
            "The store can be read, and the server is not stopping.",
            object(),
            &["store-unavailable"],
        ),
        forwards::metrics(),
        open("/openapi.json", "openapi", "This document.", object(), &[]),
    ]
}

fn push_body() -> Value {
    let report =
        json!({ "schema": { "type": "string", "description": "A report file; its format is recognised by content." } });
    let files =
        json!({ "schema": { "type": "object", "additionalProperties": { "type": "string", "format": "binary" } } });
    json!({
        "required": true,
        "content": {
            PUSH_MEDIA_TYPE: { "schema": schema("PushBody") },
            "application/json": { "schema": schema("PushBody") },
            "application/xml": report,
            "application/octet-stream": report,
            "multipart/form-data": files,
        },
    })
}
