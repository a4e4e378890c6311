//! Findings as flat lines, one a row of evidence, for CSV. Must not print.

use serde::Serialize;

use super::seen::{marker_text, word};
use super::{Audit, Batch, Finding, Seen, utc};

/// One row of evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What was found.
    pub finding: &'static str,
    /// Rows of one finding share this number; it begins at 1.
    pub number: usize,
    /// The case; empty for cycles.
    pub case: String,
    /// The cycle; empty for what is missing.
    pub cycle: String,
    /// The row; empty for cycles and for what is missing.
    pub row: String,
    /// When it was recorded (sent, for what is missing), RFC 3339 in UTC.
    pub at: String,
    /// Its verdict.
    pub status: String,
    /// Its marker.
    pub marker: String,
    /// All that people see of it beside its verdict.
    pub text: String,
    /// What makes it a finding, in words.
    pub evidence: String,
}

impl Audit {
    /// All findings as lines.
    pub fn lines(&self) -> Vec<Line> {
        let lines = self.findings.iter().enumerate().flat_map(|(at, finding)| finding.lines(at + 1));
        lines.map(|line| self.with_name(line)).collect()
    }

    /// A line that is about a cycle as a whole says how people know it.
    fn with_name(&self, line: Line) -> Line {
        let seen = self.cycles.iter().find(|seen| line.row.is_empty() && seen.cycle.as_str() == line.cycle);
        match seen.filter(|_| line.text.is_empty()) {
            Some(seen) => Line { at: seen.at(), text: seen.name.clone(), ..line },
            None => line,
        }
    }
}

impl Finding {
    /// What makes it a finding, in words for people.
    pub fn evidence(&self) -> String {
        match self {
            Finding::Doubled { rows, .. } => format!("the same write stands there {} times", rows.len()),
            Finding::LikelyDoubled { rows, apart_ms, batch, .. } => {
                let within = format!("{} equal rows within {} s", rows.len(), apart_ms.div_ceil(1000));
                match batch {
                    Some(Batch { cases, .. }) => format!("{within}, as part of {cases} cases repeated in one order"),
                    None => format!("{within}; a re-execution with equal times and texts would look the same"),
                }
            }
            Finding::ReExecuted { rows, .. } => format!("{} outcomes that differ", rows.len()),
            Finding::DuplicateCycles { shared, cycles } => {
                let what = match shared {
                    super::Shared::Tag => "the tag of the round",
                    super::Shared::Name => "one name",
                };
                format!("{} cycles share {what}", cycles.len())
            }
            Finding::LikelyDuplicateCycles { cycles, apart_ms, cases_shared, cases_equal } => format!(
                "{} cycles of one name and without a tag, made within {} s; {cases_equal} of {cases_shared} cases that \
                 more than one of them has say the same in each",
                cycles.len(),
                apart_ms.div_ceil(1000)
            ),
            Finding::CountDiffers { confirmed, uncertain, counted, total, .. } => {
                count_words(*confirmed, *uncertain, *counted, *total)
            }
            Finding::Missing { mangled_there: true, .. } => {
                "confirmed, and not found; a row of the case has a changed marker".to_owned()
            }
            Finding::Missing { .. } => "confirmed, and not there".to_owned(),
            Finding::Orphan { perhaps_anothers: true, .. } => {
                "no intent of this ledger knows this marker; another job's ledger may".to_owned()
            }
            Finding::Orphan { .. } => "no intent of the ledger knows this marker".to_owned(),
            Finding::MarkerMangled { .. } => "the marker was changed by the product or a person".to_owned(),
        }
    }

    fn lines(&self, number: usize) -> Vec<Line> {
        let base = Line { finding: self.word(), number, evidence: self.evidence(), ..Line::default() };
        match self {
            Finding::Doubled { rows, .. } | Finding::LikelyDoubled { rows, .. } | Finding::ReExecuted { rows, .. } => {
                rows.iter().map(|row| base.with(row)).collect()
            }
            Finding::Orphan { row, .. } | Finding::MarkerMangled { row } => vec![base.with(row)],
            Finding::CountDiffers { cycle, .. } => vec![Line { cycle: cycle.to_string(), ..base }],
            Finding::DuplicateCycles { cycles, .. } | Finding::LikelyDuplicateCycles { cycles, .. } => {
                let line = |cycle: &super::CycleSeen| Line {
                    cycle: cycle.cycle.to_string(),
                    at: cycle.at(),
                    text: cycle.name.clone(),
                    ..base.clone()
                };
                cycles.iter().map(line).collect()
            }
            Finding::Missing { case, title, marker, sent_ms, .. } => vec![Line {
                case: case.to_string(),
                at: sent_ms.map(utc).unwrap_or_default(),
                marker: marker.to_string(),
                text: title.clone(),
                ..base
            }],
        }
    }
}

/// What is wrong with a count, the worst first.
fn count_words(confirmed: u64, uncertain: u64, counted: Option<u64>, total: u64) -> String {
    let known = match uncertain {
        0 => format!("{confirmed} are confirmed"),
        _ => format!("{confirmed} are confirmed, and {uncertain} more may be there"),
    };
    match counted {
        None => format!("too many or too few: a write of ours is there in part, or with something else in it; {known}"),
        Some(counted) if counted > confirmed + uncertain => {
            format!("too many: {counted} of ours are there, and {known}")
        }
        Some(counted) if counted < confirmed => format!("too few: {counted} of ours are there, and {known}"),
        Some(counted) => {
            format!("{} outcomes there are not ours: {total} in all, and {known}", total.saturating_sub(counted))
        }
    }
}

impl Line {
    fn with(&self, row: &Seen) -> Line {
        Line {
            case: row.case.to_string(),
            cycle: row.cycle.to_string(),
            row: row.row.to_string(),
            at: row.at().unwrap_or_default(),
            status: word(&row.status).to_owned(),
            marker: marker_text(row.marker).unwrap_or_default(),
            text: row.text.clone(),
            ..self.clone()
        }
    }
}
