//! The variables that `docs/ci/docker.md` says to hand into a container are enough: key, attempt, execution, project and cycle
//! are the same with nothing else. Must not know how they are derived.

use proof::spawn::{Binary, Run};
use serde_json::Value;

use crate::{root, work};

/// What a job with this environment would push.
fn identity(binary: &Binary, env: &[(String, String)]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("r.xml"), "<testsuite name=\"s\"><testcase name=\"one\"/></testsuite>").unwrap();
    let ask = |arguments: &[&str]| {
        let run = Run::new(binary).args(arguments).folder(folder.path()).envs(env.iter().cloned());
        run.timeout(work::PATIENCE).output().unwrap()
    };
    let key = ask(&["key", "--json"]);
    let key: Value = serde_json::from_str(&key.stdout).unwrap_or_else(|error| panic!("{error}: {key}"));
    let push = ask(&["push", "r.xml", "--dry-run", "--json", "--to", "http://127.0.0.1:9"]);
    let push: Value = serde_json::from_str(push.stdout.trim()).unwrap_or_default();
    let of_key = ["platform", "key", "round", "ordinal", "executor", "run_counter"].map(|name| key[name].clone());
    [&of_key[..], &["project", "cycle"].map(|name| push[name].clone())].concat()
}

#[test]
fn what_is_handed_into_a_container_is_enough() {
    let binary = Binary::at(env!("CARGO_BIN_EXE_tallyonce")).unwrap();
    let page = std::fs::read_to_string(root().join("docs/ci/docker.md")).unwrap();
    let mut seen = 0;
    for (slug, title, _) in domain::ci::platforms() {
        let all = work::example_environment(slug).unwrap();
        let marked = identity(&binary, &all);
        if marked[0].is_null() {
            // Nothing marks it, so there is nothing to hand in.
            continue;
        }
        let row = page.lines().find(|line| line.contains(&format!("]({slug}.md) |")));
        let row = row.unwrap_or_else(|| panic!("docker.md has no variables for {title}"));
        let named: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let handed = all.iter().filter(|(name, _)| named.contains(&name.as_str()) || name.starts_with("TALLYONCE_"));
        let handed: Vec<(String, String)> = handed.cloned().collect();
        assert_eq!(identity(&binary, &handed), marked, "{title}: something is missing in docker.md");
        seen += 1;
    }
    eprintln!("{seen} platforms: the variables in docker.md are enough");
    assert!(seen > 20, "only {seen} platforms were recognised by their example environments");
}
