// The steps of the Jenkins library, run by Groovy alone: Jenkins' own steps write down what they were asked.
def vars = args[0]
def asked = []
def step = { String name, int code ->
    def steps = new Binding()
    steps.error = { message -> asked << "error: $message".toString(); throw new IllegalStateException('ended') }
    steps.withEnv = { List settings, Closure body -> assert settings.every { it instanceof String }; asked.addAll(settings); body() }
    steps.withCredentials = { List credentials, Closure body -> asked << credentials.toString(); body() }
    steps.string = { Map options -> options }
    steps.libraryResource = { path -> new File("$vars/../resources/$path").text }
    steps.sh = { Map options -> assert options.returnStatus && options.script.startsWith('#!/bin/sh\n'); asked << 'sh'; code }
    steps.archiveArtifacts = { Map options -> asked << "archive: ${options.artifacts}".toString() }
    steps.unstable = { message -> asked << 'unstable' }
    steps.tallyoncePush = { Map options -> asked << "push: $options".toString(); 0 }
    new GroovyShell(steps).parse(new File("$vars/${name}.groovy"))
}
def call = { String name, int code, Map options ->
    asked.clear()
    try {
        return step(name, code).call(options)
    } catch (IllegalStateException ended) {
        return null
    }
}

assert call('tallyoncePush', 0, [paths: ['a b/*.xml'], variant: [os: 'linux', browser: 'x'], credentialsId: 'tally', partial: true]) == 0
assert asked == ['TALLYONCE_CI_OUTBOX=.tallyonce/outbox', 'TALLYONCE_CI_PATHS=a b/*.xml\n', 'TALLYONCE_CI_VARIANT=os=linux,browser=x',
    'TALLYONCE_CI_PARTIAL=true', '[[credentialsId:tally, variable:TALLYONCE_TOKEN]]', 'sh', 'archive: .tallyonce/outbox/*.push']

// Not confirmed: archived, and the build fails, or is unstable if that was asked for.
assert call('tallyoncePush', 75, [paths: 'a', outbox: 'kept']) == null
assert asked[0..3] == ['TALLYONCE_CI_OUTBOX=kept', 'TALLYONCE_CI_PATHS=a', 'sh', 'archive: kept/*.push'] && asked[4].contains('75')
assert call('tallyoncePush', 75, [paths: 'a', onUnconfirmed: 'warn']) == 75 && asked.last() == 'unstable'

// Refused: nothing to keep. The code is returned if that was asked for.
assert call('tallyoncePush', 5, [paths: 'a', returnStatus: true]) == 5 && asked.last() == 'sh'

// An option that there is not would be lost without a word.
assert call('tallyoncePush', 0, [pths: 'a']) == null && !asked.contains('sh') && asked[0].contains('pths')

assert call('tallyonceRun', 0, [command: 'make test']) == 0 && asked == ['push: [command:make test]']
assert call('tallyonceRun', 0, [paths: 'a']) == null && asked[0].contains('command is missing')
