//! Rows of staged pushes that hang in the air or contradict one another, as far as queries tell.

use rusqlite::Connection;

use super::Report;
use crate::StoreError;

/// Kind, table, and a query for id and words.
const QUERIES: &[(&str, &str, &str)] = &[
    (
        "orphan-stage",
        "stage",
        "SELECT id, 'its project is missing' FROM stage s
         WHERE NOT EXISTS (SELECT 1 FROM project p WHERE p.id = s.project)",
    ),
    (
        "epoch-gap",
        "stage",
        "SELECT max(id), 'its push has ' || count(*) || ' epochs, numbered ' || min(epoch) || ' to ' || max(epoch)
         FROM stage GROUP BY project, uid HAVING min(epoch) <> 1 OR max(epoch) <> count(*)",
    ),
    (
        "fate-unclear",
        "stage",
        "SELECT id, 'fate ' || fate || ' with revision ' || coalesce(revision, 'none') || ' and ' ||
           CASE WHEN refusal IS NULL THEN 'no refusal' ELSE 'a refusal' END FROM stage
         WHERE fate NOT BETWEEN 0 AND 5 OR (fate = 5) <> (revision IS NOT NULL) OR (fate = 4) <> (refusal IS NOT NULL)
            OR blocks NOT BETWEEN 0 AND 2 OR (blocks <> 0 AND fate = 0) OR (blocks = 2 AND fate <> 5)",
    ),
    (
        "two-open-epochs",
        "stage",
        "SELECT s.id, 'it is open, and epoch ' || o.id || ' of the same push is newer' FROM stage s
         JOIN stage o ON o.project = s.project AND o.uid = s.uid AND o.epoch > s.epoch WHERE s.fate = 0",
    ),
    (
        "open-epoch-tombstoned",
        "stage",
        "SELECT s.id, 'it is open, and its key ' || s.key || ' is tombstoned' FROM stage s
         JOIN tombstone t ON t.project = s.project AND t.uid = s.uid WHERE s.fate = 0",
    ),
    (
        "committed-without-revision",
        "stage",
        "SELECT id, 'it is committed as revision ' || revision || ', which its push does not have' FROM stage s
         WHERE fate = 5 AND NOT EXISTS (SELECT 1 FROM push p
           JOIN revision v ON v.project = p.project AND v.push = p.id AND v.revision = s.revision
           WHERE p.project = s.project AND p.uid = s.uid)",
    ),
    (
        "stage-without-blockset",
        "stage",
        "SELECT id, 'its number ' || blockset || ' is not given out' FROM stage s
         WHERE blocks <> 1 AND NOT EXISTS (SELECT 1 FROM blockset b WHERE b.id = s.blockset AND b.project = s.project)",
    ),
    (
        "stage-not-swept",
        "stage",
        "SELECT id, 'it says that its rows are deleted, and they are not' FROM stage s
         WHERE blocks = 1 AND (EXISTS (SELECT 1 FROM blockset b WHERE b.id = s.blockset)
           OR EXISTS (SELECT 1 FROM block b WHERE b.project = s.project AND b.blockset = s.blockset)
           OR EXISTS (SELECT 1 FROM stage_chunk c WHERE c.project = s.project AND c.stage = s.id))",
    ),
    (
        "blockset-shared",
        "stage",
        "SELECT s.id, 'epoch ' || o.id || ' has the same blocks' FROM stage s
         JOIN stage o ON o.project = s.project AND o.blockset = s.blockset AND o.id <> s.id",
    ),
    (
        "stage-not-linked",
        "stage",
        "SELECT id, 'its blocks should be those of revision ' || revision || ' of its push' FROM stage s
         WHERE blocks = 2 AND NOT EXISTS (SELECT 1 FROM push p
           JOIN revision v ON v.project = p.project AND v.push = p.id AND v.revision = s.revision AND v.kind <> 3
             AND v.blockset = s.blockset AND v.content = s.content
           WHERE p.project = s.project AND p.uid = s.uid)",
    ),
    (
        "linked-uncommitted",
        "stage",
        "SELECT s.id, 'a revision has its blocks, and it is not committed' FROM stage s
         JOIN revision v ON v.project = s.project AND v.blockset = s.blockset WHERE s.blocks <> 2",
    ),
    (
        "chunk-missing",
        "stage",
        "SELECT s.id, 'it is committed with ' || count(c.chunk) || ' of ' || (1 << s.bits) || ' chunks' FROM stage s
         LEFT JOIN stage_chunk c ON c.project = s.project AND c.stage = s.id
         WHERE s.blocks = 2 GROUP BY s.id HAVING count(c.chunk) <> 1 << s.bits",
    ),
    (
        "orphan-chunk",
        "stage_chunk of stage",
        "SELECT stage, 'chunk ' || chunk || ': there is no such epoch' FROM stage_chunk c
         WHERE NOT EXISTS (SELECT 1 FROM stage s WHERE s.id = c.stage AND s.project = c.project)",
    ),
    (
        "chunk-out-of-range",
        "stage_chunk of stage",
        "SELECT c.stage, 'chunk ' || c.chunk || ' of ' || (1 << s.bits) FROM stage_chunk c
         JOIN stage s ON s.id = c.stage WHERE c.chunk < 0 OR c.chunk >= 1 << s.bits",
    ),
    (
        "block-without-chunk",
        "block",
        "SELECT b.id, 'epoch ' || s.id || ' has no chunk that it could belong to' FROM stage s
         JOIN block b ON b.project = s.project AND b.blockset = s.blockset JOIN itemset i ON i.id = b.itemset
         WHERE (s.fate = 0 OR s.blocks = 2) AND NOT EXISTS (SELECT 1 FROM stage_chunk c
           WHERE c.project = s.project AND c.stage = s.id AND c.chunk = b.bucket >> (i.bits - s.bits))",
    ),
    (
        "orphan-sender",
        "stage_sender",
        "SELECT id, 'its epoch is missing, or of another push' FROM stage_sender n
         WHERE NOT EXISTS (SELECT 1 FROM stage s WHERE s.id = n.stage AND s.project = n.project AND s.uid = n.uid)",
    ),
    (
        "stage-without-sender",
        "stage",
        "SELECT id, 'nobody began it' FROM stage s
         WHERE NOT EXISTS (SELECT 1 FROM stage_sender n WHERE n.project = s.project AND n.stage = s.id)",
    ),
    (
        "bound-twice",
        "stage_sender",
        "SELECT n.id, 'its incarnation resumed an epoch that was not the one it was bound to' FROM stage_sender n
         JOIN stage_sender f ON f.project = n.project AND f.uid = n.uid AND f.incarnation = n.incarnation
           AND f.id < n.id AND f.stage > n.stage",
    ),
];

/// Runs every query.
pub(super) fn check(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    for (kind, table, sql) in QUERIES {
        report.rows(connection, kind, table, sql)?;
    }
    Ok(())
}
