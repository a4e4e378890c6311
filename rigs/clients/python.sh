#!/usr/bin/env bash
# Puts vendors' own clients into a Python environment, to be run against the stubs:
#
#     python.sh FOLDER PACKAGE==VERSION...
#
# The programs are then in FOLDER/bin. Does nothing if the same packages are there already.
set -euo pipefail

folder=$1
shift
wanted=$*
done_file="$folder/installed"

if [ -f "$done_file" ] && [ "$(cat "$done_file")" = "$wanted" ]; then
    exit 0
fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@"
printf '%s' "$wanted" >"$done_file"
