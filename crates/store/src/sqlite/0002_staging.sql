-- Schema 2. A content's blocks lie under a number of their own (`blockset`), so that a staged content becomes visible by
-- one row that names its number. A promotion names that of the revision it promotes.
CREATE TABLE blockset(id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL);
INSERT INTO blockset(id, project) SELECT id, project FROM revision WHERE kind <> 3;

ALTER TABLE revision ADD COLUMN blockset INTEGER NOT NULL DEFAULT 0;
UPDATE revision SET blockset = id WHERE kind <> 3;
UPDATE revision SET blockset = (
  SELECT s.id FROM revision s WHERE s.project = revision.project AND s.push = revision.push AND s.revision = revision.of)
WHERE kind = 3;

CREATE TABLE block_new(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, blockset INTEGER NOT NULL, bucket INTEGER NOT NULL,
  n INTEGER NOT NULL, itemset INTEGER NOT NULL, codes BLOB NOT NULL, times BLOB NOT NULL,
  UNIQUE(project, blockset, bucket));
INSERT INTO block_new(id, project, blockset, bucket, n, itemset, codes, times)
  SELECT b.id, b.project, r.blockset, b.bucket, b.n, b.itemset, b.codes, b.times
  FROM block b JOIN revision r ON r.project = b.project AND r.push = b.push AND r.revision = b.revision;
DROP TABLE block;
ALTER TABLE block_new RENAME TO block;
CREATE INDEX block_set ON block(project, itemset);

-- One epoch of a staged push. `uid`: as in push, which has no row for it before the first commit. `fate`: 0 open,
-- 1 superseded, 2 abandoned, 3 cancelled, 4 refused (`refusal`: why, as JSON), 5 committed as `revision`. Its chunks'
-- blocks lie under `blockset`: readers get there from a revision only. `manifest`: JSON of all but the chunks;
-- `promises`: 36 bytes a chunk, its SHA-256 and u32 little endian its number of outcomes. `swept`: 1 once a dead epoch
-- has no blocks left. `touched_ms`, `idle_seen_ms` (when it was first seen idle too long): the recorder's clock; they
-- decide only when to let others take over and when to collect.
CREATE TABLE stage(
  id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, uid BLOB NOT NULL, key TEXT NOT NULL,
  epoch INTEGER NOT NULL, fate INTEGER NOT NULL, revision INTEGER, refusal TEXT, cycle TEXT NOT NULL,
  round TEXT NOT NULL, manifest_digest BLOB NOT NULL, content BLOB NOT NULL, bits INTEGER NOT NULL,
  chunks INTEGER NOT NULL, manifest TEXT NOT NULL, promises BLOB NOT NULL, blockset INTEGER NOT NULL, ordinal TEXT,
  contested INTEGER NOT NULL DEFAULT 0, swept INTEGER NOT NULL DEFAULT 0, began_at TEXT NOT NULL,
  touched_ms INTEGER NOT NULL, idle_seen_ms INTEGER,
  UNIQUE(project, uid, epoch));
CREATE INDEX stage_ended ON stage(fate, swept);

-- Who began or resumed an epoch. An incarnation is bound to the first epoch that admitted it, and to no other.
CREATE TABLE stage_sender(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, uid BLOB NOT NULL, stage INTEGER NOT NULL, ordinal TEXT,
  executor TEXT, incarnation BLOB);
CREATE UNIQUE INDEX stage_incarnation ON stage_sender(project, uid, incarnation) WHERE incarnation IS NOT NULL;
CREATE INDEX stage_senders ON stage_sender(project, stage);

-- A chunk that is there. `counts`, `content`, `outcomes`: of its outcomes alone. `compared_with`: the revision of the
-- push that `comparison` and `listed` (JSON) hold it against; NULL if nothing was recorded then.
CREATE TABLE stage_chunk(
  project INTEGER NOT NULL, stage INTEGER NOT NULL, chunk INTEGER NOT NULL, n INTEGER NOT NULL, counts BLOB NOT NULL,
  content BLOB NOT NULL, outcomes BLOB NOT NULL, compared_with INTEGER, comparison TEXT, listed TEXT,
  PRIMARY KEY(project, stage, chunk)) WITHOUT ROWID;
