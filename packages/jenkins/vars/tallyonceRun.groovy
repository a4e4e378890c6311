/**
 * Runs tests and pushes their outcomes, also if they fail; see tallyonceRun.txt.
 */
int call(Map options = [:]) {
    if (!options.command) {
        error('tallyonceRun: command is missing; nothing was run.')
    }
    return tallyoncePush(options)
}
