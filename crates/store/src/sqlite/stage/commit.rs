//! Commits: from here on a staged content is visible, whole. What is read and written grows with the chunks, not with
//! the outcomes, unless another content was recorded while the chunks came. Must not decide.

use std::cmp::Reverse;

use domain::content::Digests;
use domain::forwarding::ForwardRule;
use domain::protocol::{Decision, DifferenceClass, Refusal, decide};
use domain::receipt::ItemDifference;
use domain::staging::{self, CommitDecision, Fate};
use domain::{Comparison, Counts, ItemHash, ItemName, PushKey, Sender, limits};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use super::super::accept::{self, Blocks, Linked};
use super::super::connect::broken;
use super::super::content::{Lies, Snap, names_in};
use super::super::known::{self, KnownPush, Lookups, Offered, Standing};
use super::super::points::{Op, Tx};
use super::super::rows::{self as tables, json, to_json};
use super::super::waiting::Forward;
use super::rows::{self, ChunkRow, KeptManifest, StageRow};
use super::{gate, write};
use crate::receipts::named;
use crate::{Committed, EpochOf, Now, Refused, StoreError};

/// Why an epoch was refused, kept so that every copy of its commit is answered alike.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kept {
    Refused { refusal: Refusal, offered_samples: Vec<ItemName>, recorded_samples: Vec<ItemName> },
    NotAsPromised { what: String },
}

impl Kept {
    fn answer(self) -> Committed {
        match self {
            Kept::NotAsPromised { what } => Committed::NotAsPromised { what },
            Kept::Refused { refusal, offered_samples, recorded_samples } => {
                Committed::Refused(Refused { refusal, offered_samples, recorded_samples })
            }
        }
    }
}

/// Runs one commit.
pub(in crate::sqlite) fn commit(
    connection: &Connection,
    of: &EpochOf,
    now: &Now,
    rules: &[ForwardRule],
) -> Result<Committed, StoreError> {
    let (tx, snap) = (Tx::of(connection, Op::COMMIT), Snap::over(connection));
    let Some(project) = tables::project_id(&tx, of.project.as_str())? else { return Ok(Committed::Unknown) };
    if tables::is_tombstoned(&tx, project, of.push)? {
        return Ok(Committed::Gone);
    }
    let Some(stage) = rows::of_epoch(&tx, project, of.push, of.epoch)? else { return Ok(Committed::Unknown) };
    match staging::commit(&rows::known(&tx, &stage, now.ms)?) {
        CommitDecision::Commit => link((tx, &snap), &stage, now, rules),
        CommitDecision::Replay { revision } => {
            let offer = Offer::of(tx, &stage)?;
            let delivered = offer.manifest.delivered((&offer.key, &offer.sender), &now.at, Forward::NEVER);
            let known = Standing::of(&snap, &delivered)?.known;
            // Another content was committed as a replay: it says the same but for times and texts.
            let answer = accept::repeat(tx, &delivered, known.as_ref(), (revision, DifferenceClass::Cosmetic))?;
            Ok(Committed::Accepted(answer))
        }
        CommitDecision::Incomplete { missing } => Ok(Committed::Incomplete { missing }),
        CommitDecision::Superseded => Ok(Committed::Superseded { recorded: rows::recorded(&tx, project, of.push)? }),
        CommitDecision::Refused => kept(&tx, &stage),
        CommitDecision::Gone => Ok(Committed::Gone),
    }
}

/// What an epoch offers besides its outcomes.
struct Offer {
    key: PushKey,
    manifest: KeptManifest,
    /// The first of those with the highest ordinal.
    sender: Sender,
}

impl Offer {
    fn of(tx: Tx<'_>, stage: &StageRow) -> Result<Self, StoreError> {
        let (key, manifest) = KeptManifest::of(&tx, stage.id)?;
        let senders = rows::senders(&tx, stage)?;
        let sender = senders.iter().min_by_key(|sender| Reverse(sender.ordinal)).cloned().unwrap_or_default();
        Ok(Self { key, manifest, sender })
    }
}

fn kept(connection: &Connection, stage: &StageRow) -> Result<Committed, StoreError> {
    let mut statement = connection.prepare_cached("SELECT refusal FROM stage WHERE id = ?1")?;
    let text: Option<String> = statement.query_row([stage.id], |row| row.get(0))?;
    let kept: Kept = json(&text.ok_or_else(|| broken("a refused epoch that doesn't say why"))?)?;
    Ok(kept.answer())
}

fn refuse(tx: Tx<'_>, stage: &StageRow, why: Kept) -> Result<Committed, StoreError> {
    write::end(tx, stage.id, Fate::Refused)?;
    let sql = "UPDATE stage SET refusal = ?2 WHERE id = ?1";
    tx.step("keep-refusal", sql)?.run(params![stage.id, to_json(&why)?])?;
    Ok(why.answer())
}

/// All chunks are there: holds them against the manifest, asks the domain, and carries out what it says.
fn link(
    (tx, snap): (Tx<'_>, &Snap<'_>),
    stage: &StageRow,
    now: &Now,
    rules: &[ForwardRule],
) -> Result<Committed, StoreError> {
    let chunks = rows::chunks(&tx, stage)?;
    let offer = Offer::of(tx, stage)?;
    if let Some(what) = broken_promise(stage, &offer.manifest, &chunks) {
        return refuse(tx, stage, Kept::NotAsPromised { what });
    }
    let forward = Forward { rules, now_ms: now.ms };
    let of = offer.manifest.delivered((&offer.key, &offer.sender), &now.at, forward);
    let standing = Standing::of(snap, &of)?;
    let comparison = standing.known.as_ref().and_then(|known| sum(&chunks, known.row.revision).map(Box::new));
    let lies: Lies = (stage.project, stage.blockset, stage.block_bits());
    let fresh = comparison.is_some();
    let offered = Offered::Staged { lies, n: stage.n, comparison };
    let known = standing.known.as_ref();
    let mut lookups = Lookups { snap, place: of.place, standing: &standing, offered: &offered };
    let decision = decide(&of.offer(), known.map(|known| &known.known), false, &mut lookups)?;
    let blocks = Blocks::Staged(stage.blockset, stage.block_bits());
    let content = Linked { blocks, counts: offer.manifest.counts };
    let mut linked = true;
    let answer = match (decision, known) {
        (Decision::Record, _) => accept::first(tx, &of, (standing.project, standing.round), &content)?,
        (Decision::Overlay { kind, difference, counts }, Some(known)) => {
            let items = if fresh { listed(&tx, stage)? } else { listed_anew(snap, known, &offered, lies)? };
            accept::overlay(tx, &of, known, (kind, difference, counts, items), &content)?
        }
        (Decision::Replay { revision, class, doubts }, Some(known)) => {
            linked = false;
            accept::replay(tx, &of, known, revision, (class, doubts))?
        }
        (Decision::Refuse { refusal, contest }, known) => {
            let names = |hashes: &[ItemHash]| Ok(names_in(snap, lies, hashes)?.into_iter().flatten().collect());
            let of_key = (standing.project, known);
            let Refused { refusal, offered_samples, recorded_samples } =
                accept::refuse((tx, snap), &of, of_key, (refusal, contest), names)?;
            return refuse(tx, stage, Kept::Refused { refusal, offered_samples, recorded_samples });
        }
        _ => return Err(broken("a decision on a push that is not recorded")),
    };
    gate::commit(tx, stage, answer.revision)?;
    if linked {
        hand_over(tx, stage)?;
    }
    Ok(Committed::Accepted(answer))
}

/// The epoch's blocks are those of a revision from now on.
fn hand_over(tx: Tx<'_>, stage: &StageRow) -> Result<(), StoreError> {
    tx.step("link-stage", "UPDATE stage SET blocks = 2 WHERE id = ?1")?.run([stage.id])?;
    let sql = "UPDATE stage_chunk SET comparison = NULL, listed = NULL
               WHERE project = ?1 AND stage = ?2 AND comparison IS NOT NULL";
    tx.step("forget-comparisons", sql)?.run(params![stage.project, stage.id])?;
    Ok(())
}

/// What the chunks together are that the manifest does not say.
fn broken_promise(stage: &StageRow, manifest: &KeptManifest, chunks: &[ChunkRow]) -> Option<String> {
    let mut counts = Counts::default();
    for chunk in chunks {
        counts += chunk.counts;
    }
    let n: u64 = chunks.iter().map(|chunk| chunk.n).sum();
    if (counts, n) != (manifest.counts, stage.n) {
        return Some("the outcomes of the chunks count otherwise than the manifest says".to_owned());
    }
    let made = Digests::of_chunks(chunks.iter().map(|chunk| chunk.digests).collect());
    let differs = made != manifest.digests();
    differs.then(|| "the chunks together have other digests than the manifest says".to_owned())
}

/// What the chunks come to together, if all were held against this revision.
fn sum(chunks: &[ChunkRow], revision: u32) -> Option<Comparison> {
    let mut sum = Comparison::default();
    for chunk in chunks {
        let (with, comparison) = chunk.compared.as_ref()?;
        if *with != revision {
            return None;
        }
        sum += comparison.clone();
    }
    Some(sum)
}

/// The first items that differ, as the chunks list them.
fn listed(connection: &Connection, stage: &StageRow) -> Result<Vec<ItemDifference>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT listed FROM stage_chunk WHERE project = ?1 AND stage = ?2 ORDER BY chunk")?;
    let mut rows = statement.query(params![stage.project, stage.id])?;
    let mut items: Vec<ItemDifference> = Vec::new();
    while let Some(row) = rows.next()? {
        items.extend(json::<Vec<ItemDifference>>(&row.get::<_, Option<String>>(0)?.unwrap_or_else(|| "[]".into()))?);
        if items.len() >= limits::DIFFERENCE_ITEMS_MAX {
            break;
        }
    }
    items.truncate(limits::DIFFERENCE_ITEMS_MAX);
    Ok(items)
}

/// The same out of the blocks, where what is recorded has changed since the chunks were held against it.
fn listed_anew(
    snap: &Snap<'_>,
    known: &KnownPush,
    offered: &Offered<'_>,
    lies: Lies,
) -> Result<Vec<ItemDifference>, StoreError> {
    let listed = known::listed(snap, known, offered)?;
    let hashes: Vec<ItemHash> = listed.iter().map(|(hash, _, _)| *hash).collect();
    let mut names = names_in(snap, lies, &hashes)?.into_iter();
    named(listed, |_| names.next().flatten().ok_or_else(|| broken("a staged item without a name")))
}
