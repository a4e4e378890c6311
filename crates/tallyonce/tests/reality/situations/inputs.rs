//! What stands in the files, and where they travel: reruns and equal names in one file, merged files, raw bytes, sealed
//! pushes, a push that is told no destination.

use proof::spawn::github_env;
use serde_json::Value;

use super::{Ci, WHOLE, numbers, whole};
use crate::world::{World, junit};

/// Item by name in what `show --items` lists.
fn named<'a>(items: &'a [Value], name: &str) -> Vec<&'a Value> {
    items.iter().filter(|item| item["item"]["name"] == name).collect()
}

fn listed(ci: &Ci) -> Vec<Value> {
    ci.show(&["--items", "--round", "latest"])["items"].as_array().unwrap().clone()
}

/// Status, whether it is flaky, and the statuses before it.
fn story(item: &Value) -> (&str, bool, Vec<&str>) {
    let before = item["attempts"].as_array().unwrap().iter().map(|attempt| attempt["status"].as_str().unwrap());
    (item["status"].as_str().unwrap(), item["flaky"] == true, before.collect())
}

#[test]
fn s19_surefire_tells_its_reruns_inside_one_file() {
    whole(|ci| {
        let report = r#"<testsuite name="shop.CartTest" time="1.2" tests="3" errors="0" skipped="0" failures="1" flakes="1">
  <testcase name="adds" classname="shop.CartTest" time="0.1"/>
  <testcase name="waits" classname="shop.CartTest" time="0.3">
    <flakyFailure message="too early" type="java.lang.AssertionError"><stackTrace>at shop.CartTest</stackTrace></flakyFailure>
    <flakyError message="no socket" type="java.io.IOException"><stackTrace>at shop.CartTest</stackTrace></flakyError>
  </testcase>
  <testcase name="pays" classname="shop.CartTest" time="0.4">
    <failure message="declined" type="java.lang.AssertionError">at shop.CartTest</failure>
    <rerunFailure message="declined again" type="java.lang.AssertionError"><stackTrace>at shop.CartTest</stackTrace></rerunFailure>
  </testcase>
</testsuite>"#;
        ci.push(1, 1, report, &[]).expect(0, "recorded");
        assert_eq!(ci.headline(), [3, 2, 1, 0, 1]);
        let items = listed(ci);
        assert_eq!(story(named(&items, "adds")[0]), ("passed", false, vec![]));
        assert_eq!(story(named(&items, "waits")[0]), ("passed", true, vec!["failed", "errored"]));
        assert_eq!(story(named(&items, "pays")[0]), ("failed", false, vec!["failed"]));
    });
}

#[test]
fn s19_pytest_tells_its_reruns_as_tests_of_the_same_name() {
    whole(|ci| {
        // A failed attempt that is tried again stands there as one that passed; the last is the truth.
        let case = |name: &str, body: &str| {
            format!("<testcase classname=\"tests.test_cart\" name=\"{name}\" time=\"0.1\">{body}</testcase>")
        };
        let failure = "<failure message=\"declined\">trace</failure>";
        let cases = [case("adds", ""), case("waits", ""), case("waits", ""), case("pays", ""), case("pays", failure)];
        let report = format!("<testsuites><testsuite name=\"pytest\">{}</testsuite></testsuites>", cases.concat());
        let outcome = ci.push(1, 1, &report, &[]).expect(0, "recorded");
        assert_eq!(outcome.json["report"]["elements"].as_u64().unwrap_or(5), 5);
        assert_eq!(ci.headline(), [3, 2, 1, 0, 1]);
        let items = listed(ci);
        assert_eq!(story(named(&items, "waits")[0]), ("passed", true, vec!["failed"]));
        assert_eq!(story(named(&items, "pays")[0]), ("failed", false, vec!["failed"]));
    });
}

#[test]
fn s20_tests_of_equal_names_in_one_file_are_items_of_their_own() {
    let world = World::new();
    let file = |class: &str, names: &[(&str, usize)]| {
        let case = |name: &str| format!("<testcase classname=\"{class}\" name=\"{name}\" time=\"0.1\"/>");
        let cases: String = names.iter().map(|(name, times)| case(name).repeat(*times)).collect();
        format!("<testsuite name=\"{class}\">{cases}</testsuite>")
    };
    world.report("in/a.xml", &file("A", &[("adds", 3), ("takes", 2), ("clears", 1)]));
    world.report("in/b.xml", &file("B", &[("pays", 2)]));
    world.report("in/c.xml", &file("C", &[("ships", 1)]));
    let push = || world.push_local("r1", &["in/*.xml"]);
    let first = push().expect(0, "recorded");
    assert_eq!(first.total(), 9);
    let warnings: Vec<&str> = first.json["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    let about = |file: &str| warnings.iter().filter(|warning| warning.contains(file)).count();
    assert_eq!((about("a.xml"), about("b.xml"), about("c.xml")), (1, 1, 0), "once per file: {warnings:#?}");
    let shown = world.show(&["--items"]);
    let items = shown["items"].as_array().unwrap();
    let of = |name: &str| {
        let mut ordinals: Vec<u64> =
            named(items, name).iter().map(|item| item["item"]["ordinal"].as_u64().unwrap_or(0)).collect();
        ordinals.sort_unstable();
        ordinals
    };
    assert_eq!((of("adds"), of("takes"), of("clears")), (vec![0, 1, 2], vec![0, 1], vec![0]));
    push().expect(0, "replayed");
}

/// The job of a pull request that comes from a fork, as GitHub sets it up: no secret is there.
fn of_a_fork(run: u64) -> super::Variables {
    let mut env = github_env(run, 1, "test", "untrusted");
    let pull_request = [
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_REF", "refs/pull/17/merge"),
        ("GITHUB_REF_NAME", "17/merge"),
        ("GITHUB_HEAD_REF", "fix"),
        ("GITHUB_BASE_REF", "main"),
    ];
    env.retain(|(name, _)| pull_request.iter().all(|(other, _)| name != other));
    env.extend(pull_request.map(|(name, value)| (name.to_owned(), value.to_owned())));
    env
}

#[test]
fn s24_a_fork_seals_and_a_trusted_job_flushes() {
    let ci = Ci::new(WHOLE);
    let world = &ci.world;
    world.report("junit.xml", &junit("ppf"));
    let seal = |file: &str, more: &[&str]| {
        let arguments = [&["push", "junit.xml", "--seal", file], more].concat();
        world.run(&arguments).envs(of_a_fork(1)).output().unwrap().expect_code(0).unwrap()
    };
    let green = seal("out.push", &[]);
    assert!(green.stderr.contains("tallyonce flush") && green.stderr.contains("--run 1"), "{}", green.stderr);
    let _ = seal("forged.push", &["--run", "2"]);
    // The trusted job has a run of its own and takes that of the fork's from its event.
    let url = ci.server.url();
    let flush = |file: &str, run: &str| {
        let claims = ["--to", &url, "--project", "shop", "--cycle", "pr-17", "--run", run, "--json"];
        let arguments = [&["flush", file], &claims[..]].concat();
        crate::world::outcome(world.run(&arguments).envs(github_env(2, 1, "report", "trusted")).output().unwrap())
    };
    flush("forged.push", "1").expect(4, "rejected");
    flush("out.push", "2").expect(4, "rejected");
    assert!(ci.shows_nothing());
    flush("out.push", "1").expect(0, "recorded");
    flush("out.push", "1").expect(0, "replayed");
    let shown = world.show(&["--cycle", "pr-17", "--from", &url]);
    assert_eq!(numbers(&shown["headline"]), [3, 2, 1, 0, 0]);
    assert_eq!(shown["rounds"][0]["run"], "1");
}

#[test]
fn s31_the_same_raw_bytes_are_the_same_content() {
    let ci = Ci::new(WHOLE);
    let post = || {
        let curl = std::process::Command::new("curl")
            .args(["--silent", "--show-error", "--fail-with-body", "--include"])
            .args(["-H", "Idempotency-Key: raw-1", "--data-binary"])
            .arg(junit("pfp"))
            .arg(format!("{}/api/v1/projects/shop/pushes?cycle=main&run=9", ci.server.url()))
            .output()
            .unwrap();
        String::from_utf8(curl.stdout).unwrap().to_lowercase()
    };
    assert!(!post().contains("idempotent-replayed"));
    let again = post();
    assert!(again.contains("idempotent-replayed: true") && again.contains("push-difference: none"), "{again}");
}

#[test]
fn s34_the_merged_report_beside_its_parts() {
    let world = World::new();
    let part = |n: u32| {
        format!(
            "<testsuite name=\"part.Class{n}\" tests=\"2\"><testcase classname=\"part.Class{n}\" name=\"a\" time=\"0.1\"/><testcase classname=\"part.Class{n}\" name=\"b\" time=\"0.2\"/></testsuite>"
        )
    };
    world.report("reports/TEST-1.xml", &part(1));
    world.report("reports/TEST-2.xml", &part(2));
    world.report("reports/all.xml", &format!("<testsuites>{}{}</testsuites>", part(1), part(2)));
    let outcome = world.push_local("r1", &["reports/*.xml"]).expect(0, "recorded");
    assert_eq!(outcome.total(), 4);
    let warnings = outcome.json["warnings"].to_string();
    assert!(warnings.contains("all.xml") && warnings.contains("TEST-1.xml"), "both names: {warnings}");
}

#[test]
fn s35_ci_without_a_destination() {
    let world = World::new();
    world.report("junit.xml", &junit("pp"));
    let outcome = world.push(&["junit.xml"], &github_env(1, 1, "test", "runner")).expect(2, "usage");
    assert!(outcome.stderr.contains("--to"), "{}", outcome.stderr);
    assert!(!world.path("tallyonce.db").exists());
}
