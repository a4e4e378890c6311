-- Schema 2. A content's blocks lie under a number of their own (`blockset`), so that a staged content becomes visible by
-- one row that names its number. Readers get to blocks from a revision only. A promotion names the number of the revision
-- that it promotes; no number is named by two contents, and none is given twice.
CREATE TABLE blockset(id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL);
INSERT INTO blockset(id, project) SELECT id, project FROM revision WHERE kind <> 3;

-- `bits`: by how many bits its content is cut into buckets (the codec's head).
ALTER TABLE revision ADD COLUMN blockset INTEGER NOT NULL DEFAULT 0;
UPDATE revision SET blockset = id WHERE kind <> 3;
UPDATE revision SET blockset = coalesce((
  SELECT s.id FROM revision s
  WHERE s.project = revision.project AND s.push = revision.push AND s.revision = revision.of AND s.kind <> 3), 0)
WHERE kind = 3;
CREATE INDEX revision_blockset ON revision(project, blockset);

-- How `content` and `outcomes` were made: 1 BLAKE3 over all outcomes at once, by programs of schema 1; 2 the tree of
-- `domain::content`. Those of 1 stay as receipts name them, and nothing is held against them any more.
ALTER TABLE revision ADD COLUMN digests INTEGER NOT NULL DEFAULT 1;

CREATE TABLE block_new(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, blockset INTEGER NOT NULL, bucket INTEGER NOT NULL,
  n INTEGER NOT NULL, itemset INTEGER NOT NULL, codes BLOB NOT NULL, times BLOB NOT NULL,
  UNIQUE(project, blockset, bucket));
INSERT INTO block_new(id, project, blockset, bucket, n, itemset, codes, times)
  SELECT b.id, b.project, r.blockset, b.bucket, b.n, b.itemset, b.codes, b.times
  FROM block b JOIN revision r ON r.project = b.project AND r.push = b.push AND r.revision = b.revision AND r.kind <> 3;
DROP TABLE block;
ALTER TABLE block_new RENAME TO block;
CREATE INDEX block_set ON block(project, itemset);

-- `recorded`: 1 once a push of the project was recorded. One that only a staged push has named is not there for readers.
ALTER TABLE project ADD COLUMN recorded INTEGER NOT NULL DEFAULT 0;
UPDATE project SET recorded = 1;

-- One epoch of a staged push; the rows of a push are numbered from 1 without gaps, and only the last can be open. `uid`:
-- as in push, which has no row for it before the first commit. `fate`: 0 open, 1 superseded, 2 abandoned, 3 cancelled,
-- 4 refused, 5 committed as `revision` (of the push with this `uid`). `refusal` (JSON): what every commit of a refused
-- epoch is answered. `cycle`, `round`: names of where the push belongs. `manifest_digest`, `content`: what tells manifests
-- and contents from one another. `n`: outcomes of all chunks. Chunk c of 2^`bits` holds the items whose hashes begin with
-- the `bits` bits of c. `manifest` (JSON): all of the manifest that opened it but key, sender, chunks and items.
-- `promises`: 36 bytes a chunk: SHA-256 of its body as it travels, u32 little endian number of its outcomes.
-- `blockset`: where the chunks' blocks lie, cut by the larger of `bits` and the content's own bits (the codec's head).
-- `blocks`: 0 they lie there for this epoch alone, 1 they are deleted, and so are the row of `blockset` and those of
-- `stage_chunk`, 2 they are the revision's since the commit. `contested`: a second leg was refused beside it.
-- `touched_ms` (the last begin or put), `idle_seen_ms` (when it was first seen idle for too long; NULL: it was not), both
-- by the recorder's clock: they decide only when to let others take over and when to collect.
CREATE TABLE stage(
  id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, uid BLOB NOT NULL, key TEXT NOT NULL,
  epoch INTEGER NOT NULL, fate INTEGER NOT NULL, revision INTEGER, refusal TEXT, cycle TEXT NOT NULL,
  round TEXT NOT NULL, manifest_digest BLOB NOT NULL, content BLOB NOT NULL, n INTEGER NOT NULL, bits INTEGER NOT NULL,
  blockset INTEGER NOT NULL, blocks INTEGER NOT NULL DEFAULT 0, contested INTEGER NOT NULL DEFAULT 0,
  began_at TEXT NOT NULL, touched_ms INTEGER NOT NULL, idle_seen_ms INTEGER, manifest TEXT NOT NULL,
  promises BLOB NOT NULL,
  UNIQUE(project, uid, epoch));
CREATE INDEX stage_open ON stage(touched_ms) WHERE fate = 0;
CREATE INDEX stage_dead ON stage(id) WHERE fate <> 0 AND blocks = 0;

-- Who began or resumed an epoch, each once, in the order of coming. An incarnation is bound to the epoch of its first row
-- among all of a push. `uid`: that of the stage. `ordinal_scope`: as in revision.
CREATE TABLE stage_sender(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, uid BLOB NOT NULL, stage INTEGER NOT NULL, ordinal TEXT,
  ordinal_scope INTEGER NOT NULL, executor TEXT, incarnation BLOB);
CREATE INDEX stage_incarnation ON stage_sender(project, uid, incarnation);
CREATE INDEX stage_senders ON stage_sender(project, stage);

-- A chunk that is there. `n`, `counts`, `content`, `outcomes` (tree digests): of its outcomes alone. `compared_with`: the
-- revision of the push that `comparison` and `listed` (JSON) hold it against; NULL if nothing was recorded then. `listed`:
-- its first items that differ, as receipts list them; none if the chunks before it have enough. These two are needed
-- until the commit, and NULL after it.
CREATE TABLE stage_chunk(
  project INTEGER NOT NULL, stage INTEGER NOT NULL, chunk INTEGER NOT NULL, n INTEGER NOT NULL, counts BLOB NOT NULL,
  content BLOB NOT NULL, outcomes BLOB NOT NULL, compared_with INTEGER, comparison TEXT, listed TEXT,
  PRIMARY KEY(project, stage, chunk)) WITHOUT ROWID;
