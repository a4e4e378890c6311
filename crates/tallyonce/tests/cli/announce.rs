//! What a push says where the people of a CI platform look: files and lines of the real program, as the runners read them.
//! Programs of the platforms are in `announce_agents`.

use std::path::Path;

use proof::spawn::{Finished, Server, github_env};
use serde_json::Value;

use crate::{ALL_PASS, Desk, object, pairs};

fn server(desk: &Desk) -> Server {
    let store = format!("sqlite:{}", desk.folder.path().join("served.db").display());
    Server::start(&desk.binary, &store, &[], &[] as &[&str]).unwrap()
}

/// The environment of a job on a platform.
pub(crate) fn job(slug: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../domain/tests/env/{slug}.env"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Desk {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }

    /// A job on GitHub with the files that its runner gives to a step.
    fn github(&self, attempt: u32, runner: &str) -> Vec<(String, String)> {
        let mut env = github_env(7, attempt, "test", runner);
        env.push(("GITHUB_STEP_SUMMARY".to_owned(), self.path("summary.md")));
        env.push(("GITHUB_OUTPUT".to_owned(), self.path("output")));
        env
    }
}

/// The values of a file as GitHub reads it; of equal names the last one counts.
fn values(text: &str) -> std::collections::BTreeMap<String, String> {
    let mut values = std::collections::BTreeMap::new();
    let mut lines = text.lines();
    while let Some(head) = lines.next() {
        let (name, delimiter) = head.split_once("<<").unwrap();
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        values.insert(name.to_owned(), value.join("\n"));
    }
    values
}

/// The lines that a runner takes for commands.
fn commands<'a>(finished: &'a Finished, mark: &str) -> Vec<&'a str> {
    finished.stderr.lines().filter(|line| line.trim_start().starts_with(mark)).collect()
}

#[test]
fn on_github_each_push_is_in_the_summary_and_the_last_one_in_the_outputs() {
    let desk = Desk::with_report();
    let server = server(&desk);
    let url = server.url();
    let push = ["push", "r.xml", "--to", &url, "--json"];
    let first = object(&desk.run_in(0, &push, &desk.github(1, "r1")));
    let outputs = values(&desk.text("output"));
    for (name, field) in [("state", "state"), ("key", "key"), ("round", "round"), ("url", "url")] {
        assert_eq!(outputs[name], first[field].as_str().unwrap(), "{name}");
    }
    let counts = ["total", "passed", "failed", "errored", "skipped", "flaky"].map(|name| outputs[name].as_str());
    assert_eq!(counts, ["2", "1", "1", "0", "0", "0"]);
    assert_eq!((outputs["revision"].as_str(), outputs["exit"].as_str(), outputs["outbox"].as_str()), ("1", "0", ""));
    let again = desk.run_in(0, &push, &desk.github(1, "r1"));
    assert_eq!(values(&desk.text("output"))["state"], "replayed");
    assert!(commands(&again, "::notice ")[0].contains("nothing is counted twice::"), "{again}");
    desk.file("r.xml", ALL_PASS);
    let revised = desk.run_in(0, &push, &desk.github(2, "r2"));
    assert!(commands(&revised, "::notice ")[0].contains("1 changed, 0 added, 0 not offered"), "{revised}");
    desk.file("r.xml", crate::ONE_FAILS);
    let refused = desk.run_in(5, &push, &desk.github(2, "another machine"));
    let errors = commands(&refused, "::error ");
    assert!(errors.len() == 1 && errors[0].contains("key-collision") && errors[0].contains("--shard"), "{refused}");
    assert_eq!(values(&desk.text("output"))["exit"], "5");
    let summary = desk.text("summary.md");
    let heads: Vec<&str> = summary.lines().filter(|line| line.starts_with("### ")).collect();
    let ends = ["recorded", "recorded already", "revised", "refused"];
    assert!(heads.len() == 4 && heads.iter().zip(ends).all(|(head, end)| head.contains(end)), "{summary}");
    assert!(summary.contains("| s &gt; c &gt; two | failed | passed |"), "{summary}");
    assert!(summary.contains(&format!("]({url}/api/v1/projects/shop/pushes/")), "{summary}");
}

#[test]
fn what_is_kept_says_so_and_what_delivers_it() {
    let desk = Desk::with_report();
    let mut server = server(&desk);
    let url = server.url();
    server.kill9().unwrap();
    let kept = desk.run_in(75, &["push", "r.xml", "--to", &url, "--deadline", "0s"], &desk.github(1, "r1"));
    let outputs = values(&desk.text("output"));
    assert_eq!((outputs["state"].as_str(), outputs["exit"].as_str()), ("not_sent", "75"), "{kept}");
    assert_eq!(outputs["outbox"], ".tallyonce/outbox");
    assert!(desk.text("summary.md").contains("it is kept in the outbox"), "{}", desk.text("summary.md"));
    assert!(commands(&kept, "::error ")[0].contains("tallyonce flush --to"), "{kept}");
    server.restart().unwrap();
    let flushed = desk.run_in(0, &["flush", "--to", &url], &desk.github(1, "r1"));
    let outputs = values(&desk.text("output"));
    assert_eq!((outputs["state"].as_str(), outputs["outbox"].as_str()), ("recorded", ""), "{flushed}");
    assert_eq!(desk.text("summary.md").matches("### ").count(), 2);
}

#[test]
fn of_several_flushed_pushes_each_is_shown_and_the_worst_is_handed_on() {
    let desk = Desk::with_report();
    let dead = ["--to", "http://127.0.0.1:9", "--deadline", "0s"];
    let push = |run: &str, text: &str| {
        desk.file("r.xml", text);
        desk.run(75, &[&["push", "r.xml", "--project", "p", "--run", run], &dead[..]].concat());
    };
    push("1", crate::ONE_FAILS);
    push("2", crate::ONE_FAILS);
    desk.run_in(75, &[&["flush"], &dead[..]].concat(), &desk.github(1, "r1"));
    assert_eq!(desk.text("summary.md").matches("not delivered yet").count(), 2);
    assert_eq!(desk.text("output").matches("state<<").count(), 1);
    assert_eq!(values(&desk.text("output"))["outbox"], ".tallyonce/outbox");
}

#[test]
fn azure_is_told_by_logging_commands_and_a_file() {
    let desk = Desk::with_report();
    std::fs::create_dir(desk.folder.path().join("temp")).unwrap();
    let mut env = job("azure");
    env.extend(pairs(&[("AGENT_TEMPDIRECTORY", &desk.path("temp"))]));
    let push = ["push", "r.xml", "--to", "sqlite:x.db"];
    let finished = desk.run_in(0, &push, &env);
    let uploads = commands(&finished, "##vso[task.uploadsummary]");
    let file = uploads[0].strip_prefix("##vso[task.uploadsummary]").unwrap();
    assert!(std::fs::read_to_string(file).unwrap().contains("Tallyonce: recorded"), "{finished}");
    let variables = commands(&finished, "##vso[task.setvariable ");
    assert_eq!(variables.len(), 13, "{finished}");
    assert!(variables.contains(&"##vso[task.setvariable variable=TALLYONCE_PUSH_STATE;isOutput=true]recorded"));
    // A push that is repeated beside the first has a file of its own.
    desk.run_in(0, &push, &env);
    assert_eq!(std::fs::read_dir(desk.folder.path().join("temp")).unwrap().count(), 2);
    let failed = desk.run_in(3, &[&push[..], &["no.xml"]].concat(), &env);
    assert!(commands(&failed, "##vso[task.logissue type=error;]")[0].contains("no.xml"), "{failed}");
}

#[test]
fn teamcity_reads_standard_output_unless_machines_do() {
    let desk = Desk::with_report();
    let env = job("teamcity");
    let push = ["push", "r.xml", "--project", "p", "--cycle", "c", "--to", "sqlite:x.db"];
    let finished = desk.run_in(0, &push, &env);
    assert!(
        finished.stdout.contains("##teamcity[setParameter name='tallyonce.push.state' value='recorded']\n"),
        "{finished}"
    );
    let finished = desk.run_in(0, &[&push[..], &["--json"]].concat(), &env);
    assert_eq!(object(&finished)["state"], "replayed");
    assert!(finished.stderr.contains("##teamcity[message text='Tallyonce: recorded already"), "{finished}");
}

#[test]
fn gitlab_folds_what_is_noted_and_gets_its_reports_as_files() {
    let desk = Desk::with_report();
    let server = server(&desk);
    let env = job("gitlab");
    let url = server.url();
    let push = |run: &'static str| {
        let files = ["--outputs", "out/push.env", "--links", "out/links.json", "--summary", "out/push.md"];
        let push = ["push", "r.xml", "--to", &url, "-v", "--run", run];
        desk.run_in(0, &[&push[..], &files[..]].concat(), &env)
    };
    std::fs::create_dir(desk.folder.path().join("out")).unwrap();
    let finished = push("1");
    let (start, end) = (finished.stderr.find("section_start:").unwrap(), finished.stderr.find("section_end:").unwrap());
    let sending = finished.stderr.find("try 1: sending").unwrap();
    assert!(start < sending && sending < end, "{finished}");
    push("2");
    let outputs = desk.text("out/push.env");
    assert_eq!(outputs.lines().count(), 13, "{outputs}");
    assert!(outputs.contains("TALLYONCE_PUSH_KEY=gitlab") && outputs.contains(":run:2:job:"), "{outputs}");
    let links: Value = serde_json::from_str(&desk.text("out/links.json")).unwrap();
    let urls: Vec<&str> = (0..2).map(|at| links["Tallyonce"][at]["external_link"]["url"].as_str().unwrap()).collect();
    assert!(urls.iter().all(|link| link.starts_with(&url)) && urls[0] != urls[1], "{links}");
    assert_eq!(desk.text("out/push.md").matches("### ").count(), 2);
}

#[test]
fn a_failure_stands_outside_of_the_fold() {
    let desk = Desk::with_report();
    let push = ["push", "r.xml", "--to", "http://127.0.0.1:9", "--deadline", "0s", "-v"];
    let finished = desk.run_in(75, &push, &desk.github(1, "r1"));
    let place = |words: &str| finished.stderr.find(words).unwrap_or_else(|| panic!("{words}: {finished}"));
    assert!(
        place("::group::") < place("try 1: sending") && place("try 1: sending") < place("::endgroup::"),
        "{finished}"
    );
    assert!(place("::endgroup::") < place("\nerror: "), "{finished}");
    // Nothing is folded where nothing is said.
    let quiet = desk.run_in(75, &[&push[..], &["--quiet"]].concat(), &desk.github(1, "r1"));
    assert!(!quiet.stderr.contains("group::"), "{quiet}");
}

#[test]
fn outside_ci_and_under_act_only_the_files_that_are_asked_for() {
    let desk = Desk::with_report();
    let files = ["--summary", "asked.md", "--outputs", "asked.env"];
    let push = ["push", "r.xml", "--run", "1", "--project", "p", "--cycle", "c"];
    let mut act = desk.github(1, "r1");
    act.push(("ACT".to_owned(), "true".to_owned()));
    let mut never = desk.github(1, "r1");
    never.push(("TALLYONCE_ANNOUNCE".to_owned(), "never".to_owned()));
    never.push(("TALLYONCE_TO".to_owned(), "sqlite:x.db".to_owned()));
    for env in [pairs(&[("GITHUB_STEP_SUMMARY", &desk.path("summary.md"))]), act, never] {
        for name in ["asked.md", "asked.env"] {
            let _ = std::fs::remove_file(desk.folder.path().join(name));
        }
        let finished = desk.run_in(0, &[&push[..], &files[..]].concat(), &env);
        assert!(!desk.exists("summary.md") && !desk.exists("output"), "{finished}");
        assert!(!finished.stderr.contains("::"), "{finished}");
        assert!(desk.text("asked.md").contains("### ") && desk.text("asked.env").contains("TALLYONCE_PUSH_EXIT=0"));
    }
}

#[test]
fn a_place_that_cannot_be_written_is_a_warning() {
    let desk = Desk::with_report();
    let mut env = desk.github(1, "r1");
    env.push(("GITHUB_STEP_SUMMARY".to_owned(), desk.path("no/such/summary.md")));
    let finished = desk.run_in(0, &["push", "r.xml", "--to", "sqlite:x.db", "--json"], &env);
    assert_eq!(object(&finished)["state"], "recorded");
    assert!(finished.stderr.contains("warning: ") && finished.stderr.contains("no/such/summary.md"), "{finished}");
    assert_eq!(values(&desk.text("output"))["state"], "recorded");
}

#[test]
fn no_name_of_a_file_or_test_is_a_command_in_the_log() {
    let desk = Desk::new();
    let name = "x\n::error::forged\n##vso[task.complete result=Failed;]##[group]";
    let report = "<testsuite name=\"s\"><testcase classname=\"c\" name=\"##vso[task.setvariable variable=a;]b\"/>\
        <testcase classname=\"c\" name=\"::set-output name=state::x&#10;::error::y | &lt;script&gt;\">\
        <failure message=\"m\"/></testcase></testsuite>";
    desk.file(&format!("{name}.xml"), "<testsuite");
    desk.file("r.xml", report);
    let push = ["push", ".", "--to", "sqlite:x.db", "--partial", "--json", "-v"];
    let first = desk.run_in(0, &push, &desk.github(1, "r1"));
    desk.file("r.xml", &report.replace("<failure message=\"m\"/>", ""));
    let second = desk.run_in(0, &push, &desk.github(2, "r2"));
    assert_eq!(object(&second)["difference"]["items"].as_array().unwrap().len(), 1, "{second}");
    for finished in [&first, &second] {
        assert!(!finished.stderr.contains("##") && !finished.stdout.contains("##"), "{finished}");
        for line in commands(finished, "::") {
            let known = ["::group::", "::endgroup::", "::warning title=Tallyonce", "::notice title=Tallyonce"];
            assert!(known.iter().any(|start| line.starts_with(start)), "{line}");
        }
    }
    assert!(!desk.text("summary.md").contains("<script") && !desk.text("summary.md").contains("##vso["));
}

#[test]
fn no_secret_is_announced_anywhere() {
    let desk = Desk::with_report();
    let mut env = desk.github(1, "r1");
    let proxy = "http://someone:proxy-secret@127.0.0.1:9";
    let secrets = [("TALLYONCE_TOKEN", "token-secret"), ("https_proxy", proxy), ("http_proxy", proxy)];
    env.extend(pairs(&secrets));
    let asked = ["--summary", "asked.md", "--outputs", "asked.env", "--links", "links.json", "--deadline", "0s", "-v"];
    for (code, to) in [
        (75, "http://tally.invalid"),
        (75, "https://tally.invalid"),
        (2, "https://someone:address-secret@tally.invalid"),
        (0, "sqlite:x.db"),
    ] {
        let finished = desk.run_in(code, &[&["push", "r.xml", "--to", to], &asked[..]].concat(), &env);
        let files = ["summary.md", "output", "asked.md", "asked.env", "links.json"].map(|name| desk.text(name));
        let all = [finished.stdout, finished.stderr, files.concat()].concat();
        for secret in ["token-secret", "proxy-secret", "address-secret"] {
            assert!(!all.contains(secret), "{to}: {secret}: {all}");
        }
    }
}

#[test]
fn on_every_platform_a_push_is_announced_where_that_has_places() {
    let files = [
        "GITHUB_STEP_SUMMARY",
        "GITHUB_OUTPUT",
        "BITBUCKET_PIPELINES_VARIABLES_PATH",
        "CIRRUS_ENV",
        "DRONE_OUTPUT",
        "VELA_OUTPUTS",
    ];
    let folders = ["AGENT_TEMPDIRECTORY", "CF_VOLUME_PATH", "ARTIFACTS"];
    let places: &[(&str, &[&str])] = &[
        ("github", &["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"]),
        ("gitea", &["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"]),
        ("forgejo", &["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"]),
        ("azure", &["AGENT_TEMPDIRECTORY"]),
        ("bitbucket", &["BITBUCKET_PIPELINES_VARIABLES_PATH"]),
        ("cirrus", &["CIRRUS_ENV"]),
        ("codefresh", &["CF_VOLUME_PATH"]),
        ("harness", &["DRONE_OUTPUT"]),
        ("drone", &["DRONE_OUTPUT"]),
        ("vela", &["VELA_OUTPUTS"]),
        ("prow", &["ARTIFACTS"]),
    ];
    let slugs = ["circleci", "jenkins", "woodpecker", "travis", "gitlab", "semaphore", "bamboo", "k8s", "codebuild"];
    for slug in places.iter().map(|(slug, _)| *slug).chain(slugs) {
        let desk = Desk::with_report();
        let mut env = job(slug);
        for folder in folders {
            std::fs::create_dir_all(desk.folder.path().join("places").join(folder)).unwrap();
        }
        env.extend(files.iter().chain(&folders).map(|name| ((*name).to_owned(), desk.path(&format!("places/{name}")))));
        desk.run_in(0, &["push", "r.xml", "--project", "p", "--cycle", "c", "--to", "sqlite:x.db"], &env);
        let mut used: Vec<&str> = files.into_iter().filter(|name| desk.exists(&format!("places/{name}"))).collect();
        let entries = |name: &str| std::fs::read_dir(desk.folder.path().join("places").join(name)).unwrap().count();
        used.extend(folders.into_iter().filter(|name| entries(name) > 0));
        used.sort_unstable();
        let expected = places.iter().find(|(name, _)| *name == slug).map_or(&[][..], |(_, places)| places);
        assert_eq!(used, expected, "{slug}");
    }
}
