/**
 * Pushes test outcomes; see tallyoncePush.txt.
 *
 * Nothing that a caller gives becomes part of a script: all of it goes through the environment.
 */
int call(Map options = [:]) {
    Map<String, String> names = [
        paths: 'PATHS', command: 'COMMAND', args: 'ARGS', to: 'TO', project: 'PROJECT', cycle: 'CYCLE', run: 'RUN',
        attempt: 'ATTEMPT', job: 'JOB', shard: 'SHARD', variant: 'VARIANT', round: 'ROUND', expect: 'EXPECT',
        format: 'FORMAT', onDifference: 'ON_DIFFERENCE', failOn: 'FAIL_ON', deadline: 'DEADLINE', outbox: 'OUTBOX',
        partial: 'PARTIAL', allowEmpty: 'ALLOW_EMPTY', exitWith: 'EXIT_WITH', version: 'VERSION', download: 'DOWNLOAD',
        sha256: 'SHA256'
    ]
    List<String> others = ['credentialsId', 'returnStatus', 'onUnconfirmed']
    for (name in options.keySet()) {
        if (!names.containsKey(name) && !others.contains(name)) {
            error("tallyoncePush: there is no option ${name}; nothing was sent. Options: ${(names.keySet() + others).join(', ')}")
        }
    }

    String outbox = options.outbox ?: '.tallyonce/outbox'
    List<String> settings = ['TALLYONCE_CI_OUTBOX=' + outbox]
    for (name in names.keySet()) {
        def value = options[name]
        if (value != null && name != 'outbox') {
            settings.add('TALLYONCE_CI_' + names[name] + '=' + text(value))
        }
    }

    int code = 0
    withEnv(settings) {
        if (options.credentialsId) {
            withCredentials([string(credentialsId: options.credentialsId, variable: 'TALLYONCE_TOKEN')]) {
                code = push()
            }
        } else {
            code = push()
        }
    }

    if (code != 4 && code != 5) {
        archiveArtifacts(artifacts: outbox + '/*.push', allowEmptyArchive: true)
    }
    if (options.returnStatus || code == 0) {
        return code
    }
    if (code == 75 && options.onUnconfirmed == 'warn') {
        unstable('Tallyonce: the push is not confirmed. It is archived: run the step again, or flush it; nothing is counted twice.')
        return code
    }
    error("Tallyonce ended with ${code}; the log says what it means for the recorded data and what to do.")
}

/** A map is NAME=VALUE pairs, a list one a line, so that blanks in it separate nothing. */
private String text(Object value) {
    if (value instanceof Map) {
        List<String> pairs = []
        for (entry in value) {
            pairs.add(entry.key + '=' + entry.value)
        }
        return pairs.join(',')
    }
    if (value instanceof List) {
        return value.join('\n') + '\n'
    }
    return value.toString()
}

private int push() {
    return sh(label: 'Push test outcomes', script: libraryResource('tallyonce/push.sh'), returnStatus: true)
}
