//! What single platforms do: job ids that rise, retries that nothing tells apart, builds whose numbers start again, pods.

use proof::spawn::gitlab_env;

use super::{Ci, Variables, numbers, part, race, staged, tests, whole};
use crate::world::{Outcome, junit};

fn variables<const N: usize>(list: [(&str, &str); N]) -> Variables {
    list.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A container of `CircleCI` that gets none of its variables but the marker: the flags say the rest.
fn circle(ci: &Ci, node: &str, report: &str, more: &[&str]) -> Outcome {
    let env = variables([("CI", "true"), ("CIRCLECI", "true")]);
    let flags = ["--run", "0f7a", "--job", "test", "--shard", node];
    ci.push_from(&env, report, &[&flags[..], more].concat())
}

#[test]
fn s10_failed_tests_come_to_another_node() {
    whole(failed_tests_come_to_another_node);
}

#[test]
fn s10_staged_failed_tests_come_to_another_node() {
    staged(failed_tests_come_to_another_node);
}

fn failed_tests_come_to_another_node(ci: &mut Ci) {
    circle(ci, "1/2", &part("suite", 0..40, 40), &[]).expect(0, "recorded");
    circle(ci, "2/2", &part("suite", 40..80, 60), &[]).expect(0, "recorded");
    assert_eq!(ci.headline(), [80, 60, 20, 0, 0]);
    // They are known in the round under the same job: no collision. They are new to this node, and so it is revised.
    let again = circle(ci, "1/2", &part("suite", 60..80, 80), &[]).expect(0, "revised");
    assert_eq!((&again.json["difference"]["added"], &again.json["difference"]["changed"]), (&20.into(), &0.into()));
    // Each counts once. Nothing tells that they ran later, so that the worst does.
    let round = ci.round();
    assert_eq!((&round["complete"], &round["overlaps"]), (&true.into(), &20.into()));
    assert_eq!(ci.headline(), [80, 60, 20, 0, 0]);
}

#[test]
fn s10_with_a_number_for_the_attempt_it_counts() {
    whole(failed_tests_come_to_another_node_with_a_number);
}

#[test]
fn s10_staged_with_a_number_for_the_attempt_it_counts() {
    staged(failed_tests_come_to_another_node_with_a_number);
}

fn failed_tests_come_to_another_node_with_a_number(ci: &mut Ci) {
    let (first, second) = (["--attempt", "1"], ["--attempt", "2"]);
    circle(ci, "1/2", &part("suite", 0..40, 40), &first).expect(0, "recorded");
    circle(ci, "2/2", &part("suite", 40..80, 60), &first).expect(0, "recorded");
    circle(ci, "1/2", &part("suite", 60..80, 80), &second).expect(0, "revised");
    let round = ci.round();
    assert_eq!((&round["overlaps"], numbers(&round["counts"])[..3].to_vec()), (&20.into(), vec![80, 80, 0]));
}

fn gitlab(ci: &Ci, pipeline: u64, job_id: u64, name: &str, node: Option<(u32, u32)>, report: &str) -> Outcome {
    ci.push_from(&gitlab_env(pipeline, job_id, name, node), report, &[])
}

#[test]
fn s12_a_gitlab_job_is_retried() {
    whole(a_gitlab_job_is_retried);
}

#[test]
fn s12_staged_a_gitlab_job_is_retried() {
    staged(a_gitlab_job_is_retried);
}

fn a_gitlab_job_is_retried(ci: &mut Ci) {
    for shard in 1..=3 {
        let report = tests(&format!("part {shard}"), 40, if shard == 2 { 7 } else { 0 });
        gitlab(ci, 77, 100 + u64::from(shard), &format!("rspec {shard}/3"), Some((shard, 3)), &report)
            .expect(0, "recorded");
    }
    let retried = gitlab(ci, 77, 110, "rspec 2/3", Some((2, 3)), &tests("part 2", 40, 0)).expect(0, "revised");
    assert_eq!((&retried.json["job"], &retried.json["shard"]), (&"rspec".into(), &"2/3".into()));
    let round = ci.round();
    assert_eq!((&round["complete"], numbers(&round["counts"])), (&true.into(), [120, 120, 0, 0, 7]));
}

#[test]
fn s13_a_gitlab_matrix_is_one_job_of_two_variants() {
    whole(|ci| {
        gitlab(ci, 77, 101, "rspec: [ruby3, pg]", Some((1, 2)), &junit("pp")).expect(0, "recorded");
        gitlab(ci, 77, 102, "rspec: [ruby3, mysql]", Some((2, 2)), &junit("pp")).expect(0, "recorded");
        let round = ci.round();
        assert_eq!((&round["overlaps"], numbers(&round["counts"])[0]), (&0.into(), 4));
        assert!(round["shards"].as_array().unwrap().iter().all(|s| s["job"] == "rspec"));
    });
}

#[test]
fn s32_the_later_gitlab_job_wins_whatever_arrives_last() {
    whole(the_later_job_wins);
}

#[test]
fn s32_staged_the_later_gitlab_job_wins_whatever_arrives_last() {
    staged(the_later_job_wins);
}

fn the_later_job_wins(ci: &mut Ci) {
    let (bad, good) = (tests("suite", 40, 40), tests("suite", 40, 0));
    gitlab(ci, 77, 201, "rspec", None, &good).expect(0, "recorded");
    gitlab(ci, 77, 200, "rspec", None, &bad).expect(0, "replayed");
    assert_eq!(ci.headline(), [40, 40, 0, 0, 0]);
    gitlab(ci, 78, 300, "rspec", None, &good).expect(0, "recorded");
    gitlab(ci, 78, 301, "rspec", None, &bad).expect(0, "revised");
    assert_eq!(ci.headline(), [40, 0, 40, 0, 0]);
}

/// A stage of a build on Jenkins.
fn jenkins(build: &str, commit: &str) -> Variables {
    variables([
        ("CI", "true"),
        ("JENKINS_URL", "https://jenkins.acme.example/"),
        ("JOB_NAME", "shop/main"),
        ("BUILD_NUMBER", build),
        ("BUILD_ID", build),
        ("BUILD_TAG", &format!("jenkins-shop-main-{build}")),
        ("BUILD_URL", &format!("https://jenkins.acme.example/job/shop/job/main/{build}/")),
        ("STAGE_NAME", "test"),
        ("NODE_NAME", "agent-1"),
        ("WORKSPACE", "/var/lib/jenkins/shop_main"),
        ("EXECUTOR_NUMBER", "0"),
        ("BRANCH_NAME", "main"),
        ("GIT_COMMIT", commit),
    ])
}

const ONE_COMMIT: &str = "5b1c6e9f0d2a4738b5c6d7e8f9a0b1c2d3e4f506";
const OTHER_COMMIT: &str = "c0ffee11d2a4738b5c6d7e8f9a0b1c2d3e4f5061";

#[test]
fn s14_jenkins_retries_test_and_push() {
    whole(jenkins_retries);
}

#[test]
fn s14_staged_jenkins_retries_test_and_push() {
    staged(jenkins_retries);
}

fn jenkins_retries(ci: &mut Ci) {
    // The tests that failed pass; then other tests run, and others of them fail.
    let times = [part("suite", 0..40, 36), part("suite", 0..40, 40), part("suite", 5..50, 44)];
    // Nothing tells the attempts apart. What has an outcome keeps it, what has none gets one, and it is said.
    let kept = [("recorded", None), ("replayed", Some("semantic")), ("revised", Some("structural"))];
    let keys = [0, 1, 2].map(|n| {
        let outcome = ci.push_from(&jenkins("7", ONE_COMMIT), &times[n], &[]).expect(0, kept[n].0);
        assert_eq!(outcome.json["difference"]["class"].as_str(), kept[n].1);
        assert_eq!(n == 0, !outcome.stderr.contains("other outcomes are recorded"), "{}", outcome.stderr);
        outcome.json["key"].clone()
    });
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(ci.headline(), [50, 40, 10, 0, 0]);
    // With the policy the last counts.
    for (report, state) in times.iter().zip(["recorded", "revised", "revised"]) {
        ci.push_from(&jenkins("8", ONE_COMMIT), report, &["--on-difference", "revise"]).expect(0, state);
    }
    assert_eq!(ci.headline(), [50, 44, 6, 0, 4]);
}

#[test]
fn s15_a_jenkins_build_is_replayed_as_a_new_round() {
    whole(|ci| {
        let [first, second] = ["7", "8"].map(|build| {
            ci.push_from(&jenkins(build, ONE_COMMIT), &junit("pf"), &[]).expect(0, "recorded").json["round"].clone()
        });
        assert_ne!(first, second);
        assert_eq!(ci.show(&["--round", "all"])["rounds"].as_array().unwrap().len(), 2);
        assert_eq!(ci.headline(), [2, 1, 1, 0, 0]);
    });
}

#[test]
fn s16_a_jenkins_job_is_made_anew_and_its_numbers_start_again() {
    whole(another_commit_under_the_key);
}

#[test]
fn s16_staged_a_jenkins_job_is_made_anew_and_its_numbers_start_again() {
    staged(another_commit_under_the_key);
}

fn another_commit_under_the_key(ci: &mut Ci) {
    ci.push_from(&jenkins("1", ONE_COMMIT), &tests("suite", 40, 0), &[]).expect(0, "recorded");
    let reused = ci.push_from(&jenkins("1", OTHER_COMMIT), &tests("suite", 40, 0), &[]);
    assert_eq!((reused.code, &reused.json["code"]), (5, &"key-reused".into()), "{:#}", reused.json);
    for named in ["commit", ONE_COMMIT, OTHER_COMMIT] {
        assert!(reused.stderr.contains(named), "{named}: {}", reused.stderr);
    }
    assert_eq!(ci.headline(), [40, 40, 0, 0, 0]);
    assert_eq!(ci.round()["commit"].as_str().unwrap_or(ONE_COMMIT), ONE_COMMIT);
}

/// A pod of an indexed Job, which was given the uid of its Job.
fn pod(name: &str) -> Variables {
    variables([("JOB_COMPLETION_INDEX", "0"), ("HOSTNAME", name)])
}

const UID: &str = "7d5e5c1e-8a53-4c0e-9d6d-2f0b8f3f5a11";
const OTHER_UID: &str = "11a7b0d2-1f53-4b7e-8c1d-9a3d8e2f4c77";

#[test]
fn s17_a_pod_and_its_replacement_are_both_alive() {
    whole(two_pods_are_alive);
}

#[test]
fn s17_staged_a_pod_and_its_replacement_are_both_alive() {
    staged(two_pods_are_alive);
}

fn two_pods_are_alive(ci: &mut Ci) {
    let run = |uid| ["--run", uid, "--job", "suite", "--shard", "1/1"];
    let at_once = |uid, reports: [&String; 2]| {
        let pods = [("pod-x7", reports[0]), ("pod-k2", reports[1])];
        let ended = race(pods.map(|(name, report)| ci.machine(&pod(name), report, &run(uid))));
        let mut states = ended.each_ref().map(|outcome| (outcome.code, outcome.state()));
        states.sort_unstable();
        assert_eq!(states, [(0, "recorded"), (0, "replayed")], "{}\n{}", ended[0].stderr, ended[1].stderr);
        assert_eq!(ended[0].json["key"], ended[1].json["key"]);
    };
    // They say the same, in other times.
    let report = tests("suite", 40, 3);
    at_once(UID, [&report, &report.replace("0.25", "0.75")]);
    assert_eq!(ci.headline(), [40, 37, 3, 0, 0]);
    // They don't: the first is recorded, whichever it is.
    at_once(OTHER_UID, [&report, &tests("suite", 40, 20)]);
    let [total, _, failed, ..] = ci.headline();
    assert!(total == 40 && (failed == 3 || failed == 20), "{failed} of {total}");
    let revise = [&run(OTHER_UID)[..], &["--on-difference", "revise"]].concat();
    let third = ci.push_from(&pod("pod-c3"), &tests("suite", 45, 1), &revise).expect(0, "revised");
    assert_eq!(third.total(), 45);
    assert_eq!(ci.headline()[..3], [45, 44, 1]);
    assert_eq!(ci.show(&["--round", "all"])["rounds"].as_array().unwrap().len(), 2);
}
