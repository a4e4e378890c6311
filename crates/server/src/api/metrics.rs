//! Forwarding in numbers, as Prometheus reads them. Must not name a project, a key or an item, and needs no permission.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use domain::intent::{Flag, IntentState};
use http::header;
use store::ForwardTotals;

use crate::forward::Counted;
use crate::problem::Failure;
use crate::state::App;

/// The media type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, Failure> {
    let mut totals = app.store.forward_totals().await?;
    // A target that nothing has gone to yet is shown too, so that an alert on it can be tried.
    for target in app.board.kinds.keys() {
        totals.entry(target.clone()).or_default();
    }
    let text = written(&totals, &app.board.counted(), app.door().clock().unix_ms());
    Ok(([(header::CONTENT_TYPE, TEXT)], text).into_response())
}

/// The text format, one family after the other.
fn written(totals: &BTreeMap<String, ForwardTotals>, counted: &Counted, now_ms: u64) -> String {
    let mut text = Text(String::new());
    text.family("forward_intents", "gauge", "Intents by state.");
    for (target, of) in totals {
        for state in IntentState::ALL {
            text.line("forward_intents", &[("target", target), ("state", &state)], count(&of.states, &state));
        }
    }
    text.family("forward_waiting", "gauge", "Pushes that wait for their turn at a target.");
    for (target, of) in totals {
        text.line("forward_waiting", &[("target", target)], of.waiting);
    }
    text.family("forward_oldest_seconds", "gauge", "Age of the oldest push that waits or isn't settled; 0 if none is.");
    for (target, of) in totals {
        let age_ms = of.oldest_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
        text.line("forward_oldest_seconds", &[("target", target)], age_ms / 1000);
    }
    text.family("forward_flags", "gauge", "Intents by flag.");
    for (target, of) in totals {
        for flag in Flag::ALL {
            text.line("forward_flags", &[("target", target), ("flag", &flag)], count(&of.flags, &flag));
        }
    }
    text.family("forward_steps_total", "counter", "Steps of intents into a state, by this process.");
    for ((target, state), steps) in &counted.steps {
        text.line("forward_steps_total", &[("target", target), ("state", state)], *steps);
    }
    text.family("forward_put_off_total", "counter", "Tries that came to no end, by this process.");
    for target in totals.keys() {
        let tries = counted.put_off.get(target).copied().unwrap_or_default();
        text.line("forward_put_off_total", &[("target", target)], tries);
    }
    text.0
}

fn count<K: Ord>(of: &BTreeMap<K, u64>, key: &K) -> u64 {
    of.get(key).copied().unwrap_or_default()
}

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP tallyonce_{name} {help}\n# TYPE tallyonce_{name} {kind}");
    }

    /// Names of targets, states and flags have no character that would have to be escaped.
    fn line(&mut self, name: &str, labels: &[(&str, &dyn Display)], value: u64) {
        let labels: Vec<String> = labels.iter().map(|(label, of)| format!("{label}=\"{of}\"")).collect();
        let _ = writeln!(self.0, "tallyonce_{name}{{{}}} {value}", labels.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_said_and_ages_are_seconds() {
        let of = ForwardTotals {
            states: BTreeMap::from([(IntentState::Acked, 4)]),
            flags: BTreeMap::from([(Flag::Vanished, 1)]),
            waiting: 2,
            oldest_ms: Some(40_000),
        };
        let counted = Counted {
            steps: BTreeMap::from([(("rail".to_owned(), IntentState::Sending), 5)]),
            put_off: BTreeMap::from([("rail".to_owned(), 3)]),
        };
        let text = written(&BTreeMap::from([("rail".to_owned(), of)]), &counted, 100_999);
        for line in [
            "# TYPE tallyonce_forward_intents gauge",
            "tallyonce_forward_intents{target=\"rail\",state=\"acked\"} 4",
            "tallyonce_forward_intents{target=\"rail\",state=\"parked\"} 0",
            "tallyonce_forward_waiting{target=\"rail\"} 2",
            "tallyonce_forward_oldest_seconds{target=\"rail\"} 60",
            "tallyonce_forward_flags{target=\"rail\",flag=\"vanished\"} 1",
            "# TYPE tallyonce_forward_steps_total counter",
            "tallyonce_forward_steps_total{target=\"rail\",state=\"sending\"} 5",
            "tallyonce_forward_put_off_total{target=\"rail\"} 3",
        ] {
            assert!(text.lines().any(|at| at == line), "{line} is not in\n{text}");
        }
    }
}
