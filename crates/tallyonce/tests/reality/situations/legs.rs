//! Legs, shards and jobs of one run: which are told apart, which collide, and what comes twice. Must not know re-runs
//! of the same leg.

use proof::spawn::github_env;

use super::{Ci, numbers, race, staged, tests, whole};

#[test]
fn s1_a_matrix_with_index_and_values_passed() {
    whole(a_matrix_with_all_passed);
}

#[test]
fn s1_staged_a_matrix_with_index_and_values_passed() {
    staged(a_matrix_with_all_passed);
}

fn a_matrix_with_all_passed(ci: &mut Ci) {
    let mut keys = Vec::new();
    for os in ["linux", "mac"] {
        for shard in ["1/2", "2/2"] {
            assert!(keys.is_empty() || ci.round()["complete"] == false, "complete only with all four");
            let variant = format!("os={os}");
            let report = tests(&format!("part {shard}"), 40, 0);
            let more = ["--shard", shard, "--variant", &variant, "--expect", "4"];
            let outcome = ci.push_by(1, 1, "e2e", &format!("{os}-{shard}"), &report, &more).expect(0, "recorded");
            keys.push(outcome.json["key"].as_str().unwrap().to_owned());
        }
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4);
    let round = ci.round();
    assert_eq!((&round["complete"], &round["overlaps"]), (&true.into(), &0.into()));
    assert_eq!(numbers(&round["counts"]), [160, 160, 0, 0, 0]);
}

#[test]
fn s2_a_matrix_with_nothing_passed_and_other_items() {
    whole(legs_with_other_items);
}

#[test]
fn s2_staged_a_matrix_with_nothing_passed_and_other_items() {
    staged(legs_with_other_items);
}

fn legs_with_other_items(ci: &mut Ci) {
    let (unit, e2e) = (tests("unit", 40, 0), tests("e2e", 50, 0));
    ci.push_by(1, 1, "test", "linux", &unit, &[]).expect(0, "recorded");
    let second = ci.push_by(1, 1, "test", "mac", &e2e, &[]).expect(5, "collision");
    assert_eq!(second.json["code"], "key-collision");
    // Only it is run again.
    ci.push_by(1, 2, "test", "mac-2", &e2e, &[]).expect(5, "collision");
    assert_eq!(ci.headline(), [40, 40, 0, 0, 0]);
    // Both at once: one of them, whichever it is.
    let leg = |runner: &str, report: &str| ci.machine(&github_env(2, 1, "test", runner), report, &[]);
    let ended = race([leg("linux", &unit), leg("mac", &e2e)]);
    let mut codes = ended.each_ref().map(|outcome| (outcome.code, outcome.state()));
    codes.sort_unstable();
    assert_eq!(codes, [(0, "recorded"), (5, "collision")]);
    let recorded = ended.iter().find(|outcome| outcome.code == 0).unwrap();
    assert_eq!(ci.headline()[0], recorded.total());
}

#[test]
fn s3_a_matrix_with_nothing_passed_and_equal_green_items() {
    whole(legs_with_equal_items);
}

#[test]
fn s3_staged_a_matrix_with_nothing_passed_and_equal_green_items() {
    staged(legs_with_equal_items);
}

fn legs_with_equal_items(ci: &mut Ci) {
    let report = tests("suite", 40, 0);
    ci.push_by(1, 1, "test", "linux", &report, &[]).expect(0, "recorded");
    ci.push_by(1, 1, "test", "mac", &report, &[]).expect(5, "collision");
    // From now on the key is contested.
    ci.push_by(1, 2, "test", "mac-2", &report, &[]).expect(5, "collision");
    ci.push_by(1, 1, "test", "linux", &report, &[]).expect(0, "replayed");
    assert_eq!(ci.headline(), [40, 40, 0, 0, 0]);
}

#[test]
fn s4_a_reusable_workflow_called_twice() {
    whole(a_workflow_called_twice);
}

#[test]
fn s4_staged_a_reusable_workflow_called_twice() {
    staged(a_workflow_called_twice);
}

fn a_workflow_called_twice(ci: &mut Ci) {
    let report = tests("suite", 40, 0);
    ci.push_by(1, 1, "test", "call-1", &report, &[]).expect(0, "recorded");
    let second = ci.push_by(1, 1, "test", "call-2", &report, &[]).expect(5, "collision");
    assert!(second.stderr.contains("--job"), "the words name the cure: {}", second.stderr);
    // As the words say, with a run that has not been contested.
    for call in ["call-1", "call-2"] {
        ci.push_by(2, 1, "test", call, &report, &["--job", call]).expect(0, "recorded");
    }
}

#[test]
fn s18_the_merged_report_of_a_sharded_job_under_another_name() {
    whole(a_merged_report);
}

#[test]
fn s18_staged_the_merged_report_of_a_sharded_job_under_another_name() {
    staged(a_merged_report);
}

fn a_merged_report(ci: &mut Ci) {
    let shard = |n: usize| super::part("suite", 40 * (n - 1)..40 * n, if n == 2 { 78 } else { 40 });
    for n in [1, 2] {
        let place = format!("{n}/2");
        ci.push_by(1, 1, "e2e", &format!("shard-{n}"), &shard(n), &["--shard", &place]).expect(0, "recorded");
    }
    assert_eq!(ci.headline(), [80, 78, 2, 0, 0]);
    ci.push_by(1, 1, "report", "merger", &tests("suite", 80, 2), &[]).expect(0, "recorded");
    let round = ci.round();
    assert_eq!((&round["overlaps"], numbers(&round["counts"])), (&80.into(), [80, 78, 2, 0, 0]));
    assert_eq!(ci.headline(), [80, 78, 2, 0, 0]);
    assert!(ci.words().contains("in more than one push, counted once: 80"), "{}", ci.words());
}

#[test]
fn s21_two_jobs_push_the_same_items_without_variant() {
    whole(two_jobs_push_the_same_items);
}

#[test]
fn s21_staged_two_jobs_push_the_same_items_without_variant() {
    staged(two_jobs_push_the_same_items);
}

fn two_jobs_push_the_same_items(ci: &mut Ci) {
    ci.push_by(1, 1, "test-linux", "linux", &tests("suite", 40, 0), &[]).expect(0, "recorded");
    ci.push_by(1, 1, "test-mac", "mac", &tests("suite", 40, 5), &[]).expect(0, "recorded");
    let round = ci.round();
    assert_eq!((&round["overlaps"], numbers(&round["counts"])), (&40.into(), [40, 35, 5, 0, 0]));
    assert!(ci.words().contains("--variant"), "{}", ci.words());
}

#[test]
fn s25_unit_and_e2e_in_two_steps_under_one_key() {
    whole(two_steps_under_one_key);
}

#[test]
fn s25_staged_unit_and_e2e_in_two_steps_under_one_key() {
    staged(two_steps_under_one_key);
}

fn two_steps_under_one_key(ci: &mut Ci) {
    let (unit, e2e) = (tests("unit", 40, 0), tests("e2e", 40, 0));
    ci.push(1, 1, &unit, &[]).expect(0, "recorded");
    let second = ci.push(1, 1, &e2e, &[]).expect(5, "collision");
    assert_eq!(second.json["code"], "key-collision");
    assert!(second.stderr.contains("--job"), "{}", second.stderr);
    assert_eq!(ci.headline(), [40, 40, 0, 0, 0]);
    ci.push(1, 1, &e2e, &["--job", "test-e2e"]).expect(0, "recorded");
    assert_eq!(ci.headline(), [80, 80, 0, 0, 0]);
}
