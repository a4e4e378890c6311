-- Schema 4. Forwarding by the server itself: what waits for a target, who works there, and how often what settled was
-- looked at again.

-- Who has the turn, and until when others leave it the target (milliseconds since 1970); NULL: nobody says to be working.
ALTER TABLE turn ADD COLUMN holder TEXT;
ALTER TABLE turn ADD COLUMN until_ms INTEGER;

-- When `state` changed last, and how many sweeps (of 2) were done since.
ALTER TABLE intent ADD COLUMN settled_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE intent ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
UPDATE intent SET settled_ms = changed_ms;
CREATE INDEX intent_sweep ON intent(target, settled_ms, swept) WHERE swept < 2 AND state IN (2, 6, 8);
CREATE INDEX intent_push ON intent(project, key);
CREATE INDEX intent_flags ON intent(target, flags) WHERE flags <> '[]';

-- A push, as of one revision, that is to go to a target: written by the transaction that records the revision. It names the
-- push by its names, as an intent does, and stays when it has ended. `uid`: as in push. `since_ms`: when it was recorded.
-- `due_ms`: when it may be tried, 0 at once; `tries`: how often it was put off, `cause`: why the last time. `ended`: NULL it
-- waits, 0 forwarded, 1 its round was deleted before; then `ended_ms` (0: not known), `ended_revision` (up to which what
-- counts was forwarded, 0: nothing was), `cycle_there`, `flags` (JSON: a list of words) of that cycle, and `refused` (JSON: a
-- list of {"item", "why"}), items without a case there.
CREATE TABLE waiting(
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, project TEXT NOT NULL, cycle TEXT NOT NULL, round TEXT NOT NULL,
  uid BLOB NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, since_ms INTEGER NOT NULL,
  due_ms INTEGER NOT NULL DEFAULT 0, tries INTEGER NOT NULL DEFAULT 0, cause TEXT, ended INTEGER, ended_ms INTEGER,
  ended_revision INTEGER, cycle_there TEXT, flags TEXT, refused TEXT,
  UNIQUE(project, uid, target, revision));
CREATE INDEX waiting_open ON waiting(target, id, due_ms) WHERE ended IS NULL;
