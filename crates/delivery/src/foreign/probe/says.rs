//! What follows from a measurement: in the words of the facts, against the facts, and for each strategy.
//! Must not call anybody.

use serde::{Deserialize, Serialize};

use super::measured::{Answer, CutWrite, Deed, MarkerCame, Measured, More, Text};
use crate::foreign::facts::{Facts, KeyOnWrite, MarkerLevel, Strategy, VerdictRule, Visible};

/// Beyond so many times the stated lag two readings no longer agree (`facts/idempotency.md`, W2).
const LAGS: u64 = 3;

/// A measurement in the words of the facts. Null where it can't be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Says {
    /// What a second write for a case does to the verdict.
    pub verdict: Option<VerdictRule>,
    /// What a repeat under the same id does. Where verdicts are replaced, a repeat shows nothing of it.
    pub key_on_write: Option<KeyOnWrite>,
    /// Milliseconds until a write shows.
    pub visible_ms: Option<u64>,
    /// True if the marker comes back whole, out of every text.
    pub marker: bool,
    /// True if a batch with a bad entry is refused as a whole.
    pub atomic: Option<bool>,
    /// True if one row can be deleted.
    pub delete: Option<bool>,
    /// True if one row can be changed.
    pub amend: Option<bool>,
    /// True if a second cycle of the same name is refused.
    pub cycle_unique: bool,
}

impl Says {
    /// Of a measurement.
    pub fn of(measured: &Measured) -> Self {
        let verdict = verdict(measured);
        Self {
            verdict,
            key_on_write: key(measured, verdict),
            visible_ms: measured.lag.ms,
            marker: measured.marker == MarkerCame::Whole
                && measured.text.as_ref().is_none_or(|text| text.marker == MarkerCame::Whole),
            atomic: measured.bad_item.as_ref().and_then(|bad| match bad.answer {
                _ if bad.stored > 0 && !bad.bad_stored => Some(false),
                Answer::TakenInPart => Some(false),
                Answer::Refused | Answer::Exists => Some(true),
                Answer::Taken | Answer::JobFailed | Answer::Unknown => None,
            }),
            delete: works(&measured.delete),
            amend: works(&measured.amend),
            cycle_unique: !measured.twin.made,
        }
    }
}

fn works(deed: &Deed) -> Option<bool> {
    match deed {
        Deed::Done => Some(true),
        Deed::NoEffect | Deed::Refused { .. } => Some(false),
        Deed::NotTried => None,
    }
}

fn verdict(measured: &Measured) -> Option<VerdictRule> {
    let second = &measured.other_content;
    if second.show_second == 0 {
        return second.answer.is_refused().then_some(VerdictRule::Refuses);
    }
    if second.rows_after > second.rows_before {
        return Some(VerdictRule::Appends);
    }
    Some(if second.show_before == 0 { VerdictRule::Replaces } else { VerdictRule::ReplacesLatest })
}

fn key(measured: &Measured, verdict: Option<VerdictRule>) -> Option<KeyOnWrite> {
    let twice = &measured.twice;
    if twice.rows_after > twice.rows_before {
        return Some(KeyOnWrite::None);
    }
    match (twice.answer, verdict) {
        (answer, Some(verdict)) if answer.is_refused() && verdict != VerdictRule::Refuses => Some(KeyOnWrite::Refuses),
        (Answer::Taken, Some(VerdictRule::Appends)) => Some(KeyOnWrite::Collapses),
        _ => None,
    }
}

/// Where a measurement contradicts what the adapter believes so that an outcome could be doubled or lost.
pub fn contradictions(measured: &Measured, facts: &Facts) -> Vec<String> {
    let says = Says::of(measured);
    let found = [
        against_verdict(measured, &says, facts),
        against_key(measured, &says, facts),
        against_visible(measured, facts),
        against_marker(measured, &says, facts),
        against_longest(measured, &says),
        against_bulk(measured),
        against_quiet(measured, facts),
        against_paging(measured),
        (measured.twin.listed == Some(false)).then(|| {
            "cycles: what was made is not listed, so that whoever has no ledger of a round makes another cycle: a list of \
             several pages, or one that isn't narrowed by the tag?"
                .to_owned()
        }),
        (facts.cycle_unique && !says.cycle_unique)
            .then(|| "cycle_unique: a second cycle of the same name was made".to_owned()),
    ];
    found.into_iter().flatten().collect()
}

fn against_verdict(measured: &Measured, says: &Says, facts: &Facts) -> Option<String> {
    let second = &measured.other_content;
    // With one row there, the newest one is the only one.
    let same = says.verdict == Some(facts.verdict)
        || (says.verdict == Some(VerdictRule::Replaces) && facts.verdict == VerdictRule::ReplacesLatest);
    if same || measured.lag.ms.is_none() {
        return None;
    }
    let rows = format!("{} rows became {}", second.rows_before, second.rows_after);
    Some(match says.verdict {
        Some(verdict) => format!("verdict: believed {:?}, measured {verdict:?}: {rows}", facts.verdict),
        None => format!("verdict: another outcome was answered {:?}, and doesn't show: {rows}", second.answer),
    })
}

fn against_key(measured: &Measured, says: &Says, facts: &Facts) -> Option<String> {
    if facts.key_on_write == KeyOnWrite::None || measured.lag.ms.is_none() {
        return None;
    }
    if says.key_on_write == Some(KeyOnWrite::None) {
        let (before, after) = (measured.twice.rows_before, measured.twice.rows_after);
        return Some(format!(
            "key_on_write: a repeat under the same id made a row of its own ({before} became {after})"
        ));
    }
    let at_once = &measured.at_once;
    (at_once.rows > 1)
        .then(|| format!("key_on_write: {} writers at once made {} rows under one id", at_once.writers, at_once.rows))
}

fn against_visible(measured: &Measured, facts: &Facts) -> Option<String> {
    let lag = &measured.lag;
    let Some(ms) = lag.ms else {
        return (facts.marker.level <= MarkerLevel::M3)
            .then(|| format!("visible: a write didn't show within {} s", lag.within_ms.div_ceil(1000)));
    };
    let (believed, most_ms) = match facts.visible {
        Visible::AtOnce => ("at once".to_owned(), 0),
        Visible::AfterJob => ("once its job has ended".to_owned(), 0),
        Visible::Later(stated_ms) => (format!("after about {stated_ms} ms"), stated_ms.saturating_mul(LAGS)),
    };
    (ms > most_ms).then(|| format!("visible: believed {believed}, measured after {ms} ms"))
}

fn against_marker(measured: &Measured, says: &Says, facts: &Facts) -> Option<String> {
    // Where nothing shows, `visible` says so.
    let expected = facts.marker.level <= MarkerLevel::M3 && measured.lag.ms.is_some();
    (expected && !says.marker).then(|| {
        let came = |came: MarkerCame| match came {
            MarkerCame::Whole => "whole",
            MarkerCame::Mangled => "changed",
            MarkerCame::Lost => "not at all",
        };
        let plain = format!("marker: it came back {} from a short text", came(measured.marker));
        match &measured.text {
            Some(Text { marker, chars, .. }) => {
                format!("{plain}, {} behind {chars} characters of every kind", came(*marker))
            }
            None => plain,
        }
    })
}

/// A marker behind a text that is cut is lost, and the outcome would be taken for absent.
fn against_longest(measured: &Measured, says: &Says) -> Option<String> {
    // Only where a shorter one is taken and comes back whole does it say anything of the length.
    let shorter = measured.text.is_some() && says.marker && measured.lag.ms.is_some();
    let longest = measured.more.longest.as_ref().filter(|_| shorter)?;
    let chars = longest.chars;
    if longest.answer.is_refused() {
        return Some(format!("comment-max: a text of {chars} characters, which it allows, was refused"));
    }
    (longest.marker != MarkerCame::Whole || !longest.end).then(|| {
        let what = if longest.marker == MarkerCame::Whole { "its end" } else { "the marker behind it" };
        format!(
            "comment-max: of a text of {chars} characters, which it allows, {what} didn't come back: make it as \
             small as what the product keeps"
        )
    })
}

fn against_bulk(measured: &Measured) -> Option<String> {
    let bad = measured.bad_item.as_ref()?;
    if bad.answer == Answer::Taken && !bad.bad_stored && measured.lag.ms.is_some() {
        return Some("bulk: an entry for a case that doesn't exist was taken, and is not there".to_owned());
    }
    // What is refused is sent again, in halves.
    (bad.answer.is_refused() && bad.stored > 0).then(|| {
        format!("bulk: a batch that was refused is there in part: {} of {} good entries", bad.stored, bad.good)
    })
}

/// What is carried out after the quiet time was read as absent before.
fn against_quiet(measured: &Measured, facts: &Facts) -> Option<String> {
    let cut = measured.more.cut.as_ref()?;
    let latest_ms = cut.writes.iter().filter_map(|write| write.applied_ms).max()?;
    let quiet_ms = facts.quiet_ms;
    (latest_ms > quiet_ms).then(|| {
        format!("quiet: a request that was cut off was carried out after {latest_ms} ms, and {quiet_ms} ms are waited")
    })
}

/// A row that a listing leaves out would be written again.
fn against_paging(measured: &Measured) -> Option<String> {
    let seen = measured.more.while_writing?;
    (seen.skipped > 0).then(|| {
        format!(
            "paging: {} listings under a writer left out {} rows that were there before",
            seen.listings, seen.skipped
        )
    })
}

/// Differences that can neither double nor lose an outcome.
pub fn notes(measured: &Measured, facts: &Facts) -> Vec<String> {
    let says = Says::of(measured);
    let mut notes = Vec::new();
    let mut note = |holds: bool, what: String| {
        if holds {
            notes.push(what);
        }
    };
    let at_once = &measured.at_once;
    let replaces = matches!(says.verdict, Some(VerdictRule::Replaces | VerdictRule::ReplacesLatest));
    let rows = format!("{} writers at once made {} rows of one case: one writer only", at_once.writers, at_once.rows);
    note(replaces && at_once.rows > 1, rows);
    if let Some(added) = measured.added.filter(|added| added.places > 1) {
        note(
            true,
            format!(
                "{} writers that add a case at once make {} places of it: one writer only",
                added.writers, added.places
            ),
        );
    }
    let keyed = says.key_on_write.filter(|key| *key != KeyOnWrite::None);
    if let Some(key) = keyed {
        note(key != facts.key_on_write, format!("key_on_write: believed {:?}, measured {key:?}", facts.key_on_write));
        let same_id = &measured.same_id;
        let swallowed = same_id.answer.is_taken() && same_id.show_second == 0;
        note(swallowed, "another payload under the same id is taken and not shown".to_owned());
    }
    let seen = Some(facts.bulk.atomic);
    note(
        says.atomic.is_some() && says.atomic != seen,
        format!("bulk.atomic: measured {:?}", says.atomic == Some(true)),
    );
    note(facts.repair.delete && says.delete == Some(false), "one row can't be deleted here".to_owned());
    note(facts.repair.amend && says.amend == Some(false), "one row can't be changed here".to_owned());
    note(!facts.cycle_unique && says.cycle_unique, "a second cycle of the same name is refused".to_owned());
    let whole = |text: &Text| text.markup && text.line_breaks && text.beyond_ascii && text.end;
    let changed = measured.text.as_ref().is_some_and(|text| !whole(text));
    note(measured.lag.ms.is_some() && changed, "texts come back changed".to_owned());
    let untried = measured.text.is_none() && !measured.counted;
    note(untried, "a text of every kind could not be tried: it was refused".to_owned());
    let counted = "outcomes are counted there and not listed: what texts and bad entries become could not be seen";
    note(measured.counted, counted.to_owned());
    notes.extend(notes_of_more(&measured.more, facts));
    notes
}

fn notes_of_more(more: &More, facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    for larger in more.larger.iter().filter(|larger| !larger.answer.is_taken()) {
        let words = larger.words.as_deref().unwrap_or("no words");
        notes.push(format!("a batch of {} was answered {:?}: {words}", larger.items, larger.answer));
    }
    for larger in more.larger.iter().filter(|larger| larger.answer.is_taken()) {
        if let Some(stored) = larger.stored.filter(|stored| *stored != larger.items) {
            notes.push(format!("a batch of {} was taken, and {stored} of it are there", larger.items));
        }
    }
    let late = more.cut.iter().flat_map(|cut| &cut.writes).filter_map(|write| write.applied_ms).max();
    notes.extend(late.map(|ms| format!("a request that was cut off is carried out all the same, seen after {ms} ms")));
    if facts.key_on_write != KeyOnWrite::None {
        let scope = match more.elsewhere.as_ref().and_then(|landed| landed.stored) {
            Some(true) => "an id counts within its cycle alone: in another one it was stored again",
            Some(false) => "an id counts over cycles: in another one it was not stored",
            None => "over which cycles an id counts could not be seen",
        };
        notes.push(format!("{scope}; how long it is remembered, no probe can tell"));
    }
    if let Some(ended) = &more.ended {
        let what = if ended.stored == Some(true) { "is stored" } else { "is not stored" };
        notes.push(format!("what is written into a cycle that was ended {what} ({:?})", ended.answer));
    }
    if let Some(deleted) = more.deleted.as_ref().filter(|deleted| deleted.answer.is_taken()) {
        notes.push(format!("what is written into a cycle that was deleted is answered {:?}", deleted.answer));
    }
    if let Some(seen) = more.while_writing.filter(|seen| seen.repeated > 0) {
        notes.push(format!("listings under a writer had {} rows twice", seen.repeated));
    }
    if let Some(rate) = more.rate.as_ref().filter(|rate| rate.refusals > 0) {
        notes.push(format!("{} calls were refused because there were too many", rate.refusals));
    }
    notes.extend(cut_short(more, facts.quiet_ms));
    if let Some(Deed::Refused { words }) = &more.delete_cycle {
        notes.push(format!("a cycle can't be deleted here: {words}"));
    }
    notes.extend(more.broken_off.iter().map(|why| format!("the rest could not be measured: {why}")));
    notes
}

/// That a request which was cut off was not looked for as long as this target waits: it may come after that, and nobody saw.
fn cut_short(more: &More, quiet_ms: u64) -> Option<String> {
    let cut = more.cut.as_ref()?;
    let never_came = |write: &CutWrite| !write.answered && write.applied_ms.is_none();
    (cut.watched_ms < quiet_ms && cut.writes.iter().any(never_came)).then(|| {
        let watched_ms = cut.watched_ms;
        format!("a request that was cut off was looked for {watched_ms} ms, which is less than the quiet time ({quiet_ms} ms)")
    })
}

/// What a measurement doesn't show that a whole one does, in words; `None` if it is whole.
pub(super) fn unmeasured(measured: &Measured, facts: &Facts) -> Option<String> {
    let more = &measured.more;
    if let Some(why) = &more.broken_off {
        return Some(format!("it was broken off ({why})"));
    }
    if more.cut.is_none() {
        return Some("it cut no request off".to_owned());
    }
    cut_short(more, facts.quiet_ms)
}

/// The strategies of the product that the measurement supports.
pub(super) fn allows(measured: &Measured, facts: &Facts) -> Vec<Strategy> {
    let says = Says::of(measured);
    let repeat_is_harmless =
        measured.lag.ms.is_some() && measured.twice.rows_after <= measured.twice.rows_before.max(1);
    let supported = |strategy: &Strategy| match strategy {
        Strategy::Idempotent => {
            facts.key_on_write != KeyOnWrite::None && repeat_is_harmless && measured.at_once.rows <= 1
        }
        Strategy::Reconcile => says.marker && says.visible_ms.is_some(),
        Strategy::Replace => {
            let replaces = matches!(says.verdict, Some(VerdictRule::Replaces | VerdictRule::ReplacesLatest));
            replaces && repeat_is_harmless
        }
        // Cycles were made and ended.
        Strategy::Container => true,
        // It asks nothing of the product, and promises as much.
        Strategy::AtMostOnce => true,
    };
    facts.strategies.iter().copied().filter(supported).collect()
}
