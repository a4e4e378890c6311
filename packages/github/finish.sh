#!/usr/bin/env bash
# The action's last step: ends it as the push ended, in words.
set -uo pipefail
code=${CODE:-}
if [ -z "$code" ]; then
    echo "::error title=Tallyonce::The push was ended before it could say what became of it. Re-run the job: the key stays, nothing is counted twice."
    exit 75
fi
if [ -n "${KIND:-}" ] && [ "${UPLOADED:-}" != success ]; then
    echo "::error title=Tallyonce push not kept::The push is not delivered, and its artifact $ARTIFACT could not be uploaded: it dies with this runner. Re-run the job: the key stays, nothing is counted twice."
    # What a failed test says stays said.
    [ "$code" -ne 0 ] || code=75
    exit "$code"
fi
case ${KIND:-} in
    sealed)
        echo "::notice title=Tallyonce push sealed::There is no token here, so the push is sealed into the artifact $ARTIFACT. A workflow on workflow_run delivers it with the flush action."
        ;;
    outbox)
        words="The push may be recorded or not. It is kept in the artifact $ARTIFACT: the flush action delivers it, or re-run the job. The key stays, nothing is counted twice."
        # A command may end with 75 too, and that is not forgiven.
        if [ "${ON_UNCONFIRMED:-fail}" = warn ] && [ "$code" -eq 75 ] && [ "${EXIT:-}" = 75 ] && [ "${COMMAND:-0}" = 0 ]; then
            code=0
        fi
        kind=error
        [ "$code" -ne 0 ] || kind=warning
        echo "::$kind title=Tallyonce push not confirmed::$words"
        ;;
esac
exit "$code"
