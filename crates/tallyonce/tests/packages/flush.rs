//! The flush action against a stand-in for the API: a fork's sealed push arrives in its pull request's cycle, and what a run
//! of the repository could not confirm arrives where it was meant.

use std::collections::BTreeMap;

use proof::spawn::Server;
use serde_json::{Value, json};

use crate::Machine;
use crate::action::{job, push};
use crate::action_faults::of_fork;
use crate::archive::zip;
use crate::composite::{Ended, Files, Job, Uploads, run};
use crate::stub::{Answer, Asked, Stub};

/// What the run was of.
pub(crate) const SHA: &str = "1111111111111111111111111111111111111111";
const NOBODY: &str = "http://127.0.0.1:9";

/// What the platform holds: artifacts of run 4201, and pull requests.
#[derive(Debug, Clone)]
pub(crate) struct Platform {
    pub(crate) artifacts: Vec<(String, Vec<u8>)>,
    /// Number, state, head repository, branch, commits with the head last.
    pub(crate) pulls: Vec<(u64, &'static str, &'static str, &'static str, Vec<&'static str>)>,
}

impl Platform {
    /// With the pull request 17 from branch `mend` of kim/shop.
    pub(crate) fn with(artifacts: Vec<(String, Vec<u8>)>) -> Self {
        Self { artifacts, pulls: vec![(17, "open", "kim/shop", "mend", vec!["0000", SHA])] }
    }

    pub(crate) fn of(uploads: &Uploads) -> Self {
        Self::with(uploads.names().into_iter().map(|name| (name.clone(), zipped(&uploads.files(&name)))).collect())
    }

    /// The API; archives come from another host, as they do there.
    pub(crate) fn start(self) -> (Stub, Stub) {
        let archives: BTreeMap<String, Vec<u8>> =
            self.artifacts.iter().enumerate().map(|(id, (_, zip))| (format!("/blob/{id}"), zip.clone())).collect();
        let blobs = Stub::start(move |asked| {
            archives.get(asked.path()).map_or_else(|| Answer::status(404), |zip| Answer::body(zip.clone()))
        });
        let elsewhere = blobs.url().replace("127.0.0.1", "localhost");
        (Stub::start(move |asked| self.answer(asked, &elsewhere)), blobs)
    }

    fn answer(&self, asked: &Asked, elsewhere: &str) -> Answer {
        if !asked.authorized() {
            return Answer::status(401);
        }
        let Some(path) = asked.path().strip_prefix("/repos/acme/shop/") else { return Answer::status(404) };
        match path.split('/').collect::<Vec<_>>().as_slice() {
            ["actions", "runs", "4201"] => Answer::json(&of_run("pull_request", "kim/shop")),
            ["actions", "runs", "4201", "artifacts"] => self.list(asked),
            ["actions", "artifacts", id, "zip"] => Answer::redirect(&format!("{elsewhere}/blob/{id}")),
            ["pulls"] => self.pulls(asked),
            ["pulls", number, "commits"] => {
                let pull = self.pulls.iter().find(|pull| pull.0.to_string() == *number).unwrap();
                Answer::json(&pull.4.iter().map(|sha| json!({"sha": sha})).collect())
            }
            _ => Answer::status(404),
        }
    }

    fn list(&self, asked: &Asked) -> Answer {
        let page: usize = asked.target.rsplit("page=").next().unwrap().parse().unwrap();
        let all = self.artifacts.iter().enumerate().skip((page - 1) * 100).take(100);
        let all = all.map(|(id, (name, zip))| {
            json!({"id": id, "name": name, "size_in_bytes": zip.len(), "expired": false, "created_at": "2026-11-30T06:00:00Z"})
        });
        Answer::json(&json!({"total_count": self.artifacts.len(), "artifacts": all.collect::<Value>()}))
    }

    fn pulls(&self, asked: &Asked) -> Answer {
        // The real filter takes owner and branch alone.
        let head = asked
            .target
            .split("head=")
            .nth(1)
            .unwrap()
            .split('&')
            .next()
            .unwrap()
            .replace("%3A", ":")
            .replace("%3a", ":")
            .replace("%2F", "/")
            .replace("%2f", "/");
        let of_head = |pull: &&(u64, &str, &str, &str, Vec<&str>)| {
            format!("{}:{}", pull.2.split('/').next().unwrap(), pull.3) == head
        };
        let shown = self.pulls.iter().filter(of_head).map(|(number, state, repository, branch, commits)| {
            json!({
                "number": number, "state": state, "base": {"repo": {"full_name": "acme/shop"}},
                "head": {"ref": branch, "sha": commits.last(), "repo": {"full_name": repository}}
            })
        });
        Answer::json(&shown.collect())
    }
}

fn zipped(files: &Files) -> Vec<u8> {
    zip(&files.iter().map(|(name, content)| (name.as_str(), content.as_slice(), false)).collect::<Vec<_>>())
}

/// Run 4201, as events and the API describe it.
pub(crate) fn of_run(event: &str, head: &str) -> Value {
    json!({
        "id": 4201, "event": event, "head_branch": "mend", "head_sha": SHA, "pull_requests": [],
        "repository": {"full_name": "acme/shop"},
        "head_repository": {"full_name": head, "owner": {"login": head.split('/').next()}}
    })
}

/// The flush action in a workflow on `workflow_run` for that run.
pub(crate) fn flush(machine: &Machine, api: &Stub, to: &str, run_of: &Value, inputs: &[(&str, &str)]) -> Ended {
    let uploads = Uploads::default();
    machine.file("temp/event.json", &json!({"action": "completed", "workflow_run": run_of}).to_string());
    let mut env = proof::spawn::github_env(9001, 1, "flush", "trusted");
    let event = machine.path("temp/event.json").display().to_string();
    env.extend(crate::pairs(&[("GITHUB_API_URL", &api.url()), ("GITHUB_EVENT_PATH", &event)]));
    let job = Job { env, ..job(machine, &uploads, 1) };
    let job = Job { contexts: with_token(job.contexts.clone()), ..job };
    run("flush/action.yml", &[&[("to", to), ("deadline", "0s")], inputs].concat(), &job)
}

fn with_token(mut contexts: Value) -> Value {
    contexts["github"]["token"] = json!("gh-token");
    contexts
}

/// Uploads of a fork's job, sealed.
pub(crate) fn of_a_fork(machine: &Machine) -> Uploads {
    let uploads = Uploads::default();
    let ended = push(NOBODY, &[], &of_fork(job(machine, &uploads, 1)));
    assert_eq!(ended.failed, None, "{}", ended.log);
    uploads
}

/// Items that count in a cycle; 0 where it is not there.
pub(crate) fn items(machine: &Machine, server: &Server, cycle: &str) -> u64 {
    let shown = [
        "show",
        "--from",
        &server.url(),
        "--project",
        "shop",
        "--cycle",
        cycle,
        "--round",
        "latest",
        "--format",
        "json",
    ];
    let finished = proof::spawn::Run::new(&machine.binary).args(shown).timeout(crate::PATIENCE).output().unwrap();
    if finished.code != Some(0) {
        return 0;
    }
    let shown: Value = serde_json::from_str(&finished.stdout).unwrap();
    total(&shown)
}

/// The first `total` in it.
fn total(value: &Value) -> u64 {
    match value {
        Value::Object(map) => {
            let here = map.get("total").and_then(Value::as_u64);
            here.unwrap_or_else(|| map.values().map(total).find(|n| *n > 0).unwrap_or(0))
        }
        Value::Array(items) => items.iter().map(total).find(|n| *n > 0).unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn a_forks_push_arrives_in_the_cycle_of_its_pull_request() {
    let machine = Machine::new();
    let (api, blobs) = Platform::of(&of_a_fork(&machine)).start();
    let server = machine.server();
    let ended = flush(&machine, &api, &server.url(), &of_run("pull_request", "kim/shop"), &[]);
    assert_eq!((ended.failed, ended.output("cycle"), ended.output("delivered")), (None, "pr-17", "1"), "{}", ended.log);
    assert_eq!(items(&machine, &server, "pr-17"), 2);
    assert!(blobs.asked().iter().all(|asked| !asked.authorized()), "the token goes to the API alone");
    // A re-run of the workflow delivers it again, and nothing is counted twice.
    let ended = flush(&machine, &api, &server.url(), &of_run("pull_request", "kim/shop"), &[]);
    assert_eq!(ended.failed, None, "{}", ended.log);
    assert_eq!(items(&machine, &server, "pr-17"), 2);
}

#[test]
fn it_may_be_asked_for_by_the_number_of_the_run() {
    let machine = Machine::new();
    let (api, _blobs) = Platform::of(&of_a_fork(&machine)).start();
    let server = machine.server();
    let ended = flush(&machine, &api, &server.url(), &Value::Null, &[("run-id", "4201")]);
    assert_eq!((ended.failed, ended.output("cycle"), ended.output("delivered")), (None, "pr-17", "1"), "{}", ended.log);
    for (run, inputs) in
        [(Value::Null, vec![]), (Value::Null, vec![("run-id", "4201; true")]), (Value::Null, vec![("run-id", "7")])]
    {
        let ended = flush(&machine, &api, &server.url(), &run, &inputs);
        assert!(ended.failed == Some(2) && ended.log.contains("nothing was delivered"), "{inputs:?}: {}", ended.log);
    }
}

#[test]
fn what_a_run_could_not_confirm_arrives() {
    let machine = Machine::new();
    let mut server = machine.server();
    let url = server.url();
    server.kill9().unwrap();
    let uploads = Uploads::default();
    let ended = push(&url, &[("deadline", "0s")], &job(&machine, &uploads, 1));
    assert_eq!(ended.failed, Some(75), "{}", ended.log);
    let (api, _blobs) = Platform::of(&uploads).start();
    let mut run = of_run("push", "acme/shop");
    run["head_branch"] = "main".into();
    // Still away: it stays an artifact.
    let ended = flush(&machine, &api, &url, &run, &[]);
    assert_eq!((ended.failed, ended.output("refused")), (Some(75), "1"), "{}", ended.log);
    server.restart().unwrap();
    // Whoever wrote into that outbox claims no other branch's cycle and no other run.
    let ended = flush(&machine, &api, &url, &of_run("push", "acme/shop"), &[]);
    assert_eq!((ended.failed, ended.output("refused")), (Some(4), "1"), "{}", ended.log);
    assert!(ended.log.contains("cycle: it claims \"main\""), "{}", ended.log);
    let ended = flush(&machine, &api, &url, &run, &[]);
    assert_eq!((ended.failed, ended.output("delivered")), (None, "1"), "{}", ended.log);
    assert_eq!(items(&machine, &server, "main"), 2);
}

#[test]
fn where_nothing_is_left_nothing_is_done() {
    let machine = Machine::new();
    let others = (0..101).map(|n| (format!("report-{n}"), Vec::new())).collect();
    let (api, blobs) = Platform::with(others).start();
    let ended = flush(&machine, &api, NOBODY, &of_run("push", "acme/shop"), &[]);
    assert_eq!((ended.failed, ended.output("delivered")), (None, "0"), "{}", ended.log);
    assert_eq!((api.asked().len(), blobs.asked().len()), (2, 0), "two pages, and no artifact of others");
}

#[test]
fn a_list_of_several_pages_is_read_to_its_end() {
    let machine = Machine::new();
    let mut platform = Platform::of(&of_a_fork(&machine));
    platform.artifacts.splice(0..0, (0..100).map(|n| (format!("report-{n}"), Vec::new())));
    let (api, _blobs) = platform.start();
    let server = machine.server();
    let ended = flush(&machine, &api, &server.url(), &of_run("pull_request", "kim/shop"), &[]);
    assert_eq!((ended.failed, ended.output("delivered")), (None, "1"), "{}", ended.log);
}
