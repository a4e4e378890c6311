-- Schema 1. The project leads every key; nothing of one project refers to another. Bytes: see the codec's head.
CREATE TABLE schema_version(version INTEGER PRIMARY KEY);

CREATE TABLE project(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);

CREATE TABLE cycle(
  id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, name TEXT NOT NULL,
  UNIQUE(project, name));

-- `version` rises with every change of what the round counts; AUTOINCREMENT: an id is never given twice, so that
-- (id, version) names one state for ever.
CREATE TABLE round(
  id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, cycle INTEGER NOT NULL, round TEXT NOT NULL,
  run TEXT NOT NULL, workflow TEXT, run_counter INTEGER, run_url TEXT, recorded_at TEXT NOT NULL,
  closed INTEGER NOT NULL DEFAULT 0, pinned INTEGER NOT NULL DEFAULT 0, version INTEGER NOT NULL DEFAULT 0,
  UNIQUE(project, cycle, round));

-- `uid`: the push's public id, 16 bytes over project and key. `counts`: total, passed, failed, errored, skipped, flaky of
-- what the push counts, each eight bytes. `job`: '' for none. `expect`: the most that any accepted delivery expected.
CREATE TABLE push(
  id INTEGER PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, uid BLOB NOT NULL, key TEXT NOT NULL,
  round INTEGER NOT NULL, job TEXT NOT NULL, variant TEXT NOT NULL, shard INTEGER, shard_total INTEGER,
  run TEXT NOT NULL, label TEXT, commit_id TEXT, expect INTEGER, contested INTEGER NOT NULL DEFAULT 0,
  late INTEGER NOT NULL, revision INTEGER NOT NULL, deliveries INTEGER NOT NULL, replays INTEGER NOT NULL,
  counts BLOB NOT NULL,
  UNIQUE(project, uid));
CREATE INDEX push_round ON push(project, round, job, variant);

-- `kind`: 0 first, 1 revised, 2 kept, 3 promoted (of revision `of`). A promotion has no blocks: its content is that of
-- `of`. `counts`: of the content by itself. `promotion_*`: the promotion as it was asked for, under its own key.
CREATE TABLE revision(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, push INTEGER NOT NULL, revision INTEGER NOT NULL,
  kind INTEGER NOT NULL, of INTEGER, exact INTEGER NOT NULL DEFAULT 0,
  ordinal TEXT, ordinal_scope INTEGER NOT NULL, executor TEXT, incarnation BLOB,
  content BLOB NOT NULL, outcomes BLOB NOT NULL, bits INTEGER NOT NULL, counts BLOB NOT NULL,
  files TEXT NOT NULL, report TEXT NOT NULL, incomplete INTEGER NOT NULL, recorded_at TEXT NOT NULL,
  promotion_key TEXT, promotion_asked INTEGER, receipt BLOB NOT NULL,
  UNIQUE(project, push, revision));
CREATE UNIQUE INDEX revision_promotion ON revision(project, promotion_key) WHERE promotion_key IS NOT NULL;

CREATE TABLE executor(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, push INTEGER NOT NULL, ordinal TEXT NOT NULL,
  executor TEXT NOT NULL,
  UNIQUE(project, push, executor, ordinal));

-- `push` is NULL where a refused delivery left no trace under its key.
CREATE TABLE delivery(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, push INTEGER, body BLOB, uid BLOB NOT NULL, at TEXT NOT NULL,
  result TEXT NOT NULL, revision INTEGER, ordinal TEXT, executor TEXT, incarnation BLOB);
CREATE INDEX delivery_push ON delivery(project, push, body);

CREATE TABLE tombstone(
  project INTEGER NOT NULL, uid BLOB NOT NULL, key TEXT NOT NULL,
  PRIMARY KEY(project, uid)) WITHOUT ROWID;

CREATE TABLE itemset(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, digest BLOB NOT NULL, bits INTEGER NOT NULL,
  bucket INTEGER NOT NULL, n INTEGER NOT NULL, hashes BLOB NOT NULL,
  UNIQUE(project, digest));
CREATE INDEX itemset_bucket ON itemset(project, bits, bucket);

-- Apart, as history must not read over names. id: that of the set.
CREATE TABLE setnames(id INTEGER PRIMARY KEY, names BLOB NOT NULL);

CREATE TABLE block(
  id INTEGER PRIMARY KEY, project INTEGER NOT NULL, push INTEGER NOT NULL, revision INTEGER NOT NULL,
  bucket INTEGER NOT NULL, n INTEGER NOT NULL, itemset INTEGER NOT NULL, codes BLOB NOT NULL, times BLOB NOT NULL,
  UNIQUE(project, push, revision, bucket));
CREATE INDEX block_set ON block(project, itemset);

-- id: that of the block.
CREATE TABLE blocktext(id INTEGER PRIMARY KEY, body BLOB NOT NULL);

CREATE TABLE bigtext(
  project INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY(project, digest)) WITHOUT ROWID;
-- Which blocks refer to a large text.
CREATE TABLE bigtext_use(
  project INTEGER NOT NULL, digest BLOB NOT NULL, block INTEGER NOT NULL,
  PRIMARY KEY(project, digest, block)) WITHOUT ROWID;
CREATE INDEX bigtext_block ON bigtext_use(block);
