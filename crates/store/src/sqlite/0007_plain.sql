-- Schema 7. Which intents a push that waited became; and what intents mean to write stands last, so that whoever only lists
-- them reads none of it.

-- `intents` (JSON): the names of the intents of the revision that was forwarded, 32 hexadecimal digits each. Those that
-- ended before are said to have become all of their push.
ALTER TABLE waiting ADD COLUMN intents TEXT;
UPDATE waiting SET intents = (
  SELECT json_group_array(lower(hex(i.uid))) FROM intent i
  WHERE i.target = waiting.target AND i.project = waiting.project AND i.key = waiting.key) WHERE ended = 0;
UPDATE waiting SET intents = '[]' WHERE ended = 1;

-- Columns as before, in another order.
CREATE TABLE listed(
  id INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE, target TEXT NOT NULL, project TEXT NOT NULL, cycle TEXT NOT NULL,
  round TEXT NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL, cases INTEGER NOT NULL, state INTEGER NOT NULL,
  sends INTEGER NOT NULL, planned_ms INTEGER NOT NULL, changed_ms INTEGER NOT NULL, sent_ms INTEGER, seen_ms INTEGER,
  settled_ms INTEGER NOT NULL, swept INTEGER NOT NULL DEFAULT 0, cycle_there TEXT, flags TEXT NOT NULL, cause TEXT,
  refused TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO listed(id, uid, target, project, cycle, round, key, number, cases, state, sends, planned_ms, changed_ms, sent_ms,
    seen_ms, settled_ms, swept, cycle_there, flags, cause, refused, body)
  SELECT id, uid, target, project, cycle, round, key, number, cases, state, sends, planned_ms, changed_ms, sent_ms,
    seen_ms, settled_ms, swept, cycle_there, flags, cause, refused, body FROM intent;
DROP TABLE intent;
ALTER TABLE listed RENAME TO intent;
CREATE INDEX intent_state ON intent(target, state);
CREATE INDEX intent_cycle ON intent(project, cycle);
CREATE INDEX intent_sweep ON intent(target, settled_ms, swept) WHERE swept < 2 AND state IN (2, 6, 8);
CREATE INDEX intent_push ON intent(project, key);
CREATE INDEX intent_flags ON intent(target, flags) WHERE flags <> '[]';
CREATE INDEX intent_there ON intent(target, cycle_there);
