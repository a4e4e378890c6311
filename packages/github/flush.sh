#!/usr/bin/env bash
# The flush action: fetches what a run left as artifacts, and delivers it with what the event says and no more.
# Artifacts of a fork's run come from anybody. So nothing in them is believed: run, project and cycle come from the
# event and the API, files are read by fixed names into a folder of our own, and `tallyonce flush` refuses what claims
# anything else.
set -uo pipefail

# At most so much is read: bytes of one artifact, artifacts of a run, pages of a list.
BYTES_MAX=${TALLYONCE_FLUSH_BYTES_MAX:-536870912}
ARTIFACTS_MAX=${TALLYONCE_FLUSH_ARTIFACTS_MAX:-200}
PAGES_MAX=20

put() {
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

# What happened, and what to do; the artifacts stay.
fail() {
    echo "::error title=Tallyonce flush::$1 $2"
    exit "${3:-2}"
}

for tool in curl jq unzip; do
    command -v "$tool" >/dev/null || fail "$tool is not on this runner, and flush needs it: nothing was delivered." "Install it."
done
[ -n "${GH_TOKEN:-}" ] || fail "There is no token to read the artifacts with: nothing was delivered." "Leave github-token alone, or give one."

api=${GITHUB_API_URL:-https://api.github.com}
repository=$GITHUB_REPOSITORY
work=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/tallyonce-flush-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
# In a file, since arguments can be seen by every process.
(umask 077 && printf 'header = "Authorization: Bearer %s"\n' "$GH_TOKEN" >"$work/curl")
unset GH_TOKEN

# fetch FILE PATH [curl options]: one answer of the API.
fetch() {
    local file=$1 path=$2
    shift 2
    curl -fsSL --retry 4 --connect-timeout 20 --max-time 600 --max-filesize "$BYTES_MAX" --config "$work/curl" \
        -H 'Accept: application/vnd.github+json' -H 'X-GitHub-Api-Version: 2022-11-28' -o "$file" "$@" "$api$path"
}

# The run: from the event that nobody but the platform writes, or asked for by its number.
if [ -n "${IN_RUN_ID:-}" ]; then
    [[ $IN_RUN_ID =~ ^[0-9]+$ ]] || fail "run-id is no number: nothing was delivered." "Give the id of the run, as in its address."
    fetch "$work/run" "/repos/$repository/actions/runs/$IN_RUN_ID" ||
        fail "The run $IN_RUN_ID can't be read: nothing was delivered." "Give the job the permission actions: read."
else
    jq -e '.workflow_run | select(. != null)' "$GITHUB_EVENT_PATH" >"$work/run" ||
        fail "No run triggered this workflow: nothing was delivered." "Use the action in a workflow on workflow_run, or give run-id."
fi
of_run() {
    jq -r "$1 // \"\"" "$work/run"
}
run=$(of_run .id)
event=$(of_run .event)
head_repository=$(of_run .head_repository.full_name)
head_owner=$(of_run .head_repository.owner.login)
head_branch=$(of_run .head_branch)
head_sha=$(of_run .head_sha)
actors=" $(of_run .actor.login) $(of_run .triggering_actor.login) "
[[ $run =~ ^[0-9]+$ ]] || fail "The event names no run: nothing was delivered." "Use the action in a workflow on workflow_run."
[ "$(of_run '.repository.full_name')" = "$repository" ] ||
    fail "The run $run is not one of $repository: nothing was delivered." "Use the action in the repository whose run it is."

# Its artifacts, oldest first: a re-run keeps those of the attempts before it.
name=$(printf %s "${IN_ARTIFACT_NAME:-tallyonce}" | tr -c 'A-Za-z0-9._-' '-')
: >"$work/artifacts"
for ((page = 1; page <= PAGES_MAX; page++)); do
    fetch "$work/page" "/repos/$repository/actions/runs/$run/artifacts?per_page=100&page=$page" ||
        fail "The artifacts of run $run can't be listed: nothing was delivered." "Give the job the permission actions: read."
    jq -r --arg name "$name" '.artifacts[] | select(.expired | not)
        | select(.name | startswith($name + "-"))
        | select(.name | ltrimstr($name) | test("^-(sealed|outbox)-[0-9a-f]{16}-[0-9]{1,9}$"))
        | [.created_at, .id, .size_in_bytes, .name] | @tsv' "$work/page" >>"$work/artifacts"
    [ "$(jq '.artifacts | length' "$work/page")" -eq 100 ] || break
done
sort -k1,1 -k2,2n "$work/artifacts" >"$work/sorted"
if [ ! -s "$work/sorted" ]; then
    echo "Run $run left nothing to deliver."
    put delivered 0
    put refused 0
    exit 0
fi

# The number of the pull request that the run was for. The event doesn't name those of forks, so they are looked up by
# head repository and branch, and have to hold the commit that the run was of.
pull_request() {
    local candidates exact number
    [ -n "$head_owner" ] && [ -n "$head_branch" ] && [ -n "$head_sha" ] || return 1
    fetch "$work/pulls" "/repos/$repository/pulls" -G --data-urlencode state=all --data-urlencode per_page=100 \
        --data-urlencode "head=$head_owner:$head_branch" || return 1
    jq --arg head "$head_repository" --arg branch "$head_branch" --arg base "$repository" '[.[]
        | select(.head.repo.full_name == $head and .head.ref == $branch and .base.repo.full_name == $base)
        | {number, state, sha: .head.sha}]' "$work/pulls" >"$work/candidates" || return 1
    exact=$(jq --arg sha "$head_sha" '[.[] | select(.sha == $sha)]' "$work/candidates")
    if [ "$(jq length <<<"$exact")" -eq 0 ]; then
        # Pushed to since: the commit is one of the pull request's all the same.
        candidates=$(jq -r '.[:20][].number' "$work/candidates")
        exact='[]'
        for number in $candidates; do
            for page in 1 2 3; do
                fetch "$work/commits" "/repos/$repository/pulls/$number/commits?per_page=100&page=$page" || return 1
                if jq -e --arg sha "$head_sha" 'any(.[]; .sha == $sha)' "$work/commits" >/dev/null; then
                    exact=$(jq --argjson n "$number" --argjson found "$exact" '$found + [.[] | select(.number == $n)]' "$work/candidates")
                    break
                fi
                [ "$(jq length "$work/commits")" -eq 100 ] || break
            done
        done
    fi
    # Of several, one that is open is meant.
    jq -er 'if length > 1 then map(select(.state == "open")) else . end
        | if length == 1 then .[0].number else empty end' <<<"$exact"
}

# What may be claimed.
cycle=${IN_CYCLE:-}
why=
if [ -z "$cycle" ]; then
    if [ "$event" = pull_request ]; then
        if number=$(pull_request); then
            cycle=pr-$number
        else
            why="no single pull request from branch $head_branch of ${head_repository:-a repository that is gone} holds commit $head_sha"
        fi
    elif [ "$head_repository" = "$repository" ]; then
        cycle=$head_branch
    else
        why="an event $event of another repository doesn't say which cycle it belongs to"
    fi
fi
project=${IN_PROJECT:-}
[ -n "$project" ] || project=$(printf %s "${repository##*/}" | tr '[:upper:]' '[:lower:]')
put cycle "$cycle"

delivered=0
refused=0
worst=0
[ -z "${IN_TO:-}" ] || export TALLYONCE_TO=$IN_TO
[ -z "${IN_TOKEN:-}" ] || export TALLYONCE_TOKEN=$IN_TOKEN
[ -z "${IN_DEADLINE:-}" ] || export TALLYONCE_DEADLINE=$IN_DEADLINE
unset IN_TOKEN

# The worse exit code, in the order of docs/reference/exit-codes.md.
worse() {
    local code
    for code in 75 5 4 3 2 6 7 1; do
        if [ "$1" -eq "$code" ] || [ "$worst" -eq "$code" ]; then
            worst=$code
            return
        fi
    done
    [ "$worst" -ne 0 ] || worst=$1
}

refuse() {
    echo "::error title=Tallyonce flush refused an artifact::$1 is not delivered: $2."
    refused=$((refused + 1))
    worse 4
}

# unpack FILE NAME TO: one entry of an archive, as bytes. Links and paths in the archive mean nothing here.
unpack() {
    unzip -p "$1" "$2" 2>/dev/null | head -c "$BYTES_MAX" >"$3" && [ -s "$3" ]
}

all=$(wc -l <"$work/sorted")
if [ "$all" -gt "$ARTIFACTS_MAX" ]; then
    echo "::error title=Tallyonce flush::Run $run left $all artifacts, at most $ARTIFACTS_MAX are read: the newest are not delivered. Flush them by hand."
    refused=$((all - ARTIFACTS_MAX))
    worse 4
fi

folder=$work/artifact
while IFS=$'\t' read -r _ id size artifact; do
    if [ "$size" -gt "$BYTES_MAX" ]; then
        refuse "$artifact" "it has $size bytes, at most $BYTES_MAX are read"
        continue
    fi
    case $artifact in
        "$name-sealed-"*) ;;
        *)
            # What it says of its sender, only those who may push anyway can be believed.
            if [ "$head_repository" != "$repository" ]; then
                refuse "$artifact" "an outbox is believed only from this repository's own runs"
                continue
            fi
            if [[ $actors == *' dependabot[bot] '* ]]; then
                refuse "$artifact" "runs of Dependabot get no secrets, like those of forks, so their outbox is not believed: let them seal, or re-run the job"
                continue
            fi
            ;;
    esac
    if [ -z "$cycle" ]; then
        refuse "$artifact" "$why. Give the input cycle, if you know it yourself"
        continue
    fi
    rm -rf "$folder"
    mkdir "$folder"
    if ! fetch "$folder/zip" "/repos/$repository/actions/artifacts/$id/zip"; then
        echo "::error title=Tallyonce flush::$artifact can't be fetched, and is not delivered. Re-run this job."
        refused=$((refused + 1))
        worse 75
        continue
    fi
    code=0
    case $artifact in
        "$name-sealed-"*)
            if ! unpack "$folder/zip" push.sealed "$folder/push.sealed"; then
                refuse "$artifact" "it holds no push.sealed"
                continue
            fi
            tallyonce flush --project "$project" --cycle "$cycle" --run "$run" -- "$folder/push.sealed" || code=$?
            ;;
        *)
            mkdir "$folder/outbox"
            while IFS= read -r entry; do
                unpack "$folder/zip" "$entry" "$folder/outbox/$entry" || code=3
            done < <(unzip -Z1 "$folder/zip" 2>/dev/null | grep -E '^[0-9a-zA-Z-]+\.push$')
            tallyonce flush --bound --project "$project" --cycle "$cycle" --run "$run" --outbox "$folder/outbox" || code=$?
            ;;
    esac
    if [ "$code" -eq 0 ]; then
        delivered=$((delivered + 1))
    else
        echo "::error title=Tallyonce flush::$artifact is not delivered (exit $code). The lines above say why."
        refused=$((refused + 1))
        worse "$code"
    fi
done < <(head -n "$ARTIFACTS_MAX" "$work/sorted")

put delivered "$delivered"
put refused "$refused"
echo "Run $run: $delivered delivered, $refused not."
exit "$worst"
