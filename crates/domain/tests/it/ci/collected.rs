//! The collected scenarios of ../shared, as a table. Passes with a note where they are absent.

use std::collections::BTreeMap;
use std::path::Path;

use domain::ci::{Env, Overrides, identify};
use domain::{JobName, RoundLabel, RunId, ShardRef, Variant};
use serde_json::Value;

/// The collected scenarios of the platforms that this version derives.
fn collected() -> Option<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/ci-identity.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no ../shared");
        return None;
    };
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let derived = ["GitHub Actions", "GitLab CI", "Jenkins", "Kubernetes Job"];
    Some(all.into_iter().filter(|platform| derived.contains(&platform["name"].as_str().unwrap())).collect())
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

fn scenario_env(scenario: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(scenario["env"].clone()).unwrap()
}

fn scenario_flags(scenario: &Value) -> Overrides {
    let user = |name: &str| scenario["user"][name].as_str();
    Overrides {
        run: user("run").map(|text| RunId::parse(text).unwrap()),
        attempt: None,
        job: user("job").map(|text| JobName::parse(text).unwrap()),
        shard: user("shard").map(|text| ShardRef::parse(text).unwrap()),
        variant: user("variant").map(|text| Variant::from_pairs([("variant", text)]).unwrap()),
        round: user("round").map(|text| RoundLabel::parse(text).unwrap()),
    }
}

fn scenario_key(scenario: &Value) -> String {
    identify(&Env::from(scenario_env(scenario)), &scenario_flags(scenario)).unwrap().key.to_string()
}

#[test]
fn collected_scenarios_hold() {
    let Some(platforms) = collected() else { return };
    assert_eq!(platforms.len(), 4);
    let mut judged = 0;
    for platform in &platforms {
        let scenarios = platform["scenarios"].as_array().unwrap();
        for scenario in scenarios {
            let title = format!("{}: {}", platform["name"], scenario["name"]);
            let base = match scenario["compare_to"].as_str() {
                None => Some(&scenarios[0]),
                Some(name) => scenarios.iter().find(|other| other["name"] == name),
            };
            let first = scenario["relation"] == "first";
            let Some(base) = base.filter(|_| !first) else {
                // A base of its own, or one that the collection lost: it must be derivable, more is not said.
                assert!(!scenario_key(scenario).is_empty(), "{title}");
                continue;
            };
            let same = scenario_key(scenario) == scenario_key(base);
            assert_eq!(same, scenario["expect"] == "same", "{title}");
            judged += 1;
        }
    }
    assert!(judged >= 24, "only {judged} scenarios were compared");
}

#[test]
fn only_the_listed_variables_reach_the_key() {
    let Some(platforms) = collected() else { return };
    for platform in &platforms {
        let scenario = &platform["scenarios"][0];
        let (vars, flags) = (scenario_env(scenario), scenario_flags(scenario));
        let first = scenario_key(scenario);
        let in_key: Vec<&str> = ["scope", "run", "job", "shard_index", "shard_total"]
            .iter()
            .flat_map(|part| names(&platform[part]))
            .collect();
        let markers: Vec<&String> = platform["detect"].as_object().unwrap().keys().collect();
        let unstable = names(&platform["unstable_on_retry"]);
        let all: Vec<&str> = vars.keys().map(String::as_str).chain(unstable.iter().copied()).collect();
        for name in all {
            let old = vars.get(name).map_or("", String::as_str);
            let new = if old == "1" { "2".to_owned() } else { format!("{old}7") };
            let changed = vars.clone().into_iter().chain([(name.to_owned(), new)]).collect::<Env>();
            let key = identify(&changed, &flags).map(|identity| identity.key.to_string());
            let title = format!("{}: {name}", platform["name"]);
            if in_key.contains(&name) {
                assert_ne!(key.unwrap(), first, "{title} is not in the key");
            } else if !markers.iter().any(|marker| *marker == name) {
                assert_eq!(key.unwrap(), first, "{title} is in the key");
            }
        }
    }
}
