//! Parameters of requests and headers of answers, described once and referred to by name. Must not know any route.

use domain::wire::names;
use serde_json::{Map, Value, json};

use super::forwards;
use super::schemas::list;

fn text() -> Value {
    json!({ "type": "string" })
}

fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn one_of(words: &[&str], default: &str) -> Value {
    json!({ "type": "string", "enum": words, "default": default })
}

fn truth() -> Value {
    json!({ "type": "boolean", "default": false })
}

/// Id, place, name, shape, whether it is required, and meaning.
type Parameter = (&'static str, &'static str, &'static str, Value, bool, &'static str);

/// Parameters by the name under which operations refer to them.
pub(super) fn parameters() -> Map<String, Value> {
    let of_push = place_parameters().into_iter().map(|(id, schema, required, what)| {
        let name = if id == "round-label" { names::ROUND } else { id };
        (id, "query", name, schema, required, what)
    });
    let all = segments().into_iter().chain(of_push).chain(request_headers()).chain(queries());
    all.map(|(id, place, name, schema, required, what)| {
        let parameter =
            json!({ "name": name, "in": place, "required": required, "schema": schema, "description": what });
        (id.to_owned(), parameter)
    })
    .collect()
}

fn hash() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{32}$" })
}

fn segments() -> Vec<Parameter> {
    let round = "A round's id, run, or unique beginning of either; percent-encoded.";
    vec![
        ("project", "path", "project", text(), true, "The tenant; created by its first push."),
        ("push", "path", "push", hash(), true, "The id of a push."),
        ("n", "path", "n", whole(), true, "The number of a revision, from 1."),
        ("epoch", "path", "epoch", whole(), true, "The epoch that the begin answered with."),
        ("chunk", "path", "n", whole(), true, "The number of a chunk, from 0."),
        ("hash", "path", "hash", hash(), true, "The hash of an item."),
        ("round-segment", "path", "round", text(), true, round),
    ]
}

fn request_headers() -> Vec<Parameter> {
    let key =
        "Names the write: 1 to 255 octets of A-Z a-z 0-9 . _ ~ : / @ + = , % -, as a structured-field string or bare.";
    let prefer =
        "wait=N: wait up to N (at most 30) seconds until it is recorded, or what is staged has ended or is idle.";
    let attempt = "The attempt number that the platform gives; orders deliveries.";
    let executor = "The platform's identity of this execution, percent-encoded.";
    let digest = "sha-256=:…: or sha-512=:…: of the body as it travels.";
    let encodings = one_of(&["identity", "gzip", "zstd"], "identity");
    let if_match = "The entity tag of the receipt that must still be the newest.";
    vec![
        ("key-header", "header", "Idempotency-Key", text(), true, key),
        ("prefer", "header", "Prefer", text(), false, prefer),
        ("push-attempt", "header", "Push-Attempt", whole(), false, attempt),
        ("push-executor", "header", "Push-Executor", text(), false, executor),
        ("push-incarnation", "header", "Push-Incarnation", hash(), false, "A random number per client process."),
        ("content-digest", "header", "Content-Digest", text(), false, digest),
        (
            "chunk-digest",
            "header",
            "Content-Digest",
            text(),
            true,
            "sha-256=:…: of the body, which the manifest names.",
        ),
        ("content-encoding", "header", "Content-Encoding", encodings, false, "How the body is compressed."),
        ("if-match", "header", "If-Match", text(), false, if_match),
    ]
}

fn queries() -> Vec<Parameter> {
    let round = "authoritative (default), latest, all, or a round's id, run or unique beginning.";
    let exact = "That content alone counts; items that it doesn't hold no longer do.";
    let status = json!({ "type": "string", "enum": ["passed", "failed", "errored", "skipped"] });
    let sort = one_of(&["name", "duration", "status"], "name");
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": domain::limits::PAGE_ITEMS_MAX, "default": 100 });
    let most = json!({ "type": "integer", "minimum": 1, "maximum": domain::limits::PAGE_ITEMS_MAX, "default": domain::limits::PAGE_ITEMS_MAX });
    vec![
        ("key", "query", "key", text(), true, "The key to look for."),
        ("revision", "query", "revision", whole(), false, "A revision, from 1."),
        ("exact", "query", "exact", truth(), false, exact),
        ("cycle-optional", "query", "cycle", text(), false, "Only this cycle."),
        ("round", "query", "round", text(), false, round),
        ("status", "query", "status", status, false, "Only items with this verdict."),
        ("flaky", "query", "flaky", truth(), false, "Only flaky items."),
        ("search", "query", "search", text(), false, "Only items whose name holds this text."),
        ("sort", "query", "sort", sort, false, "The order."),
        ("cursor", "query", "cursor", text(), false, "What the page before gave as next."),
        ("limit", "query", "limit", limit, false, "Items a page."),
        ("target", "query", "target", text(), false, "Only at this target."),
        ("state", "query", "state", forwards::state(), false, "Only in this state; what waits is planned."),
        ("forwards-limit", "query", "limit", most, false, "How many."),
    ]
}

fn place_parameters() -> Vec<(&'static str, Value, bool, &'static str)> {
    vec![
        (names::CYCLE, text(), true, "The cycle."),
        (names::RUN, text(), true, "The pipeline run, the same in all its jobs, shards and retries."),
        ("round-label", text(), false, "The label of a deliberate re-execution inside one run."),
        (names::ROUND_ID, text(), false, "The full round id; made from run and label if absent."),
        (names::JOB, text(), false, "The job, without its partition."),
        (names::SHARD, text(), false, "The shard: I or I/N, from 1."),
        (names::VARIANT, list(text()), false, "NAME=VALUE of the configuration; may be repeated."),
        (names::ATTEMPT, whole(), false, "As the header Push-Attempt."),
        (
            names::ATTEMPT_SCOPE,
            one_of(&["round", "key"], "round"),
            false,
            "What the attempt number may be compared with.",
        ),
        (
            names::ON_DIFFERENCE,
            one_of(&["auto", "revise", "keep", "fail"], "auto"),
            false,
            "What to do if other outcomes are recorded under the key.",
        ),
        (names::OUTSIDE_CI, truth(), false, "True if no CI platform was detected: auto then fails."),
        (names::EXPECT, whole(), false, "How many pushes this job makes over all shards and variants."),
        (names::COMMIT, text(), false, "The commit under test."),
        (names::WORKFLOW, text(), false, "The pipeline definition."),
        (names::RUN_COUNTER, whole(), false, "The platform's counter of runs; orders rounds."),
        (names::RUN_URL, text(), false, "Where people find the run."),
        (names::PARTIAL, truth(), false, "Record a damaged report as far as it is readable."),
    ]
}

/// Headers of answers by name.
pub(super) fn headers() -> Map<String, Value> {
    [
        ("Location", "The push; while it is staged, the epoch."),
        ("Push-Epoch", "The epoch of a staged push, its fencing token: an integer."),
        (
            "Push-Limit",
            "The bounds of a staged push: max-chunk=… (bytes), max-chunks=…, max-size=… (bytes), idle=… and staging-age=… \
             (seconds).",
        ),
        ("ETag", "The entity tag of the receipt: \"r<revision>-<digest>\"."),
        ("Idempotent-Replayed", "true: an earlier delivery made this receipt."),
        (
            "Push-Difference",
            "none, cosmetic, semantic or structural: how the offered content differs; absent on a first one.",
        ),
        ("Push-Current-Revision", "The newest revision of the push."),
        (
            "Push-Current-Counts",
            "The push's items as they count now: total=…, passed=…, failed=…, errored=…, skipped=…, flaky=….",
        ),
        ("Push-Warnings", "What the sender should hear, a structured-field list of strings."),
        ("Link", "rel=\"difference\": where a semantic or structural difference is, item by item."),
    ]
    .into_iter()
    .map(|(name, what)| (name.to_owned(), json!({ "description": what, "schema": text() })))
    .collect()
}
