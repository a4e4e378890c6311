//! What the flush action doesn't deliver: claims of another run, project or cycle, pull requests that can't be told, outboxes
//! of strangers, archives that are none or more than that.

use serde_json::Value;

use crate::Machine;
use crate::action::{job, push};
use crate::action_faults::of_fork;
use crate::archive::zip;
use crate::composite::{Ended, Uploads};
use crate::flush::{Platform, SHA, flush, items, of_a_fork, of_run};

const NOBODY: &str = "http://127.0.0.1:9";
const SEALED: &str = "tallyonce-sealed-0123456789abcdef-1";

/// Flushes what the platform holds for a run of kim/shop; nothing may arrive.
#[track_caller]
fn refused(machine: &Machine, platform: Platform, of: &Value, inputs: &[(&str, &str)], words: &str) -> Ended {
    let (api, _blobs) = platform.start();
    let server = machine.server();
    let ended = flush(machine, &api, &server.url(), of, inputs);
    assert_eq!(
        (ended.failed, ended.output("delivered"), ended.output("refused")),
        (Some(4), "0", "1"),
        "{}",
        ended.log
    );
    assert!(ended.log.contains(words), "{words}: {}", ended.log);
    for cycle in ["pr-17", "pr-18", "main", "mend"] {
        assert_eq!(items(machine, &server, cycle), 0, "{cycle}");
    }
    ended
}

#[test]
fn a_sealed_push_claims_no_other_run() {
    let machine = Machine::new();
    // Sealed by a run that says it is another one.
    let uploads = Uploads::default();
    let ended = push(NOBODY, &[("run", "4202")], &of_fork(job(&machine, &uploads, 1)));
    assert_eq!(ended.failed, None, "{}", ended.log);
    refused(&machine, Platform::of(&uploads), &of_run("pull_request", "kim/shop"), &[], "4202");
}

#[test]
fn a_sealed_push_claims_no_other_project_or_cycle() {
    let machine = Machine::new();
    for (claim, value) in [("cycle", "main"), ("cycle", "pr-18"), ("project", "billing")] {
        let uploads = Uploads::default();
        let ended = push(NOBODY, &[(claim, value)], &of_fork(job(&machine, &uploads, 1)));
        assert_eq!(ended.failed, None, "{}", ended.log);
        refused(&machine, Platform::of(&uploads), &of_run("pull_request", "kim/shop"), &[], value);
    }
}

#[test]
fn a_pull_request_has_to_be_told() {
    let machine = Machine::new();
    let sealed = of_a_fork(&machine);
    let run = of_run("pull_request", "kim/shop");
    let with = |pulls| Platform { pulls, ..Platform::of(&sealed) };
    let words = "no single pull request";
    refused(&machine, with(vec![]), &run, &[], words);
    refused(&machine, with(vec![(17, "open", "kim/shop", "mend", vec!["2222"])]), &run, &[], words);
    refused(&machine, with(vec![(17, "open", "kim/other", "mend", vec![SHA])]), &run, &[], words);
    refused(&machine, with(vec![(17, "open", "kim/shop", "main", vec![SHA])]), &run, &[], words);
    let twice = vec![(17, "open", "kim/shop", "mend", vec![SHA]), (18, "open", "kim/shop", "mend", vec![SHA])];
    refused(&machine, with(twice), &run, &[], words);
    // An event of another repository that is no pull request says nothing of a cycle: its branch may be called main.
    refused(&machine, Platform::of(&sealed), &of_run("push", "kim/shop"), &[], "doesn't say which cycle");
    let gone = {
        let mut run = run.clone();
        run["head_repository"] = Value::Null;
        run
    };
    refused(&machine, Platform::of(&sealed), &gone, &[], words);
    // One that is closed beside one that is open; and one that was pushed to since.
    let reopened = vec![(9, "closed", "kim/shop", "mend", vec![SHA]), (17, "open", "kim/shop", "mend", vec![SHA])];
    let moved = vec![(17, "open", "kim/shop", "mend", vec![SHA, "3333"])];
    for pulls in [reopened, moved] {
        let (api, _blobs) = with(pulls).start();
        let server = machine.server();
        let ended = flush(&machine, &api, &server.url(), &run, &[]);
        assert_eq!((ended.failed, ended.output("cycle")), (None, "pr-17"), "{}", ended.log);
    }
}

#[test]
fn who_knows_the_cycle_may_say_it() {
    let machine = Machine::new();
    let (api, _blobs) = Platform { pulls: vec![], ..Platform::of(&of_a_fork(&machine)) }.start();
    let server = machine.server();
    let ended = flush(&machine, &api, &server.url(), &of_run("pull_request", "kim/shop"), &[("cycle", "pr-17")]);
    assert_eq!(ended.failed, None, "{}", ended.log);
    assert_eq!(items(&machine, &server, "pr-17"), 2);
}

#[test]
fn a_run_of_another_repository_is_none_of_ours() {
    let machine = Machine::new();
    let (api, _blobs) = Platform::of(&of_a_fork(&machine)).start();
    let mut run = of_run("pull_request", "kim/shop");
    run["repository"]["full_name"] = "acme/billing".into();
    let ended = flush(&machine, &api, NOBODY, &run, &[]);
    assert!(ended.failed == Some(2) && api.asked().is_empty(), "{}", ended.log);
}

#[test]
fn a_strangers_outbox_is_not_believed() {
    let machine = Machine::new();
    let uploads = Uploads::default();
    push(NOBODY, &[("deadline", "0s"), ("token", "any-token")], &of_fork(job(&machine, &uploads, 1)));
    assert!(uploads.names()[0].starts_with("tallyonce-outbox-"));
    let words = "an outbox is believed only from this repository's own runs";
    refused(&machine, Platform::of(&uploads), &of_run("pull_request", "kim/shop"), &[], words);
}

#[test]
fn an_archive_is_read_by_fixed_names_and_never_laid_out() {
    let machine = Machine::new();
    let run = of_run("pull_request", "kim/shop");
    let secret = machine.path("secret").display().to_string();
    machine.file("secret", "tallyonce parcel 1\n");
    let hostile: Vec<Vec<u8>> = vec![
        b"no archive".to_vec(),
        zip(&[]),
        zip(&[("other.sealed", b"x", false)]),
        zip(&[("../../workspace/push.sealed", b"x", false), ("../push.sealed", b"y", false)]),
        zip(&[("push.sealed", b"", false)]),
    ];
    for archive in hostile {
        let ended =
            refused(&machine, Platform::with(vec![(SEALED.to_owned(), archive)]), &run, &[], "it holds no push.sealed");
        assert!(!machine.path("workspace/push.sealed").exists(), "{}", ended.log);
    }
    // A link is its text here: what it points to is not read.
    let link = zip(&[("push.sealed", secret.as_bytes(), true)]);
    let (api, _blobs) = Platform::with(vec![(SEALED.to_owned(), link)]).start();
    let ended = flush(&machine, &api, NOBODY, &run, &[]);
    assert!(ended.failed == Some(3) && !ended.log.contains("parcel 1"), "{}", ended.log);
}

#[test]
fn names_that_are_not_ours_are_left_alone() {
    let machine = Machine::new();
    let names = [
        "tallyonce-sealed-x",
        "tallyonce-sealed-0123456789abcdef-1;id",
        "tallyonce-sealed-0123456789abcdef-",
        "sealed",
    ];
    let all = names.iter().map(|name| ((*name).to_owned(), zip(&[("push.sealed", b"x", false)]))).collect();
    let (api, blobs) = Platform::with(all).start();
    let ended = flush(&machine, &api, NOBODY, &of_run("pull_request", "kim/shop"), &[]);
    assert_eq!((ended.failed, ended.output("delivered"), blobs.asked().len()), (None, "0", 0), "{}", ended.log);
}

#[test]
fn an_outbox_of_dependabots_run_is_not_believed() {
    let machine = Machine::new();
    let uploads = Uploads::default();
    push(NOBODY, &[("deadline", "0s")], &job(&machine, &uploads, 1));
    for who in ["actor", "triggering_actor"] {
        let mut run = of_run("pull_request", "acme/shop");
        run[who] = serde_json::json!({"login": "dependabot[bot]"});
        refused(&machine, Platform::of(&uploads), &run, &[], "runs of Dependabot get no secrets");
    }
}

#[test]
fn a_run_leaves_no_more_artifacts_than_are_read() {
    let machine = Machine::new();
    let many = (0..203).map(|n| (format!("tallyonce-sealed-{n:016x}-1"), b"no archive".to_vec())).collect();
    let (api, blobs) = Platform::with(many).start();
    let ended = flush(&machine, &api, NOBODY, &of_run("pull_request", "kim/shop"), &[]);
    assert_eq!((ended.failed, ended.output("refused"), blobs.asked().len()), (Some(4), "203", 200), "{}", ended.log);
    assert!(ended.log.contains("left 203 artifacts, at most 200 are read"), "{}", ended.log);
}
