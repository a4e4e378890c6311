#!/bin/sh
# Plays `serve` for the proof's own tests: says where it "listens" and what it was told, answers nothing.
# A file of the repository, not one written by a test: a file that is being written cannot be executed, and a
# process forked by another test at that moment would hold it open.
if [ -n "$FAIL" ]; then
  echo "$FAIL" >&2
  exit 2
fi
echo "args $*, kill at <$TALLYONCE_KILL_AT>" >&2
echo "listening on http://127.0.0.1:4711" >&2
exec sleep 600
