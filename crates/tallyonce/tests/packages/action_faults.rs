//! The GitHub Action when something is missing: the server, the token, the storage of artifacts, the program, the time.

use std::collections::BTreeSet;
use std::path::Path;

use proof::spawn::Running;
use serde_json::json;

use crate::action::{job, leg, push};
use crate::composite::{Ended, Job, Uploads};
use crate::{Machine, system_path};

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:9";

/// As a fork's pull request.
pub(crate) fn of_fork(mut job: Job<'_>) -> Job<'_> {
    job.contexts["github"]["event_name"] = json!("pull_request");
    job.contexts["github"]["event"] = json!({"pull_request": {"head": {"repo": {"full_name": "kim/shop"}}}});
    let changes =
        [("GITHUB_EVENT_NAME", "pull_request"), ("GITHUB_REF", "refs/pull/17/merge"), ("GITHUB_HEAD_REF", "mend")];
    job.env.extend(crate::pairs(&changes));
    job
}

#[test]
fn without_an_answer_the_push_is_kept_as_an_artifact_of_its_own() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let away: &[(&str, &str)] = &[("deadline", "0s")];
    for index in 0..2 {
        let ended = push(NOBODY, away, &leg(&machine, &uploads, &json!({"os": index}), index, 2));
        assert_eq!((ended.failed, ended.output("exit")), (Some(75), "75"), "{}", ended.log);
        assert!(ended.log.contains("::error title=Tallyonce push not confirmed::"), "{}", ended.log);
        assert!(uploads.names().iter().any(|name| name == ended.output("artifact")), "{:?}", uploads.names());
    }
    let again = push(NOBODY, away, &job(&machine, &uploads, 2));
    assert_eq!(again.failed, Some(75), "{}", again.log);
    let names: BTreeSet<String> = uploads.names().into_iter().collect();
    assert_eq!(names.len(), 3, "legs and attempts have artifacts of their own: {names:?}");
    for name in &names {
        let files = uploads.files(name);
        let pushes = files.keys().filter(|file| Path::new(file).extension().is_some_and(|e| e == "push")).count();
        assert!(name.starts_with("tallyonce-outbox-") && pushes == files.len() && pushes > 0, "{name}: {files:?}");
    }
    // The same once more: the entry is in the outbox beside the others, and the artifact is renewed.
    let again = push(NOBODY, away, &job(&machine, &uploads, 2));
    assert!(again.failed == Some(75) && uploads.names().len() == 3, "{}", again.log);
}

#[test]
fn without_an_answer_a_warning_may_be_enough() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let ended = push(NOBODY, &[("deadline", "0s"), ("on-unconfirmed", "warn")], &job(&machine, &uploads, 1));
    assert_eq!((ended.failed, uploads.names().len()), (None, 1), "{}", ended.log);
    assert!(ended.log.contains("::warning title=Tallyonce push not confirmed::"), "{}", ended.log);
    // But not if it could not be kept.
    let mut job = job(&machine, &uploads, 2);
    job.storage = false;
    let ended = push(NOBODY, &[("deadline", "0s"), ("on-unconfirmed", "warn")], &job);
    assert_eq!((ended.failed, uploads.names().len()), (Some(75), 1), "{}", ended.log);
    assert!(ended.log.contains("::error title=Tallyonce push not kept::"), "{}", ended.log);
}

#[test]
fn a_refusal_is_not_kept_for_later() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    assert_eq!(push(&server.url(), &[], &job(&machine, &uploads, 1)).failed, None);
    // Another execution of the same job at the same attempt, under the same key.
    let mut second = job(&machine, &uploads, 1);
    second.env.push(("RUNNER_TRACKING_ID".to_owned(), "another".to_owned()));
    machine.report(&crate::ALL_PASS.replace("one", "three"));
    let ended = push(&server.url(), &[], &second);
    assert_eq!((ended.failed, ended.output("exit")), (Some(5), "5"), "{}", ended.log);
    assert_eq!(uploads.names(), [""; 0]);
}

fn sealed(machine: &Machine, uploads: &Uploads, more: &[(&str, &str)]) -> Ended {
    push(NOBODY, &[&[("deadline", "0s")], more].concat(), &of_fork(job(machine, uploads, 1)))
}

#[test]
fn a_forks_pull_request_without_a_token_seals_and_ends_well() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let ended = sealed(&machine, &uploads, &[]);
    assert_eq!((ended.failed, ended.output("state")), (None, "sealed"), "{}", ended.log);
    assert!(ended.log.contains("::notice title=Tallyonce push sealed::"), "{}", ended.log);
    let names = uploads.names();
    assert!(names.len() == 1 && names[0].starts_with("tallyonce-sealed-") && names[0].ends_with("-1"), "{names:?}");
    assert_eq!(uploads.files(&names[0]).keys().collect::<Vec<_>>(), ["push.sealed"]);
    // With a token, or if told so, it is sent.
    for more in [("token", "t0ken-t0ken"), ("seal", "never")] {
        let ended = sealed(&machine, &uploads, &[more]);
        assert_eq!(ended.failed, Some(75), "{}", ended.log);
    }
}

#[test]
fn a_pull_request_of_the_repository_itself_is_sent() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    let mut job = of_fork(job(&machine, &uploads, 1));
    job.contexts["github"]["event"]["pull_request"]["head"]["repo"]["full_name"] = json!("acme/shop");
    let ended = push(&server.url(), &[], &job);
    assert_eq!((ended.failed, ended.output("state")), (None, "recorded"), "{}", ended.log);
    let ended = push(&server.url(), &[("seal", "always")], &job);
    assert_eq!((ended.failed, ended.output("state")), (None, "sealed"), "{}", ended.log);
    let ended = push(&server.url(), &[("seal", "perhaps")], &job);
    assert_eq!(ended.failed, Some(2), "{}", ended.log);
}

#[test]
fn a_seal_that_cannot_be_kept_is_no_success() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let mut job = of_fork(job(&machine, &uploads, 1));
    job.storage = false;
    let ended = push(NOBODY, &[], &job);
    assert!(ended.failed == Some(75) && ended.log.contains("not kept"), "{}", ended.log);
}

#[test]
fn without_the_program_nothing_else_is_tried() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let mut job = job(&machine, &uploads, 1);
    job.env.push(("PATH".to_owned(), system_path()));
    let ended = push(NOBODY, &[], &job);
    assert!(ended.failed == Some(2) && ended.log.contains("::error title=Tallyonce is not here::"), "{}", ended.log);
    assert!(ended.log.contains("TALLYONCE_DOWNLOAD") && ended.output("exit").is_empty(), "{}", ended.log);
}

#[test]
fn a_cancelled_job_keeps_its_push() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    // Listens and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let cancel = |running: &Running| {
        // Only the push connects: then it is under way.
        silent.set_nonblocking(true).unwrap();
        for _ in 0..600 {
            if running.ended(std::time::Duration::from_millis(100)) || silent.accept().is_ok() {
                break;
            }
        }
        running.terminate();
    };
    let mut job = job(&machine, &uploads, 1);
    job.during = Some(&cancel);
    let ended = push(&url, &[], &job);
    assert_eq!((ended.failed, uploads.names().len()), (Some(75), 1), "{}", ended.log);
}

#[test]
fn a_warning_is_not_enough_for_a_command_that_failed() {
    let machine = Machine::new();
    for (number, (command, storage, code)) in
        [("exit 75", true, Some(75)), ("exit 1", true, Some(1)), ("exit 1", false, Some(1)), ("true", true, None)]
            .into_iter()
            .enumerate()
    {
        let uploads = Uploads::default();
        let mut job = job(&machine, &uploads, 1);
        job.storage = storage;
        let command = format!("sleep 1.1; cp r.xml out-{number}.xml; {command}");
        let paths = format!("out-{number}.xml");
        let more = [("deadline", "0s"), ("on-unconfirmed", "warn"), ("command", &command), ("paths", &paths)];
        let ended = crate::composite::run("action.yml", &[&[("to", NOBODY)], &more[..]].concat(), &job);
        assert_eq!((ended.failed, ended.output("exit")), (code, "75"), "{command}: {}", ended.log);
    }
}

#[test]
fn a_line_that_the_command_left_open_hides_no_output() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    machine
        .executable("tallyonce", "#!/bin/sh\n[ \"$1\" != push ] || printf 'exit=0\\nopen=yes' >>\"$GITHUB_OUTPUT\"\n");
    let ended = push(NOBODY, &[], &job(&machine, &uploads, 1));
    assert_eq!(ended.failed, None, "{}", ended.log);
}

#[test]
fn a_good_push_is_confirmed_beside_an_older_one_that_was_refused() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    assert_eq!(push(&server.url(), &[], &job(&machine, &uploads, 1)).failed, None);
    let mut second = job(&machine, &uploads, 1);
    second.env.push(("RUNNER_TRACKING_ID".to_owned(), "another".to_owned()));
    machine.report(&crate::ALL_PASS.replace("one", "three"));
    assert_eq!(push(&server.url(), &[], &second).failed, Some(5));
    assert!(std::fs::read_dir(machine.path("workspace/.tallyonce/outbox")).unwrap().count() > 0);
    let ended = push(&server.url(), &[("job", "another")], &job(&machine, &uploads, 1));
    assert_eq!((ended.failed, ended.output("state")), (None, "recorded"), "{}", ended.log);
    assert!(uploads.names().is_empty() && !ended.log.contains("not confirmed"), "{}", ended.log);
}
