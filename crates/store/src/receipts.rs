//! Receipts and the words of the log, made the same way by every engine, so that their bytes agree.
//! Must not know where they are kept.

use domain::limits;
use domain::protocol::{DifferenceClass, DifferenceSummary, Refusal, summarise};
use domain::receipt::{Difference, ItemDifference, ItemHashText, ReceiptResult};
use domain::verdict::{Change, Light, RevisionKind, View};
use domain::{Counts, Digest, ItemHash, ItemName, Place, ProblemCode, PushId, PushKey, Receipt, ReportSummary};

use crate::{RecordedAt, StoreError};

/// What a receipt is made of.
pub(crate) struct Parts<'a> {
    pub(crate) place: &'a Place,
    pub(crate) key: &'a PushKey,
    pub(crate) revision: u32,
    pub(crate) kind: RevisionKind,
    pub(crate) at: &'a RecordedAt,
    pub(crate) counts: Counts,
    pub(crate) report: ReportSummary,
    pub(crate) incomplete: bool,
    pub(crate) late: bool,
    pub(crate) content: Digest,
    pub(crate) difference: Option<Difference>,
}

/// The bytes of a receipt. They are made once and kept.
pub(crate) fn bytes(parts: Parts<'_>) -> Result<Vec<u8>, StoreError> {
    let place = parts.place;
    let receipt = Receipt {
        receipt: Receipt::FORMAT,
        result: result_of(parts.kind),
        project: place.project.clone(),
        cycle: place.cycle.clone(),
        round: place.round.clone(),
        job: place.job.clone(),
        shard: place.shard,
        variant: place.variant.clone(),
        key: parts.key.clone(),
        push: PushId::of(&place.project, parts.key),
        revision: parts.revision,
        recorded_at: parts.at.0.clone(),
        counts: parts.counts,
        report: parts.report,
        incomplete: parts.incomplete,
        late: parts.late,
        content: parts.content,
        difference: parts.difference,
    };
    serde_json::to_vec(&receipt).map_err(|e| StoreError::Broken { what: format!("a receipt cannot be written: {e}") })
}

/// What a revision did, as receipts and listings say it.
pub(crate) fn result_of(kind: RevisionKind) -> ReceiptResult {
    match kind {
        RevisionKind::First => ReceiptResult::Recorded,
        RevisionKind::Revised => ReceiptResult::Revised,
        RevisionKind::Kept => ReceiptResult::Kept,
        RevisionKind::Promoted { .. } => ReceiptResult::Promoted,
    }
}

/// A difference with its first items, in the order of hashes; `name` knows the items of the content.
pub(crate) fn difference(
    summary: DifferenceSummary,
    before: &View,
    hashes: &[ItemHash],
    lights: &[Light],
    name: impl Fn(usize) -> Option<ItemName>,
) -> Difference {
    let mut items = Vec::new();
    before.changes(hashes, lights, |hash, change| {
        let (recorded, offered) = match change {
            Change::Changed { from, to } => (Some(from), Some(to)),
            Change::Added(to) => (None, Some(to)),
            Change::NotOffered(_) => return,
        };
        if items.len() < limits::DIFFERENCE_ITEMS_MAX
            && let Some(item) = hashes.binary_search(&hash).ok().and_then(&name)
        {
            items.push(ItemDifference { hash: ItemHashText(hash), item, recorded, offered });
        }
    });
    let DifferenceSummary { class, changed, added, not_offered } = summary;
    Difference { class, changed, added, not_offered, items }
}

/// How a content that a person promotes differs from what counted before.
pub(crate) fn promotion_summary(before: &View, hashes: &[ItemHash], lights: &[Light]) -> DifferenceSummary {
    let mut summary = summarise(before, hashes, lights);
    if before.hashes == hashes && before.verdicts.iter().map(|v| v.light).eq(lights.iter().copied()) {
        summary.class = DifferenceClass::None;
    }
    summary
}

/// The word under which a refusal is logged: its problem code.
pub(crate) fn refusal_word(refusal: &Refusal) -> &'static str {
    let code = match refusal {
        Refusal::KeyReused(_) => ProblemCode::KeyReused,
        Refusal::CollidingExecutor { .. } | Refusal::CollidingItems { .. } => ProblemCode::KeyCollision,
        Refusal::ShardPlanChanged { .. } => ProblemCode::ShardPlanChanged,
        Refusal::Differs(_) => ProblemCode::Differs,
        Refusal::Tombstoned => ProblemCode::Tombstoned,
    };
    code.word()
}
