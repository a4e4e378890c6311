//! `key` over the environments of other jobs: explained, judged, and never mixed with this process's.

use std::path::Path;

use proof::spawn::github_env;

use crate::{Desk, object, pairs};

/// A folder with the environment of one job of that platform in `job.env`.
fn desk(slug: &str) -> Desk {
    let desk = Desk::new();
    desk.file("job.env", &environment(slug));
    desk
}

fn environment(slug: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../domain/tests/env/{slug}.env"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn explained() {
    for slug in ["github", "gitlab", "azure", "buildkite", "jenkins"] {
        let finished = desk(slug).run(0, &["key", "--explain", "--env-file", "job.env"]);
        insta::assert_snapshot!(slug, finished.stdout);
    }
}

#[test]
fn every_platform_is_explained_from_a_file() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../domain/tests/env")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let slug = name.strip_suffix(".env").unwrap();
        let value = desk(slug).json(0, &["key", "--json", "--env-file", "job.env", "--platform", slug]);
        assert_eq!(value["platform"], slug);
        assert!(!value["reruns"].as_array().unwrap().is_empty(), "{slug}");
        let strength = value["strength"].as_str().unwrap();
        let explained = desk(slug).run(0, &["key", "--explain", "--env-file", "job.env", "--platform", slug]).stdout;
        assert!(explained.contains(&format!("class  {strength}: ")), "{explained}");
        assert!(strength == "strong" || explained.contains("--run"), "{explained}");
    }
}

#[test]
fn the_file_alone_counts() {
    let desk = desk("gitlab");
    let mut env = github_env(7, 2, "test", "r1");
    env.extend(pairs(&[("TALLYONCE_RUN", "of-this-process"), ("TALLYONCE_VARIANT", "os=this")]));
    let here = desk.run_in(0, &["key"], &env).stdout;
    assert_eq!(here, "github:acme/shop:run:of-this-process:job:test:variant:os=this\n");
    let there = desk.run_in(0, &["key", "--env-file", "job.env"], &env).stdout;
    assert!(there.starts_with("gitlab") && !there.contains("this"), "{there}");
    let by_variable = pairs(&[("TALLYONCE_ENV_FILE", "job.env"), ("TALLYONCE_RUN", "of-this-process")]);
    assert_eq!(desk.run_in(0, &["key"], &by_variable).stdout, there);
    // What is typed wins; what the file says is the other job's own flag.
    desk.file("job.env", "TRAVIS=true\nTALLYONCE_RUN=of-the-file\nTALLYONCE_JOB=j\nTALLYONCE_SHARD=2/3\n");
    let arguments = ["key", "--explain", "--env-file", "job.env", "--run", "typed"];
    let explained = desk.run_in(0, &arguments, &env).stdout;
    assert!(explained.starts_with("key    travis:run:typed:job:j:shard:2-3\n"), "{explained}");
    assert!(explained.contains("from job.env: TALLYONCE_SHARD: given by you"), "{explained}");
    assert!(explained.contains("from --run: given by you"), "{explained}");
    desk.file("job.env", "TRAVIS=true\nTALLYONCE_SHARD=2of3\n");
    let finished = desk.run(2, &["key", "--env-file", "job.env"]);
    assert!(finished.stderr.contains("job.env: TALLYONCE_SHARD"), "{finished}");
}

#[test]
fn what_env_prints_is_understood_and_a_bad_line_is_named() {
    let desk = Desk::new();
    let of_input = |text: &str| desk.command(&["key", "--env-file", "-"]).input(text).output().unwrap();
    let lines = environment("gitlab");
    let zeros: String = lines.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\0"]).collect();
    let expected = self::desk("gitlab").run(0, &["key", "--env-file", "job.env"]).stdout;
    for text in [lines, zeros + "CI_COMMIT_MESSAGE=two\nlines\0"] {
        let finished = of_input(&text);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), expected.as_str()), "{finished}");
    }
    let finished = of_input("GITLAB_CI=true\n\nhunter2 is a secret\n");
    assert_eq!(finished.code, Some(2));
    assert!(finished.stderr.contains("standard input, line 3: this is no NAME=value"), "{finished}");
    assert!(finished.stderr.contains("env -0") && !finished.stderr.contains("hunter2"), "{finished}");
    let finished = desk.run(2, &["key", "--env-file", "absent.env"]);
    assert!(finished.stderr.contains("absent.env cannot be read"), "{finished}");
}

#[test]
fn a_platform_is_named() {
    let desk = Desk::new();
    let refused = desk.run(2, &["key", "--platform", "argo"]);
    for word in ["Argo Workflows", "{{workflow.uid}}", "--run", "data:", "next:"] {
        assert!(refused.stderr.contains(word), "{word}: {refused}");
    }
    let value = desk.json(2, &["key", "--platform", "argo-workflows", "--json"]);
    assert_eq!((&value["platform"], &value["strength"], &value["key"]), (&"argo".into(), &"none".into(), &().into()));
    assert_eq!(value["reruns"][0]["effect"], "same-key");
    assert_eq!(desk.run(0, &["key", "--platform", "argo", "--run", "u", "--job", "j"]).stdout, "run:u:job:j\n");
    let unknown = desk.run(2, &["key", "--platform", "hudson"]);
    assert!(unknown.stderr.contains("known: prow, forgejo, gitea, github"), "{unknown}");
    // This environment as another platform's than its markers say.
    let mut env = github_env(7, 2, "test", "r1");
    env.push(("GITEA_ACTIONS".to_owned(), "true".to_owned()));
    let as_github = desk.run_in(0, &["key", "--platform", "github"], &env).stdout;
    assert_eq!(as_github, "github:acme/shop:run:7:job:test\n");
    let refused = desk.run_in(2, &["key", "--platform", "gitlab"], &env);
    assert!(refused.stderr.contains("this is GitLab CI, but CI_PIPELINE_ID is not set"), "{refused}");
}

#[test]
fn a_refusal_as_json_says_which_platform_it_is() {
    let desk = desk("sourcehut");
    let text = environment("sourcehut").replace("TALLYONCE_JOB=", "#");
    desk.file("job.env", &text);
    let finished = desk.run(2, &["key", "--env-file", "job.env", "--json"]);
    let value = object(&finished);
    assert_eq!((&value["platform"], &value["strength"]), (&"sourcehut".into(), &"weak".into()));
    assert!(finished.stderr.contains("--job is required") && finished.stderr.contains("task's name"), "{finished}");
}

#[test]
fn a_value_is_judged_by_the_other_environment() {
    let desk = desk("gitlab");
    let id = environment("gitlab").lines().find_map(|line| line.strip_prefix("CI_JOB_ID=").map(str::to_owned)).unwrap();
    let finished = desk.run(2, &["key", "--env-file", "job.env", "--run", &id, "--strict"]);
    assert!(finished.stderr.contains("CI_JOB_ID, which a retry changes"), "{finished}");
    desk.run(0, &["key", "--env-file", "job.env", "--strict"]);
}
