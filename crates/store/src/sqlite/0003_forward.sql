-- Schema 3. The forwarding ledger: what was, or may have been, written into repositories without keys. Rows name pushes by
-- their names, not by rows of this store, and stay when a round is deleted: what they tell of stands elsewhere.

-- The highest turn that was given out at a target; every lower one is fenced off.
CREATE TABLE turn(target TEXT PRIMARY KEY, turn INTEGER NOT NULL) WITHOUT ROWID;

-- One intent; `id` rises in the order of planning. `uid`: its name, 128 bits big endian. `project`, `cycle`, `round`, `key`:
-- the push that it forwards; `number`: among the intents of that push, from 0. `cases`: how many it is about. `state`:
-- 0 planned, 1 sending, 2 acked, 3 rejected, 4 unknown, 5 reconciling, 6 found, 7 absent, 8 parked. `sends`: how often it was
-- sent. Times are milliseconds since 1970 by the forwarder's clock; `sent_ms` NULL: never. `cycle_there`: what the
-- repository calls the cycle that it writes into. `flags` (JSON): a list of words. `cause`: what happened last, in words.
-- `refused` (JSON): a list of {"item", "why"}. `body`: what it means to write; only the forwarder reads it, and no step
-- changes it.
CREATE TABLE intent(
  id INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE, target TEXT NOT NULL, project TEXT NOT NULL, cycle TEXT NOT NULL,
  round TEXT NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL, cases INTEGER NOT NULL, state INTEGER NOT NULL,
  sends INTEGER NOT NULL, planned_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL, sent_ms INTEGER, cycle_there TEXT,
  flags TEXT NOT NULL, cause TEXT, refused TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX intent_state ON intent(target, state);
CREATE INDEX intent_cycle ON intent(project, cycle);

-- The cycle of a repository that stands for a cycle or round of ours. `uid`: the write id of ours, 128 bits big endian.
CREATE TABLE cycle_there(
  target TEXT NOT NULL, uid BLOB NOT NULL, cycle TEXT NOT NULL,
  PRIMARY KEY(target, uid)) WITHOUT ROWID;
