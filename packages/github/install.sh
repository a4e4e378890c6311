#!/usr/bin/env bash
# The action's first step: finds or fetches tallyonce, and puts it on the PATH of the steps that follow.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

[ -z "${IN_VERSION:-}" ] || export TALLYONCE_VERSION=$IN_VERSION
[ -z "${IN_SHA256:-}" ] || export TALLYONCE_SHA256=$IN_SHA256
[ -z "${IN_DOWNLOAD:-}" ] || export TALLYONCE_DOWNLOAD=$IN_DOWNLOAD

# Without an address: the releases of the repository that the action itself comes from. A release of its own for every
# tag: one of v1, which moves, and one of v1.4.2, which doesn't. A branch or a commit has none and takes the latest.
if [ -z "${TALLYONCE_DOWNLOAD:-}" ] && [ -n "${ACTION_REPOSITORY:-}" ]; then
    releases=${GITHUB_SERVER_URL:-https://github.com}/$ACTION_REPOSITORY/releases
    wanted=${TALLYONCE_VERSION:-}
    wanted=${wanted#v}
    if [ -n "$wanted" ] && [ "$wanted" != latest ]; then
        TALLYONCE_DOWNLOAD=$releases/download/v$wanted
    elif [[ ${ACTION_REF:-} =~ ^v[0-9]+(\.[0-9]+)*$ ]]; then
        TALLYONCE_DOWNLOAD=$releases/download/$ACTION_REF
    else
        TALLYONCE_DOWNLOAD=$releases/latest/download
    fi
    export TALLYONCE_DOWNLOAD
fi

if ! folder=$(sh "$here/../install.sh"); then
    echo "::error title=Tallyonce is not here::It could not be installed, so nothing was sent. The lines above say why."
    exit 2
fi
echo "$folder" >>"$GITHUB_PATH"
