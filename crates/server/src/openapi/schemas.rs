//! Shapes of bodies and answers, and one response per problem code, described. Must follow the types of `domain`.

use std::collections::BTreeMap;

use domain::ProblemCode;
use serde_json::{Map, Value, json};

use super::{forwards, staged};

/// A reference to a shape.
pub(super) fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// A list of something.
pub(super) fn list(of: Value) -> Value {
    Value::Object(Map::from_iter([("type".to_owned(), json!("array")), ("items".to_owned(), of)]))
}

/// Required fields, then optional ones, marked by `?`.
pub(super) fn object(fields: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).filter(|name| !name.ends_with('?')).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, schema)| (name.trim_end_matches('?').to_owned(), schema.clone())).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn all_of(base: &str, with: Value) -> Value {
    Value::Object(Map::from_iter([("allOf".to_owned(), Value::Array(vec![schema(base), with]))]))
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn truth() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn status() -> Value {
    words(&["passed", "failed", "errored", "skipped"])
}

pub(super) fn class() -> Value {
    words(&["none", "cosmetic", "semantic", "structural"])
}

fn result() -> Value {
    words(&["recorded", "revised", "kept", "promoted"])
}

fn variant() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "string" } })
}

pub(super) fn nullable(mut of: Value) -> Value {
    of["type"] = json!([of["type"], "null"]);
    of
}

/// All shapes by name.
pub(super) fn schemas() -> Map<String, Value> {
    let all = [outcomes(), receipts(), staged::schemas(), readings(), items(), forwards::schemas(), problems()];
    all.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// Shapes by name.
pub(super) type Schemas = Vec<(&'static str, Value)>;

fn outcomes() -> Schemas {
    let counts = ["total", "passed", "failed", "errored", "skipped", "flaky"].map(|name| (name, whole()));
    let summary = ["files", "outcomes", "passed", "failed", "errored", "skipped", "repeats", "damaged", "cut"];
    let attempt = [("status", status()), ("duration_us?", whole()), ("message?", text())];
    vec![
        ("Counts", object(&counts)),
        ("ReportSummary", object(&summary.map(|name| (name, whole())))),
        ("Item", object(&[("suite?", list(text())), ("class?", text()), ("name", text()), ("ordinal?", whole())])),
        ("Attempt", object(&attempt)),
        (
            "Outcome",
            object(&[
                ("item", schema("Item")),
                ("status", status()),
                ("duration_us?", whole()),
                ("message?", text()),
                ("attempts?", list(schema("Attempt"))),
                ("external_ids?", list(text())),
            ]),
        ),
        ("PushBody", {
            let mut body = object(&[
                ("tallyonce", json!({ "const": domain::wire::PushBody::VERSION })),
                ("files?", list(text())),
                ("report?", schema("ReportSummary")),
                ("incomplete?", truth()),
                ("outcomes", list(schema("Outcome"))),
            ]);
            body["additionalProperties"] = json!(false);
            body
        }),
    ]
}

fn receipts() -> Schemas {
    let hash = text();
    let item = [("hash", hash), ("item", schema("Item")), ("recorded?", status()), ("offered?", status())];
    let numbers = [("changed", whole()), ("added", whole()), ("not_offered", whole())];
    let summary = [&[("class", class())], numbers.as_slice()].concat();
    let difference = [summary.as_slice(), &[("items", list(schema("ItemDifference")))]].concat();
    vec![
        ("ItemDifference", object(&item)),
        ("DifferenceSummary", object(&summary)),
        ("Difference", object(&difference)),
        (
            "Receipt",
            object(&[
                ("receipt", json!({ "const": domain::Receipt::FORMAT })),
                ("result", result()),
                ("project", text()),
                ("cycle", text()),
                ("round", text()),
                ("job?", text()),
                ("shard?", text()),
                ("variant?", variant()),
                ("key", text()),
                ("push", text()),
                ("revision", whole()),
                ("recorded_at", text()),
                ("counts", schema("Counts")),
                ("report", schema("ReportSummary")),
                ("incomplete?", truth()),
                ("late?", truth()),
                ("content", text()),
                ("difference?", schema("Difference")),
            ]),
        ),
        (
            "Attached",
            object(&[
                ("key", text()),
                ("push", text()),
                ("state?", schema("PushState")),
                ("revision?", whole()),
                ("etag?", text()),
                ("receipt?", schema("Receipt")),
                ("staging?", schema("Staged")),
            ]),
        ),
        (
            "DifferenceReport",
            object(&[("key", text()), ("revision", whole()), ("items", list(schema("ItemDifference")))]),
        ),
    ]
}

fn readings() -> Schemas {
    let push = [
        ("key", text()),
        ("push", text()),
        ("state", schema("PushState")),
        ("job?", text()),
        ("shard?", text()),
        ("variant?", variant()),
        ("revision", whole()),
        ("deliveries", whole()),
        ("counts", schema("Counts")),
        ("late", truth()),
    ];
    let revision = [
        ("revision", whole()),
        ("result", result()),
        ("of?", whole()),
        ("ordinal?", whole()),
        ("recorded_at", text()),
        ("counts", schema("Counts")),
        ("content", text()),
        ("files", list(text())),
        ("etag", text()),
    ];
    let delivery = [
        ("at", text()),
        ("result", text()),
        ("revision?", whole()),
        ("ordinal?", whole()),
        ("executor?", text()),
        ("incarnation?", text()),
    ];
    let report = [
        ("project", text()),
        ("cycle", text()),
        ("round", text()),
        ("commit?", text()),
        ("revisions", list(schema("RevisionReport"))),
        ("log", list(schema("DeliveryReport"))),
        ("forwards?", list(schema("ForwardReport"))),
    ];
    vec![
        ("PushState", words(&["recorded", "revised", "kept", "contested"])),
        ("PushSummary", object(&push)),
        ("RevisionReport", object(&revision)),
        ("DeliveryReport", object(&delivery)),
        ("PushReport", all_of("PushSummary", object(&report))),
        ("CycleSummary", object(&[("cycle", text()), ("rounds", whole()), ("latest_recorded_at", text())])),
        ("RoundReport", round()),
        (
            "CycleReport",
            object(&[
                ("project", text()),
                ("cycle", text()),
                ("headline", schema("Counts")),
                ("rounds", list(schema("RoundReport"))),
                ("not_seen_since", whole()),
            ]),
        ),
    ]
}

fn round() -> Value {
    let shard =
        object(&[("job", nullable(text())), ("variant", variant()), ("seen", whole()), ("total", nullable(whole()))]);
    object(&[
        ("round", text()),
        ("run", text()),
        ("workflow", nullable(text())),
        ("run_counter?", whole()),
        ("run_url?", text()),
        ("commit?", text()),
        ("authoritative", truth()),
        ("complete", truth()),
        ("closed", truth()),
        ("pinned", truth()),
        ("missing", list(text())),
        ("counts", schema("Counts")),
        ("shards", list(shard)),
        ("pushes", list(schema("PushSummary"))),
        ("overlaps", whole()),
        ("repeats", whole()),
        ("recorded_at", text()),
    ])
}

fn items() -> Schemas {
    let item = [
        ("hash", text()),
        ("item", schema("Item")),
        ("variant", variant()),
        ("status", status()),
        ("flaky", truth()),
        ("duration_ms", json!({ "type": ["number", "null"] })),
        ("message?", text()),
        ("attempts", list(schema("Attempt"))),
        ("external_ids?", list(text())),
        ("round", text()),
        ("key", text()),
        ("pushes", whole()),
    ];
    let unseen = [("hash", text()), ("item", schema("Item")), ("variant", variant()), ("last_seen", text())];
    vec![
        ("ItemReport", object(&item)),
        ("ItemPage", object(&[("items", list(schema("ItemReport"))), ("next?", text()), ("total", whole())])),
        ("HistoryEntry", all_of("ItemReport", object(&[("cycle", text())]))),
        ("UnseenItem", object(&unseen)),
    ]
}

fn problems() -> Schemas {
    let codes: Vec<&str> = ProblemCode::ALL.iter().map(|code| code.word()).collect();
    let field = [("field", text()), ("recorded", text()), ("offered", text())];
    vec![
        ("FieldDifference", object(&field)),
        (
            "Problem",
            object(&[
                ("type", text()),
                ("title", text()),
                ("status", whole()),
                ("code", words(&codes)),
                ("retry", words(&["same-key", "begin", "never"])),
                ("written", words(&["no", "unknown"])),
                ("detail", text()),
                ("fields?", list(schema("FieldDifference"))),
                ("difference?", schema("DifferenceSummary")),
                ("missing?", list(schema("ChunkRange"))),
                ("recorded?", schema("StoredReceipt")),
                ("errors?", list(text())),
            ]),
        ),
    ]
}

/// One response per problem code.
pub(super) fn problem_responses() -> Map<String, Value> {
    let describe = |code: &ProblemCode| {
        let response = json!({
            "description": format!("{}: {}", code.word(), code.title()),
            "content": { crate::problem::PROBLEM_MEDIA_TYPE: { "schema": schema("Problem") } },
            "x-retry": code.retry(),
            "x-written": code.written(),
        });
        (code.word().to_owned(), response)
    };
    ProblemCode::ALL.iter().map(describe).collect()
}

/// Responses of an operation by status, for these codes. A status that several codes share lists them.
pub(super) fn responses_for<'a>(codes: impl Iterator<Item = &'a str>) -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
    for word in codes {
        if let Some(code) = ProblemCode::ALL.iter().find(|code| code.word() == word) {
            by_status.entry(code.status()).or_default().push(*code);
        }
    }
    let respond = |(status, codes): (u16, Vec<ProblemCode>)| {
        let response = match codes.as_slice() {
            [only] => json!({ "$ref": format!("#/components/responses/{}", only.word()) }),
            many => {
                let lines: Vec<String> = many.iter().map(|c| format!("{}: {}", c.word(), c.title())).collect();
                let content = json!({ crate::problem::PROBLEM_MEDIA_TYPE: { "schema": schema("Problem") } });
                json!({ "description": lines.join("; "), "content": content })
            }
        };
        (status.to_string(), response)
    };
    by_status.into_iter().map(respond).collect()
}
