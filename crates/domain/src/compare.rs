//! An offered content beside what counts under its key, in numbers that add up: chunk by chunk or at once, it is the same.
//! Must not decide what follows from it.

use serde::{Deserialize, Serialize};

use crate::item::ItemHash;
use crate::limits;
use crate::outcome::{Counts, Status};
use crate::protocol::{DifferenceClass, DifferenceSummary};
use crate::receipt::ItemHashText;
use crate::verdict::{Light, RevisionKind, View, combine, merge};

/// What some offered outcomes are to what counts of the same part of the hash order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Items offered.
    pub offered: u64,
    /// Items recorded under the key.
    pub recorded: u64,
    /// Items in both with another status.
    pub changed: u64,
    /// Items in both with the same status and another history (a flaky pass beside a plain one).
    pub relit: u64,
    /// Items only offered.
    pub added: u64,
    /// Items only recorded.
    pub not_offered: u64,
    /// How the push counts if the offered verdicts do.
    pub if_revised: Counts,
    /// How the push counts if the recorded ones stay.
    pub if_kept: Counts,
    /// The first of the items only offered.
    pub offered_samples: Vec<ItemHashText>,
    /// The first of the items only recorded.
    pub recorded_samples: Vec<ItemHashText>,
}

impl Comparison {
    /// Of offered outcomes (rising hashes) with what counts; both of the same part of the hash order.
    pub fn of(before: &View, hashes: &[ItemHash], lights: &[Light]) -> Self {
        let mut this = Self { offered: hashes.len() as u64, recorded: before.hashes.len() as u64, ..Self::default() };
        merge(&before.hashes, hashes, |hash, old, new| {
            match (old.map(|at| before.verdicts[at]), new.map(|at| lights[at])) {
                (Some(old), Some(light)) => {
                    this.changed += u64::from(old.light.status != light.status);
                    this.relit += u64::from(old.light.status == light.status && old.light != light);
                    // The number of the revision doesn't show in counts.
                    let revised = combine(RevisionKind::Revised, 0, 0, old, light).light;
                    this.count(revised, old.light);
                }
                (Some(old), None) => {
                    this.not_offered += 1;
                    sample(&mut this.recorded_samples, hash);
                    this.count(old.light, old.light);
                }
                (None, Some(light)) => {
                    this.added += 1;
                    sample(&mut this.offered_samples, hash);
                    this.count(light, light);
                }
                (None, None) => {}
            }
        });
        this
    }

    fn count(&mut self, revised: Light, kept: Light) {
        self.if_revised.add(revised.status, revised.is_flaky());
        self.if_kept.add(kept.status, kept.is_flaky());
    }

    /// True if the offered content says just what counts already.
    pub fn is_equal(&self) -> bool {
        self.changed + self.relit + self.added + self.not_offered == 0
    }

    /// Offered items that are recorded under the key.
    pub fn shared(&self) -> u64 {
        self.offered - self.added
    }

    /// How the push counts once a revision of this kind is laid over it.
    pub fn counts(&self, kind: RevisionKind) -> Counts {
        if kind == RevisionKind::Kept { self.if_kept } else { self.if_revised }
    }

    /// The numbers of the difference. Without one in items or statuses it is semantic: a flaky pass differs from a plain
    /// one.
    pub fn summary(&self) -> DifferenceSummary {
        let structural = self.added + self.not_offered > 0;
        let class = if structural { DifferenceClass::Structural } else { DifferenceClass::Semantic };
        DifferenceSummary { class, changed: self.changed, added: self.added, not_offered: self.not_offered }
    }
}

fn sample(samples: &mut Vec<ItemHashText>, hash: ItemHash) {
    if samples.len() < limits::SAMPLES_MAX {
        samples.push(ItemHashText(hash));
    }
}

impl std::ops::AddAssign for Comparison {
    /// Adds that of the next part of the hash order.
    fn add_assign(&mut self, next: Comparison) {
        self.offered += next.offered;
        self.recorded += next.recorded;
        self.changed += next.changed;
        self.relit += next.relit;
        self.added += next.added;
        self.not_offered += next.not_offered;
        self.if_revised += next.if_revised;
        self.if_kept += next.if_kept;
        for (mine, more) in
            [(&mut self.offered_samples, next.offered_samples), (&mut self.recorded_samples, next.recorded_samples)]
        {
            mine.extend(more);
            mine.truncate(limits::SAMPLES_MAX);
        }
    }
}

/// An item that an offered content says otherwise than what counts, or adds: `(hash, recorded, offered)`.
pub type Listed = (ItemHash, Option<Status>, Status);

/// The first changed and added items, in the order of hashes, as receipts list them.
pub fn listed(before: &View, hashes: &[ItemHash], lights: &[Light]) -> Vec<Listed> {
    let mut items = Vec::new();
    before.changes(hashes, lights, |hash, change| {
        if items.len() < limits::DIFFERENCE_ITEMS_MAX {
            match change {
                crate::verdict::Change::Changed { from, to } => items.push((hash, Some(from), to)),
                crate::verdict::Change::Added(to) => items.push((hash, None, to)),
                crate::verdict::Change::NotOffered(_) => {}
            }
        }
    });
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::chunk_of;
    use proptest::prelude::*;

    fn part(n: u8, code: u8) -> (ItemHash, Light) {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(&[n]).as_bytes()[..16]);
        (ItemHash(hash), Light::from_code(code % 8).unwrap())
    }

    fn sorted(items: &[(u8, u8)]) -> (Vec<ItemHash>, Vec<Light>) {
        let mut items: Vec<_> = items.iter().map(|(n, code)| part(*n, *code)).collect();
        items.sort_by_key(|(hash, _)| *hash);
        items.dedup_by_key(|(hash, _)| *hash);
        items.into_iter().unzip()
    }

    proptest! {
        #[test]
        fn parts_add_up_and_agree_with_the_fold(
            first in prop::collection::vec((any::<u8>(), any::<u8>()), 0..120),
            offered in prop::collection::vec((any::<u8>(), any::<u8>()), 0..120),
            bits in 0..5_u8,
        ) {
            let (hashes, lights) = sorted(&first);
            let before = View::first(&hashes, &lights);
            let (hashes, lights) = sorted(&offered);
            let whole = Comparison::of(&before, &hashes, &lights);
            let mut sum = Comparison::default();
            for chunk in 0..1 << bits {
                let range = |all: &[ItemHash]| {
                    all.partition_point(|h| chunk_of(*h, bits) < chunk)..all.partition_point(|h| chunk_of(*h, bits) <= chunk)
                };
                let (old, new) = (range(&before.hashes), range(&hashes));
                let view = View { hashes: before.hashes[old.clone()].to_vec(), verdicts: before.verdicts[old].to_vec() };
                sum += Comparison::of(&view, &hashes[new.clone()], &lights[new]);
            }
            prop_assert_eq!(&sum, &whole);
            for kind in [RevisionKind::Revised, RevisionKind::Kept] {
                prop_assert_eq!(whole.counts(kind), before.laid_over(kind, 2, &hashes, &lights).counts());
            }
            let equal = before.hashes == hashes && before.verdicts.iter().map(|v| v.light).eq(lights.iter().copied());
            prop_assert_eq!(whole.is_equal(), equal);
        }
    }
}
