#!/usr/bin/env bash
# The action's second step: runs the push, and says for the steps that follow what became of it and what has to be kept.
# It ends with 0 whatever comes out: those steps still have to run, and the last one ends the action.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
temp=${RUNNER_TEMP:-${TMPDIR:-/tmp}}

put() {
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

if ! cd "${IN_WORKING_DIRECTORY:-.}"; then
    echo "::error title=Tallyonce::There is no folder of the name that working-directory gives: nothing was sent."
    put code 2
    exit 0
fi

# The outbox is where the steps that follow look for it, whatever tallyonce.toml says.
outbox=${TALLYONCE_CI_OUTBOX:-${TALLYONCE_OUTBOX:-.tallyonce/outbox}}
export TALLYONCE_CI_OUTBOX=$outbox

# A fork's pull request gets no secrets. Without a token its push is sealed, and a trusted workflow delivers it.
token=${TALLYONCE_CI_TOKEN:-}${TALLYONCE_TOKEN:-}${TALLYONCE_TOKEN_FILE:-}
seal=no
case ${IN_SEAL:-auto} in
    always) seal=yes ;;
    never) ;;
    auto)
        if [ "${IN_EVENT:-}" = pull_request ] && [ "${IN_HEAD_REPOSITORY:-}" != "${GITHUB_REPOSITORY:-}" ] && [ -z "$token" ]; then
            seal=yes
        fi
        ;;
    *)
        echo "::error title=Tallyonce::The input seal is auto, always or never: nothing was sent."
        put code 2
        exit 0
        ;;
esac
keep=$(mktemp -d "$temp/tallyonce-XXXXXX") || exit 1
if [ "$seal" = yes ]; then
    export TALLYONCE_CI_SEAL=$keep/push.sealed
fi

# The command's own exit code, which that of the push may hide.
export IN_COMMAND=${TALLYONCE_CI_COMMAND:-} IN_COMMAND_CODE=$keep.command
if [ -n "$IN_COMMAND" ]; then
    # shellcheck disable=SC2016
    export TALLYONCE_CI_COMMAND='code=0
        bash -eo pipefail -c "$IN_COMMAND" || code=$?
        echo "$code" >"$IN_COMMAND_CODE"
        exit "$code"'
fi

# Whoever cancels the job ends this script; the push has to hear of it, to keep what it holds.
set -m
sh "$here/../push.sh" &
push=$!
told=no
trap 'told=yes; kill -TERM "$push" 2>/dev/null' INT TERM
wait "$push"
code=$?
while [ "$told" = yes ]; do
    told=no
    wait "$push"
    code=$?
done
set +m
# The command may have left a line open. An empty line is no better: not all runners take it.
[ -z "$(tail -c 1 "$GITHUB_OUTPUT")" ] || echo >>"$GITHUB_OUTPUT"
put code "$code"
[ -z "$IN_COMMAND" ] || put command "$(cat "$IN_COMMAND_CODE" 2>/dev/null || echo unknown)"

# A command's exit code hides that of the push; the push itself wrote it down, unless it was killed.
ended=$(awk '/^exit=/ { print substr($0, 6) } /^exit<</ { if (getline > 0) print }' "$GITHUB_OUTPUT" | tail -n 1)

# What was refused for good stays in the outbox as well, and would be refused again: so not what lies there counts, but how
# this push ended. One that was killed may have left something.
kind=
if [ -f "$keep/push.sealed" ]; then
    kind=sealed
elif { [ "${ended:=$code}" = 75 ] || [ "$ended" -ge 128 ]; } && [ -n "$(find "$outbox" -maxdepth 1 -name '*.push' 2>/dev/null | head -n 1)" ]; then
    kind=outbox
    cp "$outbox"/*.push "$keep/" || kind=
fi
[ -n "$kind" ] || exit 0

# One name for each leg of the matrix and each attempt: legs have other keys, re-runs have other attempts.
digest() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum; else shasum -a 256; fi | cut -c 1-16
}
key=$(TALLYONCE_CI_DO=key sh "$here/../push.sh" 2>/dev/null)
hash=$(printf '%s\n%s\n' "$key" "${TALLYONCE_CI_ARGS:-}" | digest)
first=$(printf %s "${IN_ARTIFACT_NAME:-tallyonce}" | tr -c 'A-Za-z0-9._-' '-')
put kind "$kind"
put artifact "$first-$kind-$hash-${GITHUB_RUN_ATTEMPT:-1}"
put artifact-path "$keep"
