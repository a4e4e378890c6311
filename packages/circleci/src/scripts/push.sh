#!/bin/sh
# Pushes test outcomes from any CI job: gets tallyonce if it is not here, and runs it with what the package was told.
# The packages of the platforms that can't read a file of ours hold this text as it is.
#
# TALLYONCE_CI_PATHS     reports, patterns or folders: one a line, or separated by blanks if it is a single line
# TALLYONCE_CI_COMMAND   run this first, push whatever it wrote, also if it failed
# TALLYONCE_CI_ARGS      more arguments for tallyonce, separated like the paths
# TALLYONCE_CI_X         wins over TALLYONCE_X, for each X below; one that is empty hides nothing
#
# TALLYONCE_CI_DO is push, or flush to deliver what is kept, or key to print the key.
set -ef
# Of the install.sh of this release: only that one is run.
install_sha256=4419fb8c5a6b17070605292463d8379c4dcf45fc57260c2f196c7c5e6b80285a
line='
'
for name in TO TOKEN PROJECT CYCLE RUN ATTEMPT JOB SHARD VARIANT ROUND EXPECT FORMAT ON_DIFFERENCE FAIL_ON DEADLINE \
    OUTBOX SEAL PARTIAL ALLOW_EMPTY EXIT_WITH OUTPUTS SUMMARY LINKS VERSION DOWNLOAD SHA256; do
    eval "value=\${TALLYONCE_CI_$name:-}"
    unset "TALLYONCE_CI_$name"
    value=$(printf %s "$value")
    # Azure Pipelines leaves $(NAME) standing for a variable that there is not.
    case $value in
        "\$("*")")
            inner=${value#??}
            case ${inner%?} in
                '' | *[!A-Za-z0-9._-]*) ;;
                *)
                    [ "$name" != SHARD ] ||
                        echo "the setting SHARD names a variable that there is not: the push goes on without it." >&2
                    value=
                    ;;
            esac
            ;;
        # It would begin a line of the log, where runners look for commands.
        *"$line"*) echo "the setting $name has a line break in it: nothing was sent." >&2 && exit 2 ;;
    esac
    if [ -n "$value" ]; then
        export "TALLYONCE_$name=$value"
    fi
    case $name in
        RUN | JOB | VARIANT | ROUND | CYCLE | SHARD | ATTEMPT)
            # A name left standing is the same in all runs and jobs: they would share a key.
            eval "value=\${TALLYONCE_$name:-}"
            case $value in
                *"\$("* | *"\${"* | *"\$"[A-Za-z_]*)
                    echo "the setting $name holds a variable that the platform did not replace: nothing was sent." >&2
                    echo "Name one that the platform knows at this place, or write its value." >&2
                    exit 2
                    ;;
            esac
            ;;
    esac
done
unset value inner

wanted=${TALLYONCE_VERSION:-}
wanted=${wanted#v}
[ "$wanted" != latest ] || wanted=
if ! has=$(tallyonce --version 2>/dev/null) || { [ -n "$wanted" ] && [ "$has" != "tallyonce $wanted" ]; }; then
    folder=$(mktemp -d)
    install=${TALLYONCE_CI_INSTALL:-$folder/install.sh}
    if [ -z "${TALLYONCE_CI_INSTALL:-}" ]; then
        code=0
        case ${TALLYONCE_DOWNLOAD:-} in
            '') code=2 ;;
            http://* | https://*)
                if command -v curl >/dev/null 2>&1; then
                    curl -fsSL --retry 5 --connect-timeout 20 -o "$install" "${TALLYONCE_DOWNLOAD%/}/install.sh" || code=2
                else
                    wget -q -T 60 -O "$install" "${TALLYONCE_DOWNLOAD%/}/install.sh" || code=2
                fi
                ;;
            *) cp "${TALLYONCE_DOWNLOAD#file://}/install.sh" "$install" || code=2 ;;
        esac
        if [ "$code" -ne 0 ]; then
            echo "tallyonce ${wanted:+$wanted }isn't on the PATH, and TALLYONCE_DOWNLOAD leads to no install.sh: nothing was sent." >&2
            echo "Set it to the address or folder of a release's files, or put tallyonce into the image." >&2
            exit "$code"
        fi
        if command -v sha256sum >/dev/null 2>&1; then
            is=$(sha256sum <"$install")
        elif command -v shasum >/dev/null 2>&1; then
            is=$(shasum -a 256 <"$install")
        elif [ -n "${TALLYONCE_SHA256:-}" ]; then
            echo "nothing here computes SHA-256 (sha256sum or shasum), and TALLYONCE_SHA256 is set: nothing was sent." >&2
            echo "Install one of them, or put tallyonce into the image." >&2
            exit 2
        else
            echo "warning: nothing here computes SHA-256 (sha256sum or shasum): install.sh is run unchecked." >&2
            is=$install_sha256
        fi
        if [ "${is%% *}" != "$install_sha256" ]; then
            echo "the install.sh that TALLYONCE_DOWNLOAD leads to is not that of this package's release: nothing was sent." >&2
            echo "Let the package and TALLYONCE_DOWNLOAD name the same release, or put tallyonce into the image." >&2
            exit 2
        fi
    fi
    # The installer has no use for the token.
    bin=$(env -u TALLYONCE_TOKEN sh "$install")
    rm -rf "$folder"
    PATH=$bin:$PATH
    export PATH
fi
case ${TALLYONCE_CI_DO:=push} in
    key | flush) exec tallyonce "$TALLYONCE_CI_DO" ;;
esac

blanks=$IFS
set --
case ${TALLYONCE_CI_ARGS:-} in
    *"$line"*) IFS=$line ;;
esac
for word in ${TALLYONCE_CI_ARGS:-}; do
    set -- "$@" "$word"
done
IFS=$blanks
[ -n "${TALLYONCE_CI_COMMAND:-}" ] || set -- "$@" --
case ${TALLYONCE_CI_PATHS:-} in
    *"$line"*) IFS=$line ;;
esac
for word in ${TALLYONCE_CI_PATHS:-}; do
    if [ -n "${TALLYONCE_CI_COMMAND:-}" ]; then
        set -- "$@" --report "$word"
    else
        set -- "$@" "$word"
    fi
done
IFS=$blanks
if [ -z "${TALLYONCE_CI_COMMAND:-}" ]; then
    exec tallyonce push "$@"
fi
# The tests have no use for the token.
if command -v bash >/dev/null 2>&1; then
    exec tallyonce run "$@" -- env -u TALLYONCE_TOKEN bash -eo pipefail -c "$TALLYONCE_CI_COMMAND"
fi
exec tallyonce run "$@" -- env -u TALLYONCE_TOKEN sh -ec "$TALLYONCE_CI_COMMAND"
