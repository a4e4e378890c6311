-- Schema 6. Which place a target's ledger stands for, as people read it: the product, its address and its own project. No row:
-- nobody took a turn there since this schema. Ids of `intent` and `cycle_there` mean something in that place alone.
CREATE TABLE target_place(target TEXT PRIMARY KEY, place TEXT NOT NULL) WITHOUT ROWID;
