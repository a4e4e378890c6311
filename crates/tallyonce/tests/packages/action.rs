//! The GitHub Action in jobs: each leg of a matrix is a push of its own, a re-run is the same push again, and what a job
//! hands over is never taken for a script.

use serde_json::{Value, json};

use crate::composite::{Ended, Job, Uploads, run};
use crate::{ALL_PASS, Machine, file_of, yaml};

/// A job of run 4201 in acme/shop, on branch main.
pub(crate) fn job<'a>(machine: &'a Machine, uploads: &'a Uploads, attempt: u32) -> Job<'a> {
    let runner = format!("runner-{attempt}");
    Job {
        machine,
        env: proof::spawn::github_env(4201, attempt, "e2e", &runner),
        contexts: json!({
            "github": {"event_name": "push", "action_repository": "", "action_ref": "", "event": {}},
            "matrix": null,
            "strategy": {"job-index": 0, "job-total": 1}
        }),
        uploads,
        storage: true,
        during: None,
    }
}

/// The same as one leg of a matrix.
pub(crate) fn leg<'a>(machine: &'a Machine, uploads: &'a Uploads, leg: &Value, index: u32, total: u32) -> Job<'a> {
    let mut job = job(machine, uploads, 1);
    job.contexts["matrix"] = leg.clone();
    job.contexts["strategy"] = json!({"job-index": index, "job-total": total});
    job.env.push(("RUNNER_NAME".to_owned(), format!("runner-of-leg-{index}")));
    job.env.push(("RUNNER_TRACKING_ID".to_owned(), format!("tracking-{index}")));
    job
}

pub(crate) fn push(to: &str, more: &[(&str, &str)], job: &Job<'_>) -> Ended {
    run("action.yml", &[&[("paths", "r.xml"), ("to", to)], more].concat(), job)
}

#[test]
fn each_leg_of_a_matrix_is_a_push_of_its_own() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    let legs = [("linux", 1), ("linux", 2), ("mac", 1), ("mac", 2)];
    let mut keys = Vec::new();
    for (index, (os, shard)) in legs.into_iter().enumerate() {
        machine.report(
            &crate::ALL_PASS
                .replace("\"one\"", &format!("\"one of {shard}\""))
                .replace("\"two\"", &format!("\"two of {shard}\"")),
        );
        let ended =
            push(&server.url(), &[], &leg(&machine, &uploads, &json!({"os": os, "shard": shard}), index as u32, 4));
        assert_eq!((ended.failed, ended.output("state")), (None, "recorded"), "{}", ended.log);
        let round = machine.show(&server, "main", "4201");
        assert_eq!(complete(&round), index == 3, "after leg {index}: {round}");
        keys.push(ended.output("key").to_owned());
    }
    let mut distinct = keys.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "{keys:?}");
    assert!(keys[0].contains("shard:1") && keys[0].contains("os=linux"), "{keys:?}");
    assert_eq!(uploads.names(), [""; 0]);
}

/// Whether the one round shown is complete.
fn complete(shown: &Value) -> bool {
    let flags: Vec<bool> = yaml_booleans(shown, "complete");
    assert!(!flags.is_empty(), "nothing says whether the round is complete: {shown}");
    flags[0]
}

fn yaml_booleans(value: &Value, key: &str) -> Vec<bool> {
    match value {
        Value::Array(items) => items.iter().flat_map(|item| yaml_booleans(item, key)).collect(),
        Value::Object(map) => {
            let here = map.get(key).and_then(Value::as_bool);
            here.into_iter().chain(map.values().flat_map(|item| yaml_booleans(item, key))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_rerun_is_the_same_push_again() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    let first = push(&server.url(), &[], &job(&machine, &uploads, 1));
    assert_eq!((first.output("state"), first.output("failed")), ("recorded", "1"), "{}", first.log);
    machine.report(ALL_PASS);
    let second = push(&server.url(), &[], &job(&machine, &uploads, 2));
    assert_eq!((second.output("state"), second.output("flaky")), ("revised", "1"), "{}", second.log);
    let third = push(&server.url(), &[], &job(&machine, &uploads, 2));
    assert_eq!((third.output("state"), third.output("exit")), ("replayed", "0"), "{}", third.log);
    assert!(first.output("key") == third.output("key") && third.output("url").starts_with(&server.url()));
}

#[test]
fn the_round_is_shown_in_the_summary_of_the_job() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    let ended = push(&server.url(), &[], &job(&machine, &uploads, 1));
    assert_eq!(ended.failed, None, "{}", ended.log);
    let summary = std::fs::read_to_string(machine.path("temp/GITHUB_STEP_SUMMARY-1")).unwrap();
    assert!(summary.contains("recorded"), "{summary}");
}

#[test]
fn paths_are_one_a_line_or_separated_by_blanks() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    machine.file("workspace/a dir/one.xml", crate::ONE_FAILS);
    machine.file("workspace/b/two.xml", ALL_PASS.replace("name=\"", "name=\"other ").as_str());
    for (round, paths) in ["a dir/*.xml\nb/*.xml\n", "a?dir/*.xml b/*.xml"].into_iter().enumerate() {
        let more = [("round", ["x", "y"][round]), ("paths", paths)];
        let ended =
            run("action.yml", &[&[("to", server.url().as_str())], &more[..]].concat(), &job(&machine, &uploads, 1));
        assert_eq!((ended.failed, ended.output("total")), (None, "4"), "{}", ended.log);
    }
}

#[test]
fn what_is_handed_over_is_no_script() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    let hostile = "$(touch pwned) `touch pwned` ';touch pwned;' \"&& touch pwned\" ${IFS}\n::warning::forged";
    let text_inputs =
        yaml::keys(&yaml::load("action.yml")["inputs"]).into_iter().map(str::to_owned).collect::<Vec<_>>();
    for input in text_inputs {
        if input == "command" {
            continue;
        }
        let inputs = [("to", server.url()), ("paths", "r.xml".to_owned())];
        let mut inputs: Vec<(&str, &str)> = inputs.iter().map(|(k, v)| (*k, v.as_str())).collect();
        inputs.retain(|(name, _)| *name != input);
        inputs.push((&input, hostile));
        let mut job = job(&machine, &uploads, 1);
        job.contexts["github"]["event"] = json!({"pull_request": {"head": {"repo": {"full_name": hostile}}}});
        let ended = run("action.yml", &inputs, &job);
        for place in ["workspace", "temp"] {
            assert!(!machine.path(place).join("pwned").exists(), "{input} is run as a script: {}", ended.log);
        }
        let forged = ended.log.lines().find(|line| line.trim_start().starts_with("::warning::forged"));
        assert_eq!(forged, None, "{input}");
    }
}

#[test]
fn a_command_is_run_and_its_exit_code_counts() {
    let (machine, uploads) = (Machine::new(), Uploads::default());
    let server = machine.server();
    let command = "env >seen.txt\nsleep 1.1; cp ../written.xml out.xml\nfalse | true\nexit 3";
    machine.file("written.xml", ALL_PASS);
    let inputs = [("to", server.url()), ("paths", "out.xml".to_owned()), ("token", "s3cret-s3cret".to_owned())];
    let mut inputs: Vec<(&str, &str)> = inputs.iter().map(|(k, v)| (*k, v.as_str())).collect();
    inputs.push(("command", command));
    let ended = run("action.yml", &inputs, &job(&machine, &uploads, 1));
    // A pipe of which a part fails ends it, as in steps of a workflow.
    assert_eq!((ended.failed, ended.output("state")), (Some(1), "recorded"), "{}", ended.log);
    let seen = std::fs::read_to_string(machine.path("workspace/seen.txt")).unwrap();
    assert!(!seen.contains("s3cret-s3cret"), "the tests see the token");
    inputs[1].1 = "none.xml";
    inputs.push(("exit-with", "command"));
    inputs.retain(|(name, _)| *name != "command");
    inputs.push(("command", "true"));
    let ended = run("action.yml", &inputs, &job(&machine, &uploads, 1));
    assert_eq!(ended.failed, None, "{}", ended.log);
}

#[test]
fn the_readme_shows_how_it_is_used() {
    let readme = file_of("packages/README.md");
    assert!(readme.contains("uses: OWNER/tallyonce@v1") && readme.contains("packages/github"), "{readme}");
}
