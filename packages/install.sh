#!/bin/sh
# Puts tallyonce on this machine and prints the folder that holds it:
#
#   PATH="$(sh install.sh):$PATH"
#
# TALLYONCE_DOWNLOAD   where the files of a release lie: https://…, http://…, file://…, or a folder
# TALLYONCE_VERSION    the version wanted, such as 1.4.2; empty: what is there
# TALLYONCE_SHA256     the digest that the archive must have; empty: the one beside it is believed
# TALLYONCE_TARGET     the build wanted; empty: the one for this machine
# TALLYONCE_CACHE      where it is kept; empty: the runner's tool cache, else the user's cache folder, else a new folder
#
# A tallyonce on the PATH is taken as it is, unless another version is wanted. Nothing is pushed here: if this fails,
# no outcome is sent, and none is lost that was recorded.
set -eu

say() {
    printf 'tallyonce install: %s\n' "$1" >&2
}

# What happened, and what to do.
fail() {
    say "$1"
    say "nothing was installed and nothing was sent. $2"
    exit 2
}

wanted=${TALLYONCE_VERSION:-}
wanted=${wanted#v}
[ "$wanted" != latest ] || wanted=
# What is said in a log must not begin a line of it, where runners look for commands.
case $wanted in
    *[!0-9A-Za-z.+-]*) fail "TALLYONCE_VERSION is no version" "Give one such as 1.4.2." ;;
esac

if found=$(command -v tallyonce 2>/dev/null); then
    if [ -z "$wanted" ] || [ "$(tallyonce --version 2>/dev/null)" = "tallyonce $wanted" ]; then
        dirname "$found"
        exit 0
    fi
fi

# The target of this machine, as the archives are named.
target() {
    case $(uname -m) in
        x86_64 | amd64) cpu=x86_64 ;;
        aarch64 | arm64) cpu=aarch64 ;;
        *) return 1 ;;
    esac
    case $(uname -s) in
        Linux) echo "$cpu-unknown-linux-musl" ;;
        Darwin) echo "$cpu-apple-darwin" ;;
        *) return 1 ;;
    esac
}

target=${TALLYONCE_TARGET:-}
[ -n "$target" ] || target=$(target) || fail "there is no build for $(uname -s) on $(uname -m)" \
    "Build it (cargo build --release) and put it on the PATH."

from=${TALLYONCE_DOWNLOAD:-}
from=${from%/}
case $from in
    *"
"*) fail "TALLYONCE_DOWNLOAD has a line break in it" "Give one address or folder." ;;
esac
[ -n "$from" ] || fail "tallyonce ${wanted:+$wanted }isn't on the PATH, and TALLYONCE_DOWNLOAD doesn't say where to get it" \
    "Put it on the PATH, or set TALLYONCE_DOWNLOAD to the address or folder of a release's files."

# What is kept is run unchecked, so nobody else may have put it there.
ours() {
    # Not in the standard, but in all shells that there are.
    # shellcheck disable=SC3067
    [ -O "$1" ]
}

cache=${TALLYONCE_CACHE:-}
if [ -z "$cache" ]; then
    cache=${RUNNER_TOOL_CACHE:-${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}}
    cache=${cache:+$cache/tallyonce}
    if [ -z "$cache" ] || { [ -e "$cache" ] && ! ours "$cache"; }; then
        cache=$(mktemp -d) || fail "there is no folder for temporary files" "Set TALLYONCE_CACHE to a folder that can be written."
    fi
fi
mkdir -p "$cache" || fail "$cache can't be written" "Set TALLYONCE_CACHE to a folder that can be."
ours "$cache" || fail "$cache belongs to another user" "Set TALLYONCE_CACHE to a folder of the user that runs this."
new=$(mktemp -d "$cache/new-XXXXXX") || fail "$cache can't be written" "Set TALLYONCE_CACHE to a folder that can be."
trap 'rm -rf "$new"' EXIT
trap 'exit 130' INT TERM

# One try. 0: it is there. 1: perhaps later. 2: it will not come.
get() {
    if command -v curl >/dev/null 2>&1; then
        status=$(curl -sSL --connect-timeout 20 --max-time 600 -o "$2" -w '%{http_code}' "$1") || return 1
        case $status in
            200) return 0 ;;
            408 | 425 | 429 | 5??) later=1 ;;
            *) later=2 ;;
        esac
        say "$1 answers $status"
        return "$later"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -T 60 -O "$2" "$1" || return 1
    else
        fail "neither curl nor wget is here" "Install one of them, or set TALLYONCE_DOWNLOAD to a folder."
    fi
}

fetch() {
    case $from in
        http://* | https://*)
            for pause in 1 2 4 8 0; do
                code=0
                get "$from/$1" "$2" || code=$?
                [ "$code" -ne 0 ] || return 0
                [ "$code" -ne 2 ] || break
                [ "$pause" -eq 0 ] || sleep "$pause"
            done
            fail "$from/$1 can't be had" "Look at the address (TALLYONCE_DOWNLOAD) and at the network, then run this again."
            ;;
        file://*) file=${from#file://}/$1 ;;
        *://*) fail "$from: only http, https and file addresses are known, and folders" "Mend TALLYONCE_DOWNLOAD." ;;
        *) file=$from/$1 ;;
    esac
    cp "$file" "$2" || fail "$file can't be had" "Put the release's files into the folder that TALLYONCE_DOWNLOAD names."
}

digest() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum <"$1"
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 <"$1"
    elif command -v openssl >/dev/null 2>&1; then
        openssl dgst -sha256 -r <"$1"
    else
        fail "nothing here computes SHA-256 (sha256sum, shasum or openssl)" "Install one of them: an archive isn't used unchecked."
    fi | cut -c 1-64
}

name=tallyonce-$target.tar.gz
sum=${TALLYONCE_SHA256:-}
if [ -z "$sum" ]; then
    fetch "$name.sha256" "$new/sum"
    sum=$(cut -c 1-64 "$new/sum" | head -n 1)
fi
sum=$(printf '%s' "$sum" | tr 'A-F' 'a-f')
case $sum in
    *[!0-9a-f]*) sum= ;;
esac
[ ${#sum} -eq 64 ] || fail "the digest for $name is no SHA-256" "Get the files of the release anew."

# Kept by its digest: what is there was checked when it came.
home=$cache/$sum
if [ ! -x "$home/tallyonce" ]; then
    fetch "$name" "$new/archive"
    is=$(digest "$new/archive")
    [ "$is" = "$sum" ] || fail "$name is damaged or not the one that was meant: its SHA-256 is $is, it should be $sum" \
        "Get the files of the release anew; if it stays so, don't use them."
    mkdir "$new/out"
    tar -xzf "$new/archive" -C "$new/out" || fail "$name can't be unpacked" "Get the files of the release anew."
    [ -f "$new/out/tallyonce" ] || fail "$name holds no tallyonce" "Get the files of the release anew."
    chmod 755 "$new/out/tallyonce"
    "$new/out/tallyonce" --version >/dev/null || fail "the tallyonce in $name doesn't run here" \
        "It is built for $target; set TALLYONCE_TARGET if this machine needs another build."
    # Somebody else may have been quicker: theirs is the same.
    [ -d "$home" ] || mv "$new/out" "$home" 2>/dev/null || [ -x "$home/tallyonce" ] ||
        fail "$home can't be written" "Set TALLYONCE_CACHE to a folder that can be."
fi
has=$("$home/tallyonce" --version)
[ -z "$wanted" ] || [ "$has" = "tallyonce $wanted" ] || fail "$from holds $has, wanted is $wanted" \
    "Name the release that is wanted in TALLYONCE_DOWNLOAD, or the version that is there in TALLYONCE_VERSION."
say "$has in $home"
echo "$home"
