//! Platforms that are told by a program of theirs: the program is replaced by one that writes down what it is given.

use std::os::unix::fs::PermissionsExt as _;

use crate::announce::job;
use crate::{ALL_PASS, Desk, pairs};

const PUSH: [&str; 8] = ["push", "r.xml", "--project", "p", "--cycle", "c", "--to", "sqlite:x.db"];

/// Writes each argument on a line, then what it hears, and whether it could see our token.
const RECORDER: &str = "#!/bin/sh\n{ echo \"call $(basename \"$0\")\"; for a in \"$@\"; do printf '<%s>\\n' \"$a\"; done; \
                        cat; echo; printf 'token:%s\\n' \"$TALLYONCE_TOKEN\"; } >> \"$(dirname \"$0\")/calls\"\n";

/// A desk with a program in its `PATH`, in a job of a platform.
struct Station {
    desk: Desk,
    env: Vec<(String, String)>,
}

impl Station {
    fn new(slug: &str, program: &str, script: &str) -> Self {
        let desk = Desk::with_report();
        let file = desk.folder.path().join("bin").join(program);
        desk.file(&format!("bin/{program}"), script);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let system = std::env::var_os("PATH").unwrap_or_default().into_string().unwrap();
        let path = format!("{}:{system}", file.parent().unwrap().display());
        let mut env = job(slug);
        env.extend(pairs(&[("PATH", &path), ("TALLYONCE_TOKEN", "token-secret")]));
        Self { desk, env }
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.desk.folder.path().join("bin/calls")).unwrap_or_default()
    }
}

#[test]
fn buildkite_gets_one_annotation_for_each_push_and_its_values_as_metadata() {
    let station = Station::new("buildkite", "buildkite-agent", RECORDER);
    station.desk.run_in(0, &PUSH, &station.env);
    station.desk.run_in(0, &PUSH, &station.env);
    station.desk.file("r.xml", ALL_PASS);
    let other = [&PUSH[..], &["--shard", "3/4"]].concat();
    station.desk.run_in(0, &other, &station.env);
    let calls = station.calls();
    assert_eq!(calls.matches("call buildkite-agent\n<annotate>\n<--style>\n").count(), 3, "{calls}");
    let contexts: Vec<&str> = calls.lines().filter(|line| line.starts_with("<tallyonce-")).collect();
    assert!(contexts[0] == contexts[1] && contexts[1] != contexts[2], "the same push replaces its own: {calls}");
    assert!(calls.contains("<success>") && calls.contains("### ✅ Tallyonce: recorded\n"), "{calls}");
    assert_eq!(calls.matches("<meta-data>\n<set>\n<tallyonce:").count(), 3, "{calls}");
    assert!(calls.contains("\"state\":\"replayed\""), "{calls}");
    assert!(!calls.contains("secret"), "{calls}");
}

#[test]
fn appveyor_gets_messages_and_variables() {
    let station = Station::new("appveyor", "appveyor", RECORDER);
    station.desk.run_in(0, &PUSH, &station.env);
    let calls = station.calls();
    assert!(calls.contains("<SetVariable>\n<-Name>\n<TALLYONCE_PUSH_STATE>\n<-Value>\n<recorded>\n"), "{calls}");
    assert!(!calls.contains("<AddMessage>"), "nothing is doubtful: {calls}");
    station.desk.run_in(0, &PUSH, &station.env);
    let message = "<AddMessage>\n<Tallyonce: recorded already by an earlier delivery; nothing is counted twice>\n\
                   <-Category>\n<Information>\n<-Details>\n";
    assert!(station.calls().contains(message), "{}", station.calls());
}

#[test]
fn bitrise_and_screwdriver_hand_values_on() {
    let station = Station::new("bitrise", "envman", RECORDER);
    station.desk.run_in(0, &PUSH, &station.env);
    let calls = station.calls();
    assert_eq!(calls.matches("call envman\n<add>\n<--key>\n").count(), 13, "{calls}");
    assert!(calls.contains("<TALLYONCE_PUSH_STATE>\nrecorded\n") && !calls.contains("secret"), "{calls}");
    let station = Station::new("screwdriver", "meta", RECORDER);
    station.desk.run_in(0, &PUSH, &station.env);
    assert!(station.calls().contains("<set>\n<tallyonce.push.total>\n<2>\n"), "{}", station.calls());
}

#[test]
fn an_agent_that_fails_or_hangs_is_a_warning_and_is_asked_once() {
    let fails = "#!/bin/sh\necho \"$1\" >> \"$(dirname \"$0\")/calls\"\necho 'no such ##vso[build]' >&2\nexit 3\n";
    let station = Station::new("buildkite", "buildkite-agent", fails);
    let finished = station.desk.run_in(0, &PUSH, &station.env);
    assert_eq!(finished.stderr.matches("warning: buildkite-agent: ").count(), 2, "{finished}");
    assert!(finished.stderr.contains("no such # #vso[build]"), "{finished}");
    assert_eq!(station.calls(), "annotate\nmeta-data\n");
    let hangs = "#!/bin/sh\nexec sleep 600\n";
    let station = Station::new("bitrise", "envman", hangs);
    let finished = station.desk.run_in(0, &PUSH, &station.env);
    assert!(finished.stderr.contains("envman: it takes longer than 10 seconds"), "{finished}");
    assert_eq!(finished.stderr.matches("warning: envman").count(), 1, "{finished}");
}

#[test]
fn without_its_program_a_platform_is_not_told_and_nobody_is_bothered() {
    let station = Station::new("buildkite", "another", RECORDER);
    let finished = station.desk.run_in(0, &PUSH, &station.env);
    assert!(!finished.stderr.contains("warning: buildkite-agent"), "{finished}");
}
