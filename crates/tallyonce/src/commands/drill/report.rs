//! The result of a drill: one JSON object for machines, one short table and one sentence for people.
//! Must not judge: the numbers come from the audit.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

/// Pushes of a drill, unless said otherwise.
pub(super) const PUSHES: u64 = 200;
/// Findings that are listed for people.
const FINDINGS_MAX: usize = 20;

/// What `drill --json` prints. The names are an interface.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Report {
    /// Pushes that were made, each under its own key.
    pub pushes: u64,
    /// Tries of clients to hand one over, as the link saw them.
    pub deliveries: u64,
    /// Pushes whose outcomes are all there, each once.
    pub recorded: u64,
    /// Deliveries that were answered from a receipt and not counted again, by the server's count.
    pub replayed: u64,
    /// What counts more than once.
    pub doubled: u64,
    /// What a client was told is recorded, and is not there.
    pub lost: u64,
    /// What counts otherwise than a client was told.
    pub suppressed: u64,
    /// Whatever else does not fit.
    pub unexplained: u64,
    /// What the link did, by class.
    pub faults: BTreeMap<&'static str, u64>,
    /// Contents of re-executed jobs that were recorded after the first.
    pub revised: u64,
    /// Outcomes of the recorded pushes.
    pub outcomes: u64,
    /// How often the server was killed.
    pub server_kills: u64,
    /// How often a client was killed.
    pub client_kills: u64,
    /// The seed.
    pub seed: u64,
    /// The server, unless it was the drill's own.
    pub to: Option<String>,
    /// The project of the pushes.
    pub project: String,
    /// Everything that is wrong, in words.
    pub findings: Vec<String>,
}

impl Report {
    /// True if every outcome is counted exactly once, and everything is explained.
    pub(super) fn is_clean(&self) -> bool {
        self.doubled + self.lost + self.suppressed + self.unexplained == 0
    }

    fn broken(&self) -> u64 {
        self.faults.values().sum()
    }

    /// The command that makes the same reports, faults and kills.
    fn repeat(&self) -> String {
        let pushes = if self.pushes == PUSHES { String::new() } else { format!(" --pushes {}", self.pushes) };
        let to = self.to.as_ref().map(|to| format!(" --to {to}")).unwrap_or_default();
        format!("tallyonce drill --seed {}{pushes}{to}", self.seed)
    }

    /// The table and the sentence.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let rows = [
            ("pushes", self.pushes, "made, each under its own key"),
            ("outcomes", self.outcomes, "recorded with them"),
            ("deliveries", self.deliveries, "tries of clients to hand a push over"),
            ("faults", self.broken(), "done to them by the link"),
            ("recorded", self.recorded, "pushes that are there with all outcomes, once"),
            ("replayed", self.replayed, "repeated deliveries that were recognised and not counted again"),
            ("revised", self.revised, "jobs that ran again with other outcomes, and were recorded as that"),
        ];
        lines(&mut text, &rows);
        text.push_str("\nfaults by class\n");
        for (class, count) in &self.faults {
            let _ = writeln!(text, "  {class:<22} {count:>7}");
        }
        text.push_str("\naudit\n");
        let rows = [
            ("doubled", self.doubled, "counted more than once"),
            ("lost", self.lost, "reported as recorded, and not there"),
            ("suppressed", self.suppressed, "reported as recorded, and other outcomes count"),
            ("unexplained", self.unexplained, "anything else that does not fit"),
        ];
        lines(&mut text, &rows);
        if !self.is_clean() {
            self.list_findings(&mut text);
        }
        let _ = writeln!(text, "\n{}", self.sentence());
        let _ = writeln!(text, "Seed {}. Again: {}", self.seed, self.repeat());
        text
    }

    fn list_findings(&self, text: &mut String) {
        text.push_str("\nfindings\n");
        for finding in self.findings.iter().take(FINDINGS_MAX) {
            let _ = writeln!(text, "  {}", finding.replace('\n', " | "));
        }
        if self.findings.len() > FINDINGS_MAX {
            let _ = writeln!(text, "  and {} more (--json lists them)", self.findings.len() - FINDINGS_MAX);
        }
    }

    fn sentence(&self) -> String {
        let Self { deliveries, pushes, .. } = self;
        let were = if *pushes == 1 { "push was" } else { "pushes were" };
        let server = match self.to {
            None => format!("the server was killed {}, ", times(self.server_kills)),
            Some(_) => String::new(),
        };
        let story = format!(
            "{pushes} {were} delivered {} through a link that broke {}; {server}clients were killed {}",
            times(*deliveries),
            times(self.broken()),
            times(self.client_kills),
        );
        if self.is_clean() {
            return format!("{story}: every outcome is counted exactly once.");
        }
        let kinds = [
            (self.doubled, "doubled"),
            (self.lost, "lost"),
            (self.suppressed, "suppressed"),
            (self.unexplained, "unexplained"),
        ];
        let bad: Vec<String> =
            kinds.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        format!("{story}: NOT every outcome is counted exactly once: {}.", bad.join(", "))
    }
}

fn lines(text: &mut String, rows: &[(&str, u64, &str)]) {
    for (name, count, words) in rows {
        let _ = writeln!(text, "  {name:<12} {count:>9}   {words}");
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            pushes: 200,
            deliveries: 611,
            recorded: 200,
            replayed: 213,
            doubled: 0,
            lost: 0,
            suppressed: 0,
            unexplained: 0,
            faults: [("502-after-write", 200), ("response-dropped", 211)].into(),
            revised: 40,
            outcomes: 4512,
            server_kills: 12,
            client_kills: 25,
            seed: 4711,
            to: None,
            project: "drill-4711".to_owned(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn a_clean_drill_for_people() {
        insta::assert_snapshot!("clean", report().table());
    }

    #[test]
    fn a_drill_with_findings_says_what_is_wrong() {
        let bad = Report {
            pushes: 1,
            doubled: 1,
            lost: 2,
            to: Some("http://tally.example.com".to_owned()),
            findings: vec!["doubled: k: a is listed 2 times".to_owned(), "lost: k: b is not there".to_owned()],
            ..report()
        };
        insta::assert_snapshot!("findings", bad.table());
        let many = Report { findings: vec!["lost: x".to_owned(); 25], ..bad };
        assert!(many.table().contains("and 5 more"));
    }

    #[test]
    fn json_has_the_agreed_names() {
        let value = serde_json::to_value(report()).unwrap();
        for name in ["pushes", "deliveries", "recorded", "replayed", "doubled", "lost", "suppressed", "unexplained"] {
            assert!(value[name].is_u64(), "{name}");
        }
        assert_eq!(value["faults"]["response-dropped"], 211);
    }
}
