//! What a client process said when it ended, from its exit code and the JSON objects that it printed.
//! Must not judge it: `audit` does.

use proof::spawn::Finished;
use serde_json::Value;

/// One word of one client about one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Telling {
    /// Of which attempt of the job, from 1.
    pub attempt: usize,
    /// What it said.
    pub said: Said,
}

/// What a client said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// Recorded, replayed or revised: exit 0.
    Confirmed {
        /// The state's word.
        state: String,
        /// How many items count of the push now, if it said so.
        total: Option<u64>,
        /// It said that other outcomes are, or were, recorded.
        difference: bool,
    },
    /// Not confirmed: exit 75.
    Open,
    /// Nothing: it was killed.
    Killed,
    /// Something that does not fit.
    Odd(String),
}

/// What `push` said.
pub(super) fn by_push(attempt: usize, finished: &Finished) -> Telling {
    if finished.was_killed() {
        return Telling { attempt, said: Said::Killed };
    }
    match objects(finished).as_slice() {
        [object] => Telling { attempt, said: said(object, finished) },
        other => Telling { attempt, said: odd(&format!("{} objects on standard output", other.len()), finished) },
    }
}

/// What `flush` said of each entry of one attempt's outbox.
pub(super) fn by_flush(attempt: usize, finished: &Finished) -> Vec<Telling> {
    let objects = objects(finished);
    if objects.is_empty() && finished.code != Some(0) {
        return vec![Telling { attempt, said: odd("no object on standard output", finished) }];
    }
    objects.iter().map(|object| Telling { attempt, said: said(object, finished) }).collect()
}

fn objects(finished: &Finished) -> Vec<Value> {
    finished.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn said(object: &Value, finished: &Finished) -> Said {
    let state = object["state"].as_str().unwrap_or_default();
    match (state, object["exit"].as_u64()) {
        ("recorded" | "replayed" | "revised", Some(0)) => Said::Confirmed {
            state: state.to_owned(),
            total: object["counts"]["total"].as_u64(),
            difference: !object["difference"].is_null(),
        },
        ("not_sent" | "possibly_written", Some(75)) => Said::Open,
        _ => odd(&format!("state {state:?}"), finished),
    }
}

fn odd(what: &str, finished: &Finished) -> Said {
    let end = match (finished.timed_out, finished.code, finished.signal) {
        (true, ..) => "did not end in time".to_owned(),
        (_, Some(code), _) => format!("exit {code}"),
        (_, None, signal) => format!("signal {}", signal.unwrap_or(0)),
    };
    let last = finished.stderr.lines().find(|line| line.starts_with("error")).unwrap_or_default();
    Said::Odd(format!("{what}, {end}: {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, stdout: &str) -> Finished {
        let (stdout, stderr) = (stdout.to_owned(), "note\nerror: why\n".to_owned());
        Finished { code: Some(code), signal: None, timed_out: false, stdout, stderr }
    }

    #[test]
    fn each_end_is_told_apart() {
        let recorded = r#"{"state":"recorded","exit":0,"counts":{"total":3},"difference":null}"#;
        let confirmed = Said::Confirmed { state: "recorded".into(), total: Some(3), difference: false };
        assert_eq!(by_push(1, &ended(0, recorded)).said, confirmed);
        assert_eq!(by_push(1, &ended(75, r#"{"state":"not_sent","exit":75}"#)).said, Said::Open);
        let killed = Finished { code: None, signal: Some(9), ..ended(0, "") };
        assert_eq!(by_push(1, &killed).said, Said::Killed);
        let Said::Odd(words) = by_push(1, &ended(101, "")).said else { panic!("a crash is odd") };
        assert!(words.contains("exit 101") && words.contains("error: why"), "{words}");
        let rejected = r#"{"state":"rejected","exit":4}"#;
        assert!(matches!(by_push(1, &ended(4, rejected)).said, Said::Odd(_)));
        // The word and the code contradict each other.
        assert!(matches!(by_push(1, &ended(0, r#"{"state":"recorded","exit":75}"#)).said, Said::Odd(_)));
    }

    #[test]
    fn a_flush_speaks_for_each_entry() {
        let lines = "{\"state\":\"replayed\",\"exit\":0}\n{\"state\":\"possibly_written\",\"exit\":75}\n";
        let told = by_flush(2, &ended(75, lines));
        assert_eq!(told.len(), 2);
        assert!(matches!(told[0].said, Said::Confirmed { .. }) && told[1].said == Said::Open);
        assert!(by_flush(1, &ended(0, "")).is_empty());
        assert!(matches!(by_flush(1, &ended(2, "")).as_slice(), [Telling { said: Said::Odd(_), .. }]));
    }
}
