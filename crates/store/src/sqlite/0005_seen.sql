-- Schema 5. When an intent was last seen whole where it was written (milliseconds since 1970 by the forwarder's clock; NULL:
-- never): what is absent later was taken away if it was seen, and lost if it was only confirmed.
ALTER TABLE intent ADD COLUMN seen_ms INTEGER;
CREATE INDEX intent_there ON intent(target, cycle_there);
