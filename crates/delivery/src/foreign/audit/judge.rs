//! Rows into findings: a pure function, the same for every product. Must not call anybody.

use std::collections::{BTreeMap, BTreeSet};

use domain::intent::Intent;
use domain::marker::{Found, WriteId};

use super::ledger::Known;
use super::{
    Audit, AuditError, AuditOptions, Counts, CycleRows, CycleSeen, Finding, FoundBy, Seen, Shared, likely, namesakes,
};
use crate::foreign::entry::{CaseId, RowStatus};

/// Judges what cycles hold, and holds it against the ledger's intents if they are given.
///
/// # Errors
/// [`AuditError::Ledger`].
pub fn judge(cycles: Vec<CycleRows>, ledger: Option<&[Intent]>, options: AuditOptions) -> Result<Audit, AuditError> {
    let ledger = ledger.map(Known::of).transpose()?;
    let (by_name, cycles): (Vec<_>, Vec<_>) = cycles.into_iter().partition(|cycle| cycle.by == FoundBy::Name);
    let seen: Vec<CycleSeen> = cycles.iter().map(shown).collect();
    let mut findings = doubled_cycles(&cycles, &seen);
    findings.extend(namesakes::findings(&cycles, &by_name, shown));
    let rows = cycles.into_iter().flat_map(|CycleRows { cycle, rows, .. }| {
        let verdicts = rows.into_iter().filter(|row| row.status != RowStatus::Open);
        verdicts.map(move |row| Seen::of(&cycle.id, row)).collect::<Vec<_>>()
    });
    let rows: Vec<Seen> = rows.collect();
    let mut counts = Counts { cycles: seen.len(), rows: rows.len(), ..Counts::default() };
    let cases = by_case(rows, &mut counts);
    let sorted: Vec<Sorted> = cases.values().map(|rows| Sorted::of(rows)).collect();
    let batches = likely::Batches::of(sorted.iter().map(|sorted| &sorted.counting[..]), options.window_ms);
    for ((case, rows), sorted) in cases.iter().zip(sorted) {
        of_case(case, sorted, &batches, &mut findings, &mut counts);
        if let Some(ledger) = &ledger {
            findings.extend(ledger.orphans(rows, options.sole));
        }
    }
    if let Some(ledger) = &ledger {
        findings.extend(ledger.missing(&cases, options.verdict));
    }
    counts.orphans = count(&findings, |finding| matches!(finding, Finding::Orphan { .. }));
    counts.missing = count(&findings, |finding| matches!(finding, Finding::Missing { .. }));
    Ok(Audit { cycles: seen, counts, findings, unseen: Vec::new(), gone: Vec::new() })
}

fn count(findings: &[Finding], which: impl Fn(&Finding) -> bool) -> usize {
    findings.iter().filter(|finding| which(finding)).count()
}

fn shown(cycle: &CycleRows) -> CycleSeen {
    CycleSeen {
        cycle: cycle.cycle.id.clone(),
        name: cycle.cycle.name.clone(),
        closed: cycle.cycle.closed,
        rows: cycle.rows.iter().filter(|row| row.status != RowStatus::Open).count(),
        at_ms: namesakes::time_of(cycle),
    }
}

fn doubled_cycles(cycles: &[CycleRows], shown: &[CycleSeen]) -> Vec<Finding> {
    let mut tagged: Vec<CycleSeen> = Vec::new();
    let mut names: BTreeMap<&str, Vec<(FoundBy, &CycleSeen)>> = BTreeMap::new();
    for (cycle, shown) in cycles.iter().zip(shown) {
        match cycle.by {
            // Several containers of one round are meant to be.
            FoundBy::Ledger | FoundBy::Name => continue,
            FoundBy::Tag => tagged.push(shown.clone()),
            FoundBy::Configuration => {}
        }
        names.entry(&shown.name).or_default().push((cycle.by, shown));
    }
    let mut findings = Vec::new();
    // Of those that share the tag nothing more needs to be said.
    for same in names.into_values().filter(|same| same.len() > 1 && same.iter().any(|(by, _)| *by != FoundBy::Tag)) {
        let cycles = same.into_iter().map(|(_, shown)| shown.clone()).collect();
        findings.push(Finding::DuplicateCycles { shared: Shared::Name, cycles });
    }
    if tagged.len() > 1 {
        findings.push(Finding::DuplicateCycles { shared: Shared::Tag, cycles: tagged });
    }
    findings
}

/// Rows by case, without those that a repair marked as repeats of another one that is still there.
fn by_case(rows: Vec<Seen>, counts: &mut Counts) -> BTreeMap<CaseId, Vec<Seen>> {
    let mut cases: BTreeMap<CaseId, Vec<Seen>> = BTreeMap::new();
    for row in rows {
        cases.entry(row.case.clone()).or_default().push(row);
    }
    counts.cases = cases.keys().filter(|case| !case.is_unknown()).count();
    for rows in cases.values_mut() {
        let repeats: BTreeSet<usize> = (0..rows.len())
            .filter(|at| rows.iter().any(|kept| kept.row != rows[*at].row && rows[*at].is_a_marked_repeat_of(kept)))
            .collect();
        counts.marked_repeats += repeats.len();
        let mut at = 0..;
        rows.retain(|_| at.next().is_none_or(|at| !repeats.contains(&at)));
    }
    cases
}

/// The rows of a case.
struct Sorted {
    /// By what one delivery repeats.
    deliveries: Vec<Vec<Seen>>,
    /// The first of each delivery, and all without a whole marker: a repeat of ours must neither part nor join the rows
    /// of other clients.
    counting: Vec<Seen>,
}

impl Sorted {
    fn of(rows: &[Seen]) -> Self {
        let deliveries = deliveries(rows);
        let firsts = deliveries.iter().filter_map(|rows| rows.first());
        let counting = firsts.chain(rows.iter().filter(|row| row.said().is_none())).cloned().collect();
        Self { deliveries, counting }
    }
}

fn of_case(case: &CaseId, sorted: Sorted, batches: &likely::Batches, findings: &mut Vec<Finding>, counts: &mut Counts) {
    let Sorted { deliveries, counting } = sorted;
    // One row of each outcome, to tell re-executions from repeats.
    let mut outcomes: Vec<Seen> = counting.iter().filter(|row| row.said().is_some()).cloned().collect();
    for rows in deliveries.into_iter().filter(|rows| rows.len() > 1) {
        counts.doubled_rows += rows.len() - 1;
        findings.push(Finding::Doubled { case: case.clone(), rows });
    }
    for rows in likely::repeats(&counting, batches.window_ms) {
        outcomes.extend(rows.first().map(|row| (*row).clone()));
        if let Some(found) = batches.finding(case, &rows) {
            counts.likely_doubled_rows += rows.len() - 1;
            findings.push(found);
        }
    }
    if outcomes.len() > 1 && !case.is_unknown() {
        outcomes.sort_by(|a, b| a.age().cmp(&b.age()));
        counts.re_executed_cases += 1;
        findings.push(Finding::ReExecuted { case: case.clone(), rows: outcomes });
    }
    for row in counting.into_iter().filter(|row| row.marker == Found::Mangled) {
        counts.mangled += 1;
        findings.push(Finding::MarkerMangled { row });
    }
}

/// The marked rows of a case by what one delivery repeats, each group by rank.
///
/// Of one write, equal contents are one delivery unless another content stands between them: by attempt, and, where
/// attempts have no numbers, by time. An outcome that comes back after another one was written again with reason.
fn deliveries(rows: &[Seen]) -> Vec<Vec<Seen>> {
    let mut writes: BTreeMap<WriteId, Vec<&Seen>> = BTreeMap::new();
    for row in rows {
        if let Some((write, _)) = row.said() {
            writes.entry(write).or_default().push(row);
        }
    }
    let mut deliveries = Vec::new();
    for mut rows in writes.into_values() {
        rows.sort_by(|a, b| (a.ordinal(), a.age()).cmp(&(b.ordinal(), b.age())));
        for same in rows.chunk_by(|a, b| a.said() == b.said()) {
            let mut same: Vec<Seen> = same.iter().map(|row| (*row).clone()).collect();
            same.sort_by(|a, b| a.rank().cmp(&b.rank()));
            deliveries.push(same);
        }
    }
    deliveries
}
