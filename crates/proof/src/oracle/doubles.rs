//! What a store must not hold, in words: anything twice, counts that differ from a recount, pieces of a half-written push.
//! Must not rely on the store's own unique indices, which are what it judges.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;

use super::fold::{Revision, content_of, counts, counts_of, fold};
use super::names::{Hash, hex};
use super::tables::{Oracle, Push, Reading};

/// Words for each row that stands for a double or a piece without its whole; `NOT INDEXED` reads the tables themselves.
const TABLES: [&str; 16] = [
    "SELECT format('project %s is there %d times', name, COUNT(*)) FROM project NOT INDEXED
     GROUP BY name HAVING COUNT(*) > 1",
    "SELECT format('cycle %s of project %d is there %d times', name, project, COUNT(*)) FROM cycle NOT INDEXED
     GROUP BY project, name HAVING COUNT(*) > 1",
    "SELECT format('round %s of cycle %d is there %d times', round, cycle, COUNT(*)) FROM round NOT INDEXED
     GROUP BY project, cycle, round HAVING COUNT(*) > 1",
    "SELECT format('key %s is there %d times in project %d', key, COUNT(*), project) FROM push NOT INDEXED
     GROUP BY project, key HAVING COUNT(*) > 1",
    "SELECT format('uid %s is there %d times in project %d', lower(hex(uid)), COUNT(*), project) FROM push NOT INDEXED
     GROUP BY project, uid HAVING COUNT(*) > 1",
    "SELECT format('key %s of project %d is a push and a tombstone', p.key, p.project) FROM push p NOT INDEXED
     JOIN tombstone t ON t.project = p.project AND t.key = p.key",
    "SELECT format('revision %d of push %d has %d receipts', revision, push, COUNT(*)) FROM revision NOT INDEXED
     GROUP BY project, push, revision HAVING COUNT(*) > 1",
    "SELECT format('promotion key %s is there %d times in project %d', promotion_key, COUNT(*), project)
     FROM revision NOT INDEXED WHERE promotion_key IS NOT NULL GROUP BY project, promotion_key HAVING COUNT(*) > 1",
    "SELECT format('revision %d belongs to no push', id) FROM revision r NOT INDEXED
     WHERE NOT EXISTS (SELECT 1 FROM push p WHERE p.id = r.push AND p.project = r.project)",
    "SELECT format('content %d has %d blocks of bucket %d', blockset, COUNT(*), bucket)
     FROM block NOT INDEXED GROUP BY project, blockset, bucket HAVING COUNT(*) > 1",
    "SELECT format('content %d is that of %d revisions', blockset, COUNT(*)) FROM revision NOT INDEXED
     WHERE kind <> 3 AND blockset <> 0 GROUP BY project, blockset HAVING COUNT(*) > 1",
    // Blocks of an epoch that is open, or over and not swept yet (a push of one request may have ended it), wait.
    "SELECT format('block %d belongs to no revision', id) FROM block b NOT INDEXED WHERE NOT EXISTS
     (SELECT 1 FROM revision r WHERE r.project = b.project AND r.blockset = b.blockset AND r.kind <> 3) AND NOT EXISTS
     (SELECT 1 FROM stage s WHERE s.project = b.project AND s.blockset = b.blockset AND s.blocks = 0)",
    "SELECT format('epoch %d of key %s is there %d times in project %d', epoch, key, COUNT(*), project)
     FROM stage NOT INDEXED GROUP BY project, uid, epoch HAVING COUNT(*) > 1",
    "SELECT format('epoch %d of key %s is committed as revision %d, which is not there', epoch, key, s.revision)
     FROM stage s NOT INDEXED WHERE fate = 5 AND NOT EXISTS (SELECT 1 FROM revision r
       JOIN push p ON p.id = r.push AND p.project = r.project
       WHERE p.project = s.project AND p.uid = s.uid AND r.revision = s.revision)",
    "SELECT format('texts %d belong to no block', id) FROM blocktext t NOT INDEXED
     WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.id = t.id)",
    "SELECT format('item set with digest %s is there %d times in project %d', lower(hex(digest)), COUNT(*), project)
     FROM itemset NOT INDEXED GROUP BY project, digest HAVING COUNT(*) > 1",
];

/// Where two pushes are the same piece of work: project, round, job, variant and shard.
type Piece = (i64, i64, String, String, Option<i64>);

impl Oracle {
    /// Words for everything that is there twice: a key in a project, an item in a block or revision, a block of one content
    /// and bucket, a content in two revisions, an epoch of a push, a receipt of one push and revision, an item and variant in two pushes of one job and shard of
    /// a round; also for counts that differ from a recount, and for pieces of pushes that are not there. Empty if the
    /// store is clean.
    ///
    /// # Errors
    /// The bytes contradict the layout in another way, so that nothing can be said.
    pub fn doubles(&self) -> anyhow::Result<Vec<String>> {
        self.reading(|reading| {
            let mut words = Vec::new();
            for sql in TABLES {
                let mut statement = reading.connection.prepare(sql)?;
                for row in statement.query_map([], |row| row.get::<_, String>(0))? {
                    words.push(row?);
                }
            }
            let mut pieces: BTreeMap<Piece, BTreeMap<Hash, String>> = BTreeMap::new();
            for push in reading.pushes()? {
                let push_words = || push.words();
                let held = repeats(reading, &push, &mut words).with_context(push_words)?;
                let (items, clean) = (held.items, held.clean);
                if clean {
                    recount(reading, &push, &mut words).with_context(push_words)?;
                }
                let piece = (push.project, push.round, push.job.clone(), push.variant.clone(), push.shard);
                let known = pieces.entry(piece).or_default();
                for (hash, item) in items {
                    match known.get(&hash) {
                        Some(other) => {
                            let round = &push.round_name;
                            words.push(format!("{item} is in {} and in {other} of round {round}", push.words()));
                        }
                        None => drop(known.insert(hash, push.words())),
                    }
                }
            }
            Ok(words)
        })
    }
}

struct Held {
    /// Every item that any revision of the push holds.
    items: BTreeMap<Hash, String>,
    /// Whether its revisions can be laid over one another at all.
    clean: bool,
}

/// Looks for items that a revision holds twice.
fn repeats(reading: &mut Reading<'_>, push: &Push, words: &mut Vec<String>) -> anyhow::Result<Held> {
    let mut statement = reading
        .connection
        .prepare("SELECT revision FROM revision NOT INDEXED WHERE project = ?1 AND push = ?2 ORDER BY revision")?;
    let numbers: Vec<u32> =
        statement.query_map([push.project, push.id], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let unique: BTreeSet<u32> = numbers.iter().copied().collect();
    let mut held = Held { items: BTreeMap::new(), clean: unique.len() == numbers.len() };
    for number in unique {
        let mut seen = BTreeSet::new();
        for (_, item, hash, _) in reading.outcomes(push, number).with_context(|| format!("revision {number}"))? {
            if !seen.insert(hash) {
                held.clean = false;
                words.push(format!("{}: revision {number} holds {item} twice ({})", push.words(), hex(&hash)));
            }
            held.items.insert(hash, item);
        }
    }
    Ok(held)
}

/// Compares the counts of a push and its revisions with what they hold.
fn recount(reading: &mut Reading<'_>, push: &Push, words: &mut Vec<String>) -> anyhow::Result<()> {
    let (revisions, stored): (Vec<Revision>, Vec<_>) =
        reading.revisions(push)?.into_iter().map(|recorded| (recorded.revision, recorded.counts)).unzip();
    let (says, counted) = (push.counts()?, counts(&fold(&revisions)?));
    if says != counted {
        words.push(format!("{}: counts say {says:?}, a recount {counted:?}", push.words()));
    }
    for (revision, says) in revisions.iter().zip(stored) {
        let counted = counts_of(content_of(&revisions, revision.number)?);
        if says != counted {
            let number = revision.number;
            words.push(format!("{}: counts of revision {number} say {says:?}, a recount {counted:?}", push.words()));
        }
    }
    Ok(())
}
