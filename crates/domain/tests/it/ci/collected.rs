//! The collected scenarios of ../shared, as a table. Passes with a note where they are absent.

use std::collections::BTreeMap;
use std::path::Path;

use domain::ci::{Env, Identity, IdentityError, Overrides, PlatformName, identify, identify_as};
use domain::compare::Comparison;
use domain::protocol::{Decision, Known, Offer, Recorded, Refusal, decide};
use domain::push::ContentId;
use domain::{
    CycleName, Digest, JobName, OnDifference, Place, ProjectId, RoundLabel, RunId, Sender, ShardRef, Variant,
};
use serde_json::Value;

use super::jobs::words;

/// A platform's collection.
struct Collected {
    name: PlatformName,
    facts: Value,
}

fn collected() -> Option<Vec<Collected>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/ci-identity.json");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("skipped: no ../shared");
        return None;
    };
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let named = |facts: Value| Collected { name: PlatformName::parse(facts["name"].as_str().unwrap()).unwrap(), facts };
    Some(all.into_iter().map(named).collect())
}

impl Collected {
    fn scenarios(&self) -> &[Value] {
        self.facts["scenarios"].as_array().unwrap()
    }

    fn names(&self, list: &str) -> Vec<&str> {
        self.facts[list].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
    }

    fn is_marked(&self) -> bool {
        !self.facts["detect"].as_object().unwrap().is_empty()
    }

    /// As its own platform: recognised, or, where nothing recognises it, named.
    fn derived(&self, env: &Env, flags: &Overrides) -> Result<Identity, IdentityError> {
        if !self.is_marked() {
            return identify_as(Some(self.name), env, flags);
        }
        let identity = identify(env, flags)?;
        assert_eq!(identity.platform, Some(self.name.slug()), "recognised as another platform");
        Ok(identity)
    }

    /// What a scenario is compared with; none if it is a base itself.
    fn base(&self, scenario: &Value) -> Option<Identity> {
        let named = match scenario["compare_to"].as_str() {
            _ if scenario["relation"] == "first" => return None,
            None => Some(&self.scenarios()[0]),
            Some(name) => self.scenarios().iter().find(|other| other["name"] == name),
        };
        if let Some(base) = named {
            return Some(self.identity(base).unwrap());
        }
        // The collection lost it: of two works under one key the other one runs elsewhere, at the same attempt.
        let attempts = self.names("attempt");
        let mut other = variables(scenario);
        for name in self.names("unstable_on_retry").into_iter().filter(|name| !attempts.contains(name)) {
            if let Some(value) = other.get_mut(name) {
                value.push('9');
            }
        }
        (scenario["trap"] == true).then(|| self.derived(&Env::from(other), &flags(scenario)).unwrap())
    }

    fn identity(&self, scenario: &Value) -> Result<Identity, IdentityError> {
        self.derived(&Env::from(variables(scenario)), &flags(scenario))
    }
}

fn variables(scenario: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(scenario["env"].clone()).unwrap()
}

fn flags(scenario: &Value) -> Overrides {
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

#[test]
fn collected_scenarios_hold() {
    let Some(platforms) = collected() else { return };
    assert_eq!(platforms.len(), domain::ci::platforms().len());
    let (mut judged, mut traps) = (0, 0);
    for platform in &platforms {
        for scenario in platform.scenarios() {
            let title = format!("{}: {}", platform.name, scenario["name"]);
            let identity = platform.identity(scenario).unwrap_or_else(|error| panic!("{title}: {error}"));
            // A base of its own must be derivable, more is not said.
            let Some(base) = platform.base(scenario) else { continue };
            assert_eq!(
                identity.key == base.key,
                scenario["expect"] == "same",
                "{title}: {} {}",
                base.key,
                identity.key
            );
            if scenario["trap"] == true {
                warns_of_the_trap(&title, scenario, &base, &identity);
                traps += 1;
            }
            if scenario["confidence"] == "unsure" {
                println!("unsure, taken as {}: {title}", scenario["expect"]);
            }
            judged += 1;
        }
    }
    assert!(judged >= 120 && traps >= 6, "only {judged} scenarios were compared, {traps} of them traps");
}

/// The environment alone gives the wrong answer: the words name what to pass. Where two works share a key, and the
/// platform counts attempts, the second is refused besides.
fn warns_of_the_trap(title: &str, scenario: &Value, base: &Identity, identity: &Identity) {
    let one_key = scenario["expect"] == "same";
    let flags: &[&str] = if one_key { &["--shard", "--variant", "--job"] } else { &["--run"] };
    let said = words(&Ok(identity.clone()));
    assert!(flags.iter().any(|flag| said.contains(flag)), "{title}: no word of {flags:?}: {said}");
    let warned = identity.warnings.iter().any(|warning| flags.iter().any(|flag| warning.contains(flag)));
    let refused = one_key && second_is_refused(base, identity);
    println!("{title}: warned {warned}, refused {refused}");
    assert!(warned || refused || identity.ordinal.is_none(), "{title}: nobody hears of it");
}

/// Whether the guard of the protocol refuses the second leg under the key of the first.
fn second_is_refused(first: &Identity, second: &Identity) -> bool {
    let place = |identity: &Identity| Place {
        project: ProjectId::parse("shop").unwrap(),
        cycle: CycleName::parse("main").unwrap(),
        round: identity.round.clone(),
        run: identity.parts.run.clone(),
        label: None,
        job: identity.parts.job.clone(),
        shard: identity.parts.shard,
        variant: identity.parts.variant.clone(),
    };
    let sender = |identity: &Identity| Sender {
        ordinal: identity.ordinal,
        ordinal_scope: identity.ordinal_scope,
        executor: identity.executor.clone(),
        incarnation: None,
    };
    let recorded = Known {
        place: place(first),
        commit: first.commit.clone(),
        contested: false,
        executors: first.executor.iter().map(|executor| (first.ordinal, executor.clone())).collect(),
        revisions: Vec::new(),
        same_body: None,
    };
    let (place, sender) = (place(second), sender(second));
    let offer = Offer {
        place: &place,
        commit: second.commit.as_ref(),
        sender: &sender,
        on_difference: OnDifference::Auto,
        outside_ci: false,
        files: &[],
        content: ContentId { content: Digest::of(b"any"), outcomes: Digest::of(b"any"), body: None },
    };
    let decision = decide(&offer, Some(&recorded), false, &mut NothingElse).unwrap();
    matches!(decision, Decision::Refuse { refusal: Refusal::CollidingExecutor { .. }, .. })
}

/// A store that was not asked to look any further.
struct NothingElse;

impl Recorded for NothingElse {
    type Error = std::convert::Infallible;
    fn compare(&mut self) -> Result<Option<Comparison>, Self::Error> {
        Ok(None)
    }
    fn known_in_job(&mut self) -> Result<u64, Self::Error> {
        Ok(0)
    }
    fn shard_total(&mut self) -> Result<Option<u32>, Self::Error> {
        Ok(None)
    }
}

/// Where the key is made otherwise than the collection lists it: the variable, and whether it is in the key.
const OTHERWISE: &[(&str, &str, bool)] = &[
    // A step that nobody named is called by its UUID, which says its place: with a shard it would wait for the others.
    ("bitbucket", "BITBUCKET_PARALLEL_STEP", false),
    ("bitbucket", "BITBUCKET_PARALLEL_STEP_COUNT", false),
    // Under one `--run` two projects may have a configuration of one name.
    ("teamcity", "TEAMCITY_PROJECT_NAME", true),
];

#[test]
fn only_the_listed_variables_reach_the_key() {
    let Some(platforms) = collected() else { return };
    let mut judged = 0;
    for platform in &platforms {
        let scenario = &platform.scenarios()[0];
        let (vars, flags) = (variables(scenario), flags(scenario));
        let first = platform.derived(&Env::from(vars.clone()), &flags).unwrap().key;
        // A part that the scenario passes by a flag is no more read from its variables.
        let parts = [
            ("scope", false),
            ("run", flags.run.is_some()),
            ("job", flags.job.is_some()),
            ("shard_index", flags.shard.is_some()),
            ("shard_total", flags.shard.is_some()),
        ];
        // Of several variables that name the job the first counts, where the collection says so.
        let names = |part: &str| match platform.names(part) {
            names if part == "job" && platform.facts["job_mode"] == "first" => names
                .into_iter()
                .filter(|name| vars.get(*name).is_some_and(|value| !value.is_empty()))
                .take(1)
                .collect(),
            names => names,
        };
        let in_key: Vec<&str> = parts.iter().filter(|(_, passed)| !passed).flat_map(|(part, _)| names(part)).collect();
        let markers: Vec<&String> = platform.facts["detect"].as_object().unwrap().keys().collect();
        let unstable = platform.names("unstable_on_retry");
        let all: Vec<&str> = vars.keys().map(String::as_str).chain(unstable).collect();
        for name in all {
            let old = vars.get(name).map_or("", String::as_str);
            let otherwise = OTHERWISE.iter().find(|row| row.0 == platform.name.slug() && row.1 == name);
            let listed = in_key.contains(&name);
            let expected = otherwise.map_or(listed, |row| row.2);
            if !expected && markers.iter().any(|marker| *marker == name) {
                continue;
            }
            let title = format!("{}: {name}", platform.name);
            let changed = |new: String| {
                let env = vars.clone().into_iter().chain([(name.to_owned(), new)]).collect();
                platform.derived(&env, &flags)
            };
            // The last of the shards has no next one, and a total none that is lower.
            let number = old.parse::<u32>().unwrap_or(7);
            let others = [format!("{old}7"), (number + 1).to_string(), number.saturating_sub(1).to_string()];
            let key = others.into_iter().find_map(|new| changed(new).ok()).unwrap_or_else(|| panic!("{title}")).key;
            judged += 1;
            assert_eq!(key != first, expected, "{title}: in the key or not");
        }
    }
    assert!(judged >= 300, "only {judged} changes");
}
