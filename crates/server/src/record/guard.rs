//! Bounds that hold whichever way a push came. Readers of reports keep them by cutting and saying so; a push that passes
//! them was made by somebody else, and cutting it here would change its content. Must not look anything up.

use domain::manifest::ManifestError;
use domain::{ExternalId, Manifest, Outcome, Outcomes, Problem, ProblemCode, Push, limits};
use store::Chunk;

/// What passes a bound, as far as it is listed.
#[derive(Default)]
struct Beyond(Vec<String>);

impl Beyond {
    fn check(&mut self, size: usize, limit: usize, what: impl FnOnce() -> String) {
        if size > limit && self.0.len() < limits::SAMPLES_MAX {
            self.0.push(format!("{}: {size}, at most {limit}", what()));
        }
    }

    fn outcomes(&mut self, outcomes: &Outcomes) {
        self.check(outcomes.len(), limits::OUTCOMES_MAX, || "outcomes".to_owned());
        outcomes.as_slice().iter().for_each(|outcome| self.outcome(outcome));
    }

    fn outcome(&mut self, outcome: &Outcome) {
        let message = outcome.message.as_ref().map_or(0, String::len);
        let longest = outcome.attempts.iter().filter_map(|a| a.message.as_ref().map(String::len)).max();
        let text = message.max(longest.unwrap_or(0));
        let id = outcome.external_ids.iter().map(ExternalId::text_bytes).max().unwrap_or(0);
        for (size, limit, what) in [
            (text, limits::TEXT_BYTES_MAX, "octets of a message of"),
            (outcome.attempts.len(), limits::ATTEMPTS_MAX, "attempts of"),
            (outcome.external_ids.len(), limits::EXTERNAL_IDS_MAX, "external ids of"),
            (id, limits::NAME_BYTES_MAX, "octets of an external id of"),
        ] {
            self.check(size, limit, || format!("{what} {}", outcome.item));
        }
    }

    fn files(&mut self, files: &[String]) {
        self.check(files.len(), limits::FILES_MAX, || "files".to_owned());
        for file in files {
            self.check(file.len(), limits::ITEM_PART_BYTES_MAX, || "octets of a file name".to_owned());
        }
    }

    fn nothing(self) -> Result<(), Box<Problem>> {
        if self.0.is_empty() {
            return Ok(());
        }
        let words = "The push passes bounds of what can be kept. Nothing was recorded. Cut texts and attempts to the \
                     bounds, or push in shards (--shard I/N).";
        let mut problem = Problem::new(ProblemCode::TooLarge, words);
        problem.errors = self.0;
        Err(Box::new(problem))
    }
}

/// Of a whole push.
pub(super) fn push(push: &Push) -> Result<(), Box<Problem>> {
    let mut beyond = Beyond::default();
    beyond.outcomes(&push.outcomes);
    beyond.files(&push.files);
    beyond.nothing()?;
    url(push.origin.run_url.as_deref())
}

/// Of a manifest, which must not contradict itself either.
pub(super) fn manifest(manifest: &Manifest) -> Result<(), Box<Problem>> {
    let mut beyond = Beyond::default();
    beyond.files(&manifest.files);
    beyond.nothing()?;
    url(manifest.origin.run_url.as_deref())?;
    manifest.check().map_err(|error| {
        let code = match error {
            ManifestError::Outcomes(_) => ProblemCode::TooLarge,
            _ => ProblemCode::ManifestMalformed,
        };
        let words = format!(
            "The manifest cannot be: {error}. Nothing was recorded and nothing is staged. Make it anew from the outcomes, \
             and begin again with the same key."
        );
        Box::new(Problem::new(code, words))
    })
}

/// Of a chunk.
pub(super) fn chunk(chunk: &Chunk) -> Result<(), Box<Problem>> {
    let mut beyond = Beyond::default();
    beyond.outcomes(&chunk.outcomes);
    beyond.nothing()
}

/// Pages link to the run: only an address that a browser may be sent to.
fn url(url: Option<&str>) -> Result<(), Box<Problem>> {
    let Some(url) = url else { return Ok(()) };
    let safe = (url.starts_with("https://") || url.starts_with("http://")) && !url.chars().any(char::is_control);
    if safe && url.len() <= limits::ITEM_PART_BYTES_MAX {
        return Ok(());
    }
    let words =
        "run-url is not an http(s) address of bounded length. Nothing was recorded; correct it or leave it out.";
    Err(Box::new(Problem::new(ProblemCode::ParameterMalformed, words)))
}
