//! Receipts and the words of the log, made the same way by every engine, so that their bytes agree.
//! Must not know where they are kept.

use domain::compare::{Comparison, Listed};
use domain::protocol::{DifferenceClass, DifferenceSummary, Refusal};
use domain::receipt::{Difference, ItemDifference, ItemHashText, ReceiptResult};
use domain::verdict::{Light, RevisionKind, View};
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

/// A difference with its first items.
pub(crate) fn difference(summary: DifferenceSummary, items: Vec<ItemDifference>) -> Difference {
    let DifferenceSummary { class, changed, added, not_offered } = summary;
    Difference { class, changed, added, not_offered, items }
}

/// Listed items with their names; `name` knows the items of the content.
pub(crate) fn named<E>(
    listed: Vec<Listed>,
    mut name: impl FnMut(ItemHash) -> Result<ItemName, E>,
) -> Result<Vec<ItemDifference>, E> {
    let named = |(hash, recorded, offered)| {
        Ok(ItemDifference { hash: ItemHashText(hash), item: name(hash)?, recorded, offered: Some(offered) })
    };
    listed.into_iter().map(named).collect()
}

/// How a content that a person promotes differs from what counted before.
pub(crate) fn promotion_summary(before: &View, hashes: &[ItemHash], lights: &[Light]) -> DifferenceSummary {
    promotion_difference(&Comparison::of(before, hashes, lights))
}

/// The same, for whoever compared part by part.
pub(crate) fn promotion_difference(comparison: &Comparison) -> DifferenceSummary {
    let mut summary = comparison.summary();
    if comparison.is_equal() {
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
