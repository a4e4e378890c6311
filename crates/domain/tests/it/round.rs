//! Which rounds are complete and authoritative (design, section 7), by examples.

use domain::round::{JobFacts, RoundChoice, RoundFacts, VariantFacts, choose, named, standings};
use domain::{JobName, RoundId, RunId, Variant, WorkflowName};

fn variant(pair: &str, total: Option<u32>, seen: &[u32]) -> VariantFacts {
    let variant = if pair.is_empty() { Variant::default() } else { Variant::parse_pairs([pair]).unwrap() };
    VariantFacts { variant, total, seen: seen.to_vec() }
}

fn job(name: &str, expect: Option<u32>, variants: Vec<VariantFacts>) -> JobFacts {
    JobFacts { job: Some(JobName::parse(name).unwrap()), expect, variants }
}

fn round(run: &str, order: u64, jobs: Vec<JobFacts>) -> RoundFacts {
    RoundFacts {
        round: RoundId::parse(&format!("github:acme/shop:run:{run}")).unwrap(),
        run: RunId::parse(run).unwrap(),
        workflow: Some(WorkflowName::parse("ci.yml").unwrap()),
        run_counter: None,
        first_recorded: order,
        closed: false,
        pinned: false,
        jobs,
    }
}

fn whole(name: &str) -> JobFacts {
    job(name, None, vec![variant("", None, &[0])])
}

#[test]
fn s1_a_matrix_is_complete_with_all_shards_of_every_variant() {
    let half = round(
        "1",
        1,
        vec![job("e2e", None, vec![variant("os=linux", Some(2), &[1, 2]), variant("os=mac", Some(2), &[2])])],
    );
    let standing = &standings(std::slice::from_ref(&half))[0];
    assert!(!standing.complete);
    assert_eq!(standing.missing, ["e2e: shard 1 of 2 of os=mac"]);
    let mut full = half;
    full.jobs[0].variants[1].seen.push(1);
    assert!(standings(&[full])[0].complete);
}

#[test]
fn expect_counts_pushes_over_all_variants() {
    let mut facts = round("1", 1, vec![job("e2e", Some(4), vec![variant("os=linux", Some(2), &[1, 2])])]);
    assert!(
        !standings(std::slice::from_ref(&facts))[0].complete,
        "every variant seen is whole, but two pushes are still expected"
    );
    facts.jobs[0].variants.push(variant("os=mac", Some(3), &[1, 2]));
    let standing = &standings(std::slice::from_ref(&facts))[0];
    assert_eq!(standing.missing, ["e2e: shard 3 of 3 of os=mac"], "as many as expected, and still a shard is missing");
    facts.jobs[0].variants[1].seen.push(3);
    assert!(standings(&[facts])[0].complete);
}

#[test]
fn a_job_of_the_round_before_is_missed() {
    let rounds = [round("1", 1, vec![whole("unit"), whole("e2e")]), round("2", 2, vec![whole("unit")])];
    let standings = standings(&rounds);
    assert!(standings[0].authoritative && !standings[1].complete);
    assert_eq!(standings[1].missing, ["e2e: not seen, but part of the round before"]);
}

#[test]
fn s27_closing_makes_an_incomplete_round_authoritative() {
    let mut rounds = vec![round("1", 1, vec![job("e2e", None, vec![variant("", Some(8), &[1, 2, 3, 4, 5, 6, 7])])])];
    assert!(!standings(&rounds)[0].authoritative);
    rounds[0].closed = true;
    assert!(standings(&rounds)[0].complete && standings(&rounds)[0].authoritative);
}

#[test]
fn s28_each_workflow_has_its_authoritative_round() {
    let mut rounds = [round("1", 1, vec![whole("unit")]), round("2", 2, vec![whole("e2e")])];
    rounds[1].workflow = Some(WorkflowName::parse("e2e.yml").unwrap());
    assert!(standings(&rounds).iter().all(|s| s.complete && s.authoritative));
}

#[test]
fn s29_a_late_round_keeps_its_place_by_the_platforms_counter() {
    let mut rounds = [round("today", 1, vec![whole("unit")]), round("yesterday", 2, vec![whole("unit")])];
    rounds[0].run_counter = Some(12);
    rounds[1].run_counter = Some(11);
    let standings = standings(&rounds);
    assert!(standings[0].authoritative && !standings[1].authoritative);
    let listed = choose(&rounds, &standings, &RoundChoice::All).unwrap();
    assert_eq!(listed, [1, 0], "listed in the platform's order");
}

#[test]
fn a_pin_goes_before_completeness() {
    let mut rounds = [round("1", 1, vec![whole("unit")]), round("2", 2, vec![whole("unit")])];
    rounds[0].pinned = true;
    let standings = standings(&rounds);
    assert!(standings[0].authoritative && !standings[1].authoritative && standings[1].complete);
}

#[test]
fn an_incomplete_latest_round_is_chosen_by_name_only() {
    let rounds = [
        round("100", 1, vec![whole("unit")]),
        round("101", 2, vec![job("unit", None, vec![variant("", Some(2), &[1])])]),
    ];
    let standings = standings(&rounds);
    assert_eq!(choose(&rounds, &standings, &RoundChoice::Authoritative).unwrap(), [0]);
    assert_eq!(choose(&rounds, &standings, &RoundChoice::Latest).unwrap(), [1]);
    assert_eq!(named(&rounds, "101").unwrap(), 1);
    assert_eq!(named(&rounds, "github:acme/shop:run:100").unwrap(), 0);
    assert!(named(&rounds, "10").unwrap_err().to_string().contains("say more of it"));
    assert!(named(&rounds, "9").is_err());
}

#[test]
fn without_an_authoritative_round_the_latest_is_shown() {
    let rounds = [round("1", 1, vec![job("unit", None, vec![variant("", Some(2), &[1])])])];
    assert_eq!(choose(&rounds, &standings(&rounds), &RoundChoice::Authoritative).unwrap(), [0]);
}
