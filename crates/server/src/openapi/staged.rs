//! Staged pushes, described: their routes and the shapes of their bodies. Must stay in the order of `router.rs`.

use domain::wire::{CANCELLED, ChunkBody, MANIFEST_MEDIA_TYPE, ManifestBody, PUSH_MEDIA_TYPE};
use serde_json::{Value, json};

use super::Operation;
use super::operations::PLACE_OF_A_PUSH;
use super::schemas::{Schemas, class, list, object, schema, text, truth, whole, words};

const OF_EPOCH: &[&str] = &["project", "push", "epoch"];

/// As those of a push in one request, with the epoch.
const COMMIT_HEADERS: &[&str] = &[
    "Location",
    "Push-Epoch",
    "ETag",
    "Idempotent-Replayed",
    "Push-Difference",
    "Push-Current-Revision",
    "Push-Current-Counts",
    "Push-Warnings",
    "Link",
];

/// The operations.
pub(super) fn operations() -> Vec<Operation> {
    vec![begin(), put(), commit(), cancel()]
}

fn begin() -> Operation {
    let either = json!({ "oneOf": [schema("StagingAnswer"), schema("Receipt")] });
    Operation {
        method: "post",
        path: "/api/v1/projects/{project}/staged-pushes",
        id: "beginPush",
        summary: "Begin or resume a staged push with its manifest. 201: a new epoch, or the receipt if the content is \
                  recorded already; 200: an epoch that an earlier begin opened.",
        parameters: PLACE_OF_A_PUSH,
        body: Some(body(MANIFEST_MEDIA_TYPE, "ManifestBody")),
        answer: (201, either),
        also: Some((200, schema("StagingAnswer"))),
        headers: &[
            "Location",
            "Push-Epoch",
            "Push-Limit",
            "ETag",
            "Idempotent-Replayed",
            "Push-Difference",
            "Push-Current-Revision",
            "Push-Current-Counts",
            "Push-Warnings",
            "Link",
        ],
        problems: &[
            "foreign-origin",
            "key-missing",
            "key-malformed",
            "run-missing",
            "parameter-malformed",
            "manifest-malformed",
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

fn put() -> Operation {
    Operation {
        method: "put",
        path: "/api/v1/projects/{project}/pushes/{push}/epochs/{epoch}/chunks/{n}",
        id: "putChunk",
        summary: "Stage one chunk; nobody sees it before the commit. In any order, several at once, as often as wanted.",
        parameters: &["project", "push", "epoch", "chunk", "chunk-digest", "content-encoding"],
        body: Some(body(PUSH_MEDIA_TYPE, "ChunkBody")),
        answer: (201, schema("ChunkAnswer")),
        also: None,
        headers: &["Push-Epoch", "Idempotent-Replayed"],
        problems: &[
            "foreign-origin",
            "parameter-malformed",
            "report-unreadable",
            "manifest-malformed",
            "unknown-push",
            "body-incomplete",
            "superseded",
            "staging-expired",
            "too-large",
            "unsupported-media",
            "digest-mismatch",
            "chunk-out-of-range",
            "store-unavailable",
            "commit-unknown",
        ],
    }
}

fn commit() -> Operation {
    Operation {
        method: "post",
        path: "/api/v1/projects/{project}/pushes/{push}/epochs/{epoch}/commit",
        id: "commitPush",
        summary: "Make an epoch visible, whole. The answer is that of a push in one request with the same outcomes.",
        parameters: OF_EPOCH,
        body: None,
        answer: (201, schema("Receipt")),
        also: None,
        headers: COMMIT_HEADERS,
        problems: &[
            "foreign-origin",
            "parameter-malformed",
            "manifest-malformed",
            "unknown-push",
            "incomplete",
            "superseded",
            "staging-expired",
            "tombstoned",
            "key-reused",
            "key-collision",
            "shard-plan-changed",
            "differs",
            "store-unavailable",
            "commit-unknown",
        ],
    }
}

fn cancel() -> Operation {
    Operation {
        method: "delete",
        path: "/api/v1/projects/{project}/pushes/{push}/epochs/{epoch}",
        id: "cancelPush",
        summary: "End an epoch: nothing of it is or becomes visible. May be repeated.",
        parameters: OF_EPOCH,
        body: None,
        answer: (200, schema("CancelAnswer")),
        also: None,
        headers: &["Push-Epoch"],
        problems: &[
            "foreign-origin",
            "parameter-malformed",
            "unknown-push",
            "committed",
            "store-unavailable",
            "commit-unknown",
        ],
    }
}

fn body(media: &str, name: &str) -> Value {
    json!({ "required": true, "content": { media: { "schema": schema(name) } } })
}

/// The shapes.
pub(super) fn schemas() -> Schemas {
    let closed = |mut shape: Value| {
        shape["additionalProperties"] = json!(false);
        shape
    };
    let range = json!({ "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 });
    let chunk = json!({ "type": "array", "prefixItems": [text(), whole()], "minItems": 2, "maxItems": 2 });
    let stored = [("revision", whole()), ("etag", text()), ("receipt", schema("Receipt"))];
    let manifest = [
        ("tallyonce", json!({ "const": ManifestBody::VERSION })),
        ("files?", list(text())),
        ("report?", schema("ReportSummary")),
        ("incomplete?", truth()),
        ("counts", schema("Counts")),
        ("content", text()),
        ("outcomes", text()),
        ("bits", whole()),
        ("chunks", list(chunk)),
        ("items?", text()),
    ];
    let answer = [
        ("push", text()),
        ("epoch", whole()),
        ("resumed", truth()),
        ("chunks", whole()),
        ("missing", list(schema("ChunkRange"))),
        ("difference?", class()),
        ("recorded?", schema("StoredReceipt")),
    ];
    let chunk_body = [("tallyonce", json!({ "const": ChunkBody::VERSION })), ("outcomes", list(schema("Outcome")))];
    let staged = [("epoch", whole()), ("chunks", whole()), ("present", whole()), ("idle_ms", whole())];
    vec![
        ("ManifestBody", closed(object(&manifest))),
        ("ChunkBody", closed(object(&chunk_body))),
        ("ChunkRange", range),
        ("StoredReceipt", object(&stored)),
        ("StagingAnswer", object(&answer)),
        ("ChunkAnswer", object(&[("chunk", whole()), ("outcomes", whole())])),
        ("CancelAnswer", object(&[("epoch", whole()), ("state", words(&[CANCELLED]))])),
        ("Staged", object(&staged)),
    ]
}
