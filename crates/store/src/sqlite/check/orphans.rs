//! Rows whose owner is missing, and rows that are missing to their owner.

use rusqlite::Connection;

use super::Report;
use crate::StoreError;

/// Kind, table, and a query for id and words.
const QUERIES: &[(&str, &str, &str)] = &[
    (
        "orphan-cycle",
        "cycle",
        "SELECT id, 'its project is missing, or it has no round' FROM cycle c
         WHERE NOT EXISTS (SELECT 1 FROM project p WHERE p.id = c.project)
            OR NOT EXISTS (SELECT 1 FROM round r WHERE r.project = c.project AND r.cycle = c.id)",
    ),
    (
        "orphan-round",
        "round",
        "SELECT id, 'its cycle is missing, or it has no push' FROM round r
         WHERE NOT EXISTS (SELECT 1 FROM cycle c WHERE c.id = r.cycle AND c.project = r.project)
            OR NOT EXISTS (SELECT 1 FROM push p WHERE p.round = r.id AND p.project = r.project)",
    ),
    (
        "orphan-push",
        "push",
        "SELECT id, 'its round is missing' FROM push p
         WHERE NOT EXISTS (SELECT 1 FROM round r WHERE r.id = p.round AND r.project = p.project)",
    ),
    (
        "orphan-revision",
        "revision",
        "SELECT id, 'its push is missing' FROM revision v
         WHERE NOT EXISTS (SELECT 1 FROM push p WHERE p.id = v.push AND p.project = v.project)",
    ),
    (
        "orphan-executor",
        "executor",
        "SELECT id, 'its push is missing' FROM executor e
         WHERE NOT EXISTS (SELECT 1 FROM push p WHERE p.id = e.push AND p.project = e.project)",
    ),
    (
        "orphan-delivery",
        "delivery",
        "SELECT id, 'its push is missing' FROM delivery d WHERE push IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM push p WHERE p.id = d.push AND p.project = d.project AND p.uid = d.uid)",
    ),
    (
        "delivery-without-revision",
        "delivery",
        "SELECT id, 'it names revision ' || revision || ', which its push does not have' FROM delivery d
         WHERE revision IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM revision v WHERE v.project = d.project AND v.push = d.push AND v.revision = d.revision)",
    ),
    (
        "orphan-block",
        "block",
        "SELECT id, 'its number ' || blockset || ' is not given out' FROM block b
         WHERE NOT EXISTS (SELECT 1 FROM blockset s WHERE s.id = b.blockset AND s.project = b.project)",
    ),
    (
        "orphan-blockset",
        "blockset",
        "SELECT id, 'no revision and no epoch has it' FROM blockset b
         WHERE NOT EXISTS (SELECT 1 FROM revision v WHERE v.project = b.project AND v.blockset = b.id AND v.kind <> 3)
           AND NOT EXISTS (SELECT 1 FROM stage s WHERE s.project = b.project AND s.blockset = b.id AND s.blocks = 0)",
    ),
    (
        "revision-without-blockset",
        "revision",
        "SELECT id, 'its number ' || blockset || ' is not given out' FROM revision v
         WHERE kind <> 3 AND NOT EXISTS (SELECT 1 FROM blockset s WHERE s.id = v.blockset AND s.project = v.project)",
    ),
    (
        "blockset-shared",
        "revision",
        "SELECT v.id, 'revision ' || o.id || ' has the same blocks' FROM revision v
         JOIN revision o ON o.project = v.project AND o.blockset = v.blockset AND o.id <> v.id AND o.kind <> 3
         WHERE v.kind <> 3",
    ),
    (
        "project-not-shown",
        "project",
        "SELECT id, 'it has pushes, and says that nothing was recorded' FROM project p
         WHERE recorded = 0 AND EXISTS (SELECT 1 FROM push u WHERE u.project = p.id)",
    ),
    (
        "block-without-set",
        "block",
        "SELECT id, 'its item set ' || itemset || ' is missing' FROM block b
         WHERE NOT EXISTS (SELECT 1 FROM itemset s WHERE s.id = b.itemset AND s.project = b.project)",
    ),
    (
        "block-n-differs",
        "block",
        "SELECT b.id, 'it says ' || b.n || ' items, its set ' || s.n FROM block b JOIN itemset s ON s.id = b.itemset
         WHERE s.n <> b.n",
    ),
    (
        "bucket-differs",
        "block",
        "SELECT b.id, 'bucket ' || b.bucket || ' points to a set of bucket ' || s.bucket
         FROM block b JOIN itemset s ON s.id = b.itemset WHERE s.bucket <> b.bucket",
    ),
    (
        "bucket-differs",
        "block",
        "SELECT b.id, 'cut by ' || v.bits || ' bits, it points to a set of ' || s.bits FROM revision v
         JOIN block b ON b.project = v.project AND b.blockset = v.blockset JOIN itemset s ON s.id = b.itemset
         WHERE v.kind <> 3 AND s.bits <> v.bits",
    ),
    (
        "orphan-text",
        "blocktext",
        "SELECT id, 'its block is missing' FROM blocktext t WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.id = t.id)",
    ),
    (
        "orphan-set",
        "itemset",
        "SELECT id, 'no block refers to it' FROM itemset s
         WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.project = s.project AND b.itemset = s.id)",
    ),
    (
        "set-without-names",
        "itemset",
        "SELECT id, 'its names are missing' FROM itemset s
         WHERE NOT EXISTS (SELECT 1 FROM setnames n WHERE n.id = s.id)",
    ),
    (
        "orphan-names",
        "setnames",
        "SELECT id, 'its set is missing' FROM setnames n WHERE NOT EXISTS (SELECT 1 FROM itemset s WHERE s.id = n.id)",
    ),
    (
        "orphan-large-text",
        "bigtext of project",
        "SELECT project, hex(digest) || ': no block refers to it' FROM bigtext t
         WHERE NOT EXISTS (SELECT 1 FROM bigtext_use u WHERE u.project = t.project AND u.digest = t.digest)",
    ),
    (
        "large-text-missing",
        "block",
        "SELECT block, 'its large text ' || hex(digest) || ' is missing' FROM bigtext_use u
         WHERE NOT EXISTS (SELECT 1 FROM bigtext t WHERE t.project = u.project AND t.digest = u.digest)",
    ),
    (
        "orphan-large-text-use",
        "block",
        "SELECT block, 'it is missing, and a large text is kept for it' FROM bigtext_use u
         WHERE NOT EXISTS (SELECT 1 FROM block b WHERE b.id = u.block AND b.project = u.project)",
    ),
    (
        "orphan-waiting",
        "waiting",
        "SELECT id, 'its push, as of revision ' || revision || ', is missing' FROM waiting w
         WHERE ended IS NULL AND NOT EXISTS (SELECT 1 FROM project p JOIN push u ON u.project = p.id AND u.uid = w.uid
           WHERE p.name = w.project AND u.key = w.key AND u.revision >= w.revision)",
    ),
    (
        "lease-unclear",
        "turn",
        "SELECT row_number() OVER (ORDER BY target), target || ': it says a holder or an end of the lease, and not both'
         FROM turn WHERE (holder IS NULL) <> (until_ms IS NULL)",
    ),
    (
        "sweeps-unclear",
        "intent",
        "SELECT id, 'it was swept ' || swept || ' times since ' || settled_ms FROM intent
         WHERE swept NOT BETWEEN 0 AND 2 OR typeof(settled_ms) <> 'integer'",
    ),
    (
        "tombstone-with-push",
        "push",
        "SELECT p.id, 'its key ' || p.key || ' is tombstoned' FROM push p
         JOIN tombstone t ON t.project = p.project AND t.uid = p.uid",
    ),
    (
        "revision-gap",
        "push",
        "SELECT p.id, 'it says ' || p.revision || ' revisions and has ' || count(v.id) || ', numbered ' ||
           coalesce(min(v.revision), 0) || ' to ' || coalesce(max(v.revision), 0)
         FROM push p LEFT JOIN revision v ON v.project = p.project AND v.push = p.id GROUP BY p.id
         HAVING count(v.id) <> p.revision OR min(v.revision) <> 1 OR max(v.revision) <> p.revision",
    ),
    (
        "deliveries-differ",
        "push",
        "SELECT p.id, 'it says ' || p.deliveries || ' deliveries and ' || p.replays || ' replays; its log says ' ||
           count(d.id) || ' and ' || coalesce(sum(d.result = 'replayed'), 0)
         FROM push p LEFT JOIN delivery d ON d.project = p.project AND d.push = p.id AND d.revision IS NOT NULL
           AND d.result <> 'promoted' GROUP BY p.id
         HAVING count(d.id) <> p.deliveries OR coalesce(sum(d.result = 'replayed'), 0) <> p.replays",
    ),
    (
        "executor-missing",
        "delivery",
        "SELECT d.id, 'its executor is not among those of its push' FROM delivery d
         WHERE d.revision IS NOT NULL AND d.executor IS NOT NULL AND NOT EXISTS (SELECT 1 FROM executor e
           WHERE e.project = d.project AND e.push = d.push AND e.executor = d.executor
             AND e.ordinal = coalesce(d.ordinal, ''))",
    ),
];

/// Runs every query.
pub(super) fn check(connection: &Connection, report: &mut Report) -> Result<(), StoreError> {
    for (kind, table, sql) in QUERIES {
        report.rows(connection, kind, table, sql)?;
    }
    Ok(())
}
