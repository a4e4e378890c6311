#!/usr/bin/env bash
# Puts vendors' own clients into a Node folder, to be run against the stubs:
#
#     node.sh FOLDER PACKAGE@VERSION...
#
# The programs are then in FOLDER/node_modules/.bin. Does nothing if the same packages are there already.
set -euo pipefail

folder=$1
shift
wanted=$*
done_file="$folder/installed"

if [ -f "$done_file" ] && [ "$(cat "$done_file")" = "$wanted" ]; then
    exit 0
fi
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --no-update-notifier --fetch-retries=1 "$@"
printf '%s' "$wanted" >installed
