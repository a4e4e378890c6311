//! The key: its text, its bounds, and that different parts never give one key.

use std::collections::HashMap;

use domain::key::check::{Known, Severity, check};
use domain::key::{KeyError, KeyParts, PushKey, Scope};
use domain::{JobName, RoundLabel, RunId, ShardRef, Variant};
use percent_encoding::percent_decode_str;
use proptest::prelude::*;

fn parts(scope: Option<Scope>, run: &str) -> KeyParts {
    let run = RunId::parse(run).unwrap();
    KeyParts { scope, run, round: None, job: None, shard: None, variant: Variant::default() }
}

fn github() -> Option<Scope> {
    Some(Scope::new("github", None, Some("acme/shop")).unwrap())
}

fn full() -> KeyParts {
    KeyParts {
        round: Some(RoundLabel::parse("2").unwrap()),
        job: Some(JobName::parse("e2e").unwrap()),
        shard: Some(ShardRef::new(3, Some(8)).unwrap()),
        variant: Variant::from_pairs([("os", "linux"), ("browser", "firefox")]).unwrap(),
        ..parts(github(), "16873243901")
    }
}

#[test]
fn the_form_is_the_documented_one() {
    let key = "github:acme/shop:run:16873243901:round:2:job:e2e:shard:3-8:variant:browser=firefox,os=linux";
    assert_eq!(full().key().as_str(), key);
    assert_eq!(full().round_id().as_str(), "github:acme/shop:run:16873243901:round:2");
    assert_eq!(full().key().chunk(5).to_string(), format!("{key}:chunk:5"));
    let open = KeyParts { shard: Some(ShardRef::new(3, None).unwrap()), ..parts(github(), "1") };
    assert_eq!(open.key().as_str(), "github:acme/shop:run:1:shard:3");
    assert_eq!(open.round_id().as_str(), "github:acme/shop:run:1");
    let elsewhere = Scope::new("github", Some("ghe.example.com:8443"), Some("acme/shop")).unwrap();
    assert_eq!(parts(Some(elsewhere), "1").key().as_str(), "github@ghe.example.com%3A8443:acme/shop:run:1");
    assert_eq!(parts(None, "X 1").key().as_str(), "run:X%201");
}

#[test]
fn everything_outside_the_set_is_encoded() {
    assert_eq!(parts(None, "aZ09._~/@+-").key().as_str(), "run:aZ09._~/@+-");
    assert_eq!(parts(None, ":=,%é#").key().as_str(), "run:%3A%3D%2C%25%C3%A9%23");
    let variant = Variant::from_pairs([("a=b", "c,d")]).unwrap();
    assert_eq!(KeyParts { variant, ..parts(None, "1") }.key().as_str(), "run:1:variant:a%3Db=c%2Cd");
}

#[test]
fn a_scope_cannot_be_taken_for_a_label() {
    for platform in ["run", "", "Git", "a:b", "a@b"] {
        assert!(Scope::new(platform, None, None).is_err(), "{platform:?}");
    }
    assert!(Scope::new("github", Some(""), None).is_err());
    let without = parts(Some(Scope::new("k8s", None, None).unwrap()), "run");
    let with = parts(Some(Scope::new("k8s", None, Some("run")).unwrap()), "run");
    assert_ne!(without.key(), with.key());
}

#[test]
fn a_long_key_ends_in_its_hash() {
    let long = |tail: &str| {
        let job = Some(JobName::parse(&format!("{}{tail}", "é".repeat(100))).unwrap());
        KeyParts { job, ..full() }
    };
    let (one, other) = (long("1").key(), long("2").key());
    assert_ne!(one, other);
    let (head, hash) = one.as_str().rsplit_once(":b3:").unwrap();
    assert!(one.as_str().len() <= 240 && one.as_str().len() > 235, "{one}");
    assert_eq!(hash.len(), 64);
    assert!(head.ends_with("%C3") || head.ends_with("%A9"), "cut inside an escape: {head}");
    for ahead in 0..6 {
        let job = Some(JobName::parse(&format!("{}{}", "x".repeat(ahead), "é".repeat(100))).unwrap());
        let key = KeyParts { job, ..full() }.key().to_string();
        let head = key.rsplit_once(":b3:").unwrap().0;
        assert_eq!(head.rfind('%'), Some(head.len() - 3), "cut inside an escape: {head}");
    }
    assert_eq!(long("1").round_id().as_str(), "github:acme/shop:run:16873243901:round:2");
    assert!(PushKey::parse(&"k".repeat(255)).unwrap().chunk(u32::MAX).to_string().len() <= 255);
    // The round itself may be too long: then it is shortened in the same way, and still tells runs apart.
    let run = |tail: &str| parts(None, &format!("{}{tail}", "x".repeat(300)));
    assert_ne!(run("1").round_id(), run("2").round_id());
    assert!(run("1").round_id().as_str().len() <= 240);
}

#[test]
fn any_client_s_key_is_accepted_and_never_changed() {
    for text in ["gh-run-42-shard-1", "A:b/c@d+e=f,g%h~i_j.k", "-", "%%%", &"k".repeat(255)] {
        assert_eq!(PushKey::parse(text).unwrap().as_str(), text);
    }
    assert_ne!(PushKey::parse("a%41").unwrap(), PushKey::parse("aA").unwrap());
    assert_eq!(PushKey::parse(""), Err(KeyError::Empty));
    assert_eq!(PushKey::parse(&"k".repeat(256)), Err(KeyError::TooLong { octets: 256, limit: 255 }));
    for (text, found, at) in [("a b", ' ', 1), (" a", ' ', 0), ("ké", 'é', 1), ("a\n", '\n', 1), ("a\"", '"', 1)] {
        assert_eq!(PushKey::parse(text), Err(KeyError::BadCharacter { found, at }));
    }
    assert!(PushKey::parse("a#b").unwrap_err().to_string().contains("'#' at octet 1"));
    assert!(serde_json::from_str::<PushKey>("\"a b\"").is_err());
    assert_eq!(serde_json::to_string(&full().key()).unwrap(), format!("\"{}\"", full().key()));
}

/// Reads the text of a key that was not shortened back into its parts: where that works, no two parts give one key.
fn decode(text: &str) -> KeyParts {
    let decoded = |value: &str| percent_decode_str(value).decode_utf8().unwrap().into_owned();
    let mut pieces: Vec<&str> = text.split(':').collect();
    // Labels and values come in pairs, and no platform is called `run`: that tells how many pieces the scope has.
    let at = match (pieces.len() % 2, pieces[0]) {
        (1, _) => 1,
        (_, "run") => 0,
        _ => 2,
    };
    let rest = pieces.split_off(at);
    let scope = pieces.first().map(|head| {
        let (platform, server) = head.split_once('@').map_or((*head, None), |(p, s)| (p, Some(decoded(s))));
        let path = pieces.get(1).map(|path| decoded(path));
        Scope::new(platform, server.as_deref(), path.as_deref()).unwrap()
    });
    let values: HashMap<&str, &str> = rest.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!(values.len() * 2, rest.len(), "a label is there twice: {text}");
    let variant = values.get("variant").map(|variant| {
        Variant::from_pairs(variant.split(',').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (decoded(name), decoded(value))
        }))
        .unwrap()
    });
    KeyParts {
        scope,
        run: RunId::parse(&decoded(values["run"])).unwrap(),
        round: values.get("round").map(|round| RoundLabel::parse(&decoded(round)).unwrap()),
        job: values.get("job").map(|job| JobName::parse(&decoded(job)).unwrap()),
        shard: values.get("shard").map(|shard| ShardRef::parse(&shard.replace('-', "/")).unwrap()),
        variant: variant.unwrap_or_default(),
    }
}

/// Texts made of what the form itself is made of.
fn nasty() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab:=,%/@. é\\-]{1,4}",
        prop::sample::select(vec!["run", "round", "job", "shard", "variant", "b3", "chunk", "run:1", "1:job:a", "%3A"])
            .prop_map(str::to_owned),
    ]
    .prop_filter("names are not blank", |text| !text.trim().is_empty())
}

fn nasty_parts(text: fn() -> BoxedStrategy<String>) -> impl Strategy<Value = KeyParts> {
    let scope = ("[a-c]", prop::option::of(text()), prop::option::of(text()))
        .prop_map(|(platform, server, path)| Scope::new(&platform, server.as_deref(), path.as_deref()).unwrap());
    let shard = (1..4_u32, prop::option::of(0..3_u32))
        .prop_map(|(index, more)| ShardRef::new(index, more.map(|more| index + more)).unwrap());
    let variant = prop::collection::btree_map(text(), text(), 0..3)
        .prop_filter_map("trimmed names may be equal", |pairs| Variant::from_pairs(pairs).ok());
    (
        prop::option::of(scope),
        text().prop_map(|text| RunId::parse(&text).unwrap()),
        prop::option::of(text().prop_map(|text| RoundLabel::parse(&text).unwrap())),
        prop::option::of(text().prop_map(|text| JobName::parse(&text).unwrap())),
        prop::option::of(shard),
        variant,
    )
        .prop_map(|(scope, run, round, job, shard, variant)| KeyParts { scope, run, round, job, shard, variant })
}

fn short() -> BoxedStrategy<String> {
    nasty().boxed()
}

/// Long enough that the keys are shortened, and equal over long stretches.
fn long() -> BoxedStrategy<String> {
    (nasty(), 0..80_usize, prop::sample::select(vec!["x", "é", "%"]))
        .prop_map(|(text, times, filler)| format!("{}{text}", filler.repeat(times)))
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parts_can_be_read_back(parts in nasty_parts(short)) {
        let key = parts.key();
        prop_assert!(PushKey::parse(key.as_str()).is_ok());
        if !key.as_str().contains(":b3:") || key.as_str().len() < 170 {
            prop_assert_eq!(decode(key.as_str()), parts);
        }
    }

    #[test]
    fn different_parts_give_different_keys(one in nasty_parts(long), other in nasty_parts(long)) {
        prop_assert!(one.key().as_str().len() <= 240);
        prop_assert!(PushKey::parse(one.key().as_str()).is_ok());
        prop_assert_eq!(one == other, one.key() == other.key());
        let same_round = one.scope == other.scope && one.run == other.run && one.round == other.round;
        prop_assert_eq!(same_round, one.round_id() == other.round_id());
    }

    #[test]
    fn a_change_of_any_one_part_changes_the_key(one in nasty_parts(long), other in nasty_parts(long), which in 0..6) {
        let mut changed = one.clone();
        match which {
            0 => changed.scope = other.scope,
            1 => changed.run = other.run,
            2 => changed.round = other.round,
            3 => changed.job = other.job,
            4 => changed.shard = other.shard,
            _ => changed.variant = other.variant,
        }
        prop_assert_eq!(one == changed, one.key() == changed.key());
    }

    #[test]
    fn the_round_heads_the_key(parts in nasty_parts(short)) {
        let (key, round) = (parts.key(), parts.round_id());
        if !key.as_str().contains(":b3:") {
            let rest = key.as_str().strip_prefix(round.as_str()).unwrap();
            prop_assert!(rest.is_empty() || [":job:", ":shard:", ":variant:"].iter().any(|l| rest.starts_with(l)));
        }
    }

    #[test]
    fn chunks_have_keys_of_their_own(key in "[a-z:%]{1,255}", one in any::<u32>(), other in any::<u32>()) {
        let key = PushKey::parse(&key).unwrap();
        let text = key.chunk(one).to_string();
        let ending = format!(":chunk:{one}");
        prop_assert!(text.ends_with(&ending));
        prop_assert!(PushKey::parse(&text).is_ok());
        prop_assert_eq!(one == other, text == key.chunk(other).to_string());
    }

    #[test]
    fn a_check_never_panics(text in "\\PC{0,80}", run in "\\PC{0,20}") {
        let known = Known { own_run: Some(run.clone()), commit: Some(run.clone()), branch: Some(run), ..Known::default() };
        let _ = check(&text, &known);
    }
}

const SHA: &str = "3f2a9c1e5b7d8f60412e9ab3c4d5e6f708192a3b";

/// What the check says, shortly: severity and the word that matters.
fn verdict(text: &str, known: &Known) -> Vec<(Severity, &'static str)> {
    let words =
        ["commit", "hash of the report", "UUID", "date or time", "branch", "same in every run", "a retry changes"];
    check(text, known)
        .into_iter()
        .map(|finding| (finding.severity, *words.iter().find(|word| finding.what.contains(**word)).unwrap()))
        .collect()
}

#[test]
fn bad_runs_are_found() {
    use Severity::{Fail, Warn};
    let known = Known {
        own_run: Some("18422007315".to_owned()),
        commit: Some(SHA.to_owned()),
        branch: Some("fix/cart".to_owned()),
        renewed: vec![("GITHUB_RUN_ATTEMPT", "2".to_owned()), ("CI_JOB_ID", "11022334455".to_owned())],
    };
    let md5 = "9e107d9d372bb6826bd81d3542a419d6";
    let composed_commit = format!("shop-{SHA}-shard-1");
    let commit_and_number = format!("{SHA}-1");
    let own_form = format!("github:acme/shop:run:{SHA}:job:test:shard:1-4");
    let payload = format!("18422007315-{md5}");
    let table: &[(&str, Severity, &str)] = &[
        (SHA, Fail, "commit"),
        ("3f2a9c1", Fail, "commit"),
        ("v1.2.3-14-g3f2a9c1", Fail, "commit"),
        (&composed_commit, Fail, "commit"),
        (&commit_and_number, Warn, "commit"),
        ("shop-main-e2e", Fail, "branch"),
        ("ci-3f2a9c1e5b7d-shard-1", Fail, "commit"),
        (&own_form, Fail, "commit"),
        (md5, Fail, "hash of the report"),
        (&md5.repeat(2), Fail, "hash of the report"),
        (&payload, Fail, "hash of the report"),
        ("6f1c4b0e-9d2a-4c3b-8f7e-0a1b2c3d4e5f", Warn, "UUID"),
        ("push-6f1c4b0e-9d2a-4c3b-8f7e-0a1b2c3d4e5f", Warn, "UUID"),
        ("1772442847", Warn, "date or time"),
        ("1772442847123", Warn, "date or time"),
        ("20260302", Warn, "date or time"),
        ("20260302091407", Warn, "date or time"),
        ("20260302T091407Z", Warn, "date or time"),
        ("2026-03-02T09:14:07Z", Warn, "date or time"),
        ("nightly-2026-03-02", Warn, "date or time"),
        ("main", Fail, "branch"),
        ("develop", Fail, "branch"),
        ("feature/login", Fail, "branch"),
        ("fix/cart", Fail, "branch"),
        ("ci-fix/cart-e2e", Fail, "branch"),
        ("main-shard-3-of-8", Fail, "branch"),
        ("nightly", Fail, "same in every run"),
        ("e2e-tests", Fail, "same in every run"),
        ("shard-1", Fail, "same in every run"),
        ("2", Fail, "a retry changes"),
        ("11022334455", Fail, "a retry changes"),
        ("18422007315-11022334455", Fail, "a retry changes"),
        ("18422007315-2", Warn, "a retry changes"),
        ("18422007315-attempt-2", Fail, "a retry changes"),
        ("18422007315-attempt-1", Fail, "a retry changes"),
    ];
    for (text, severity, word) in table {
        assert_eq!(verdict(text, &known), [(*severity, *word)], "{text}");
    }
}

#[test]
fn good_runs_are_left_alone() {
    let own = |run: &str| Known { own_run: Some(run.to_owned()), commit: Some(SHA.to_owned()), ..Known::default() };
    // Whatever the platform's own run looks like, it is right.
    for run in ["1983304471", "6f1c4b0e-9d2a-4c3b-8f7e-0a1b2c3d4e5f", SHA, "20260302", "main", "shop/main/218"] {
        assert_eq!(check(run, &own(run)), [], "{run}");
        let key = KeyParts { run: RunId::parse(run).unwrap(), ..full() }.key();
        assert_eq!(check(key.as_str(), &own(run)), [], "{key}");
        assert_eq!(check(&format!("{run}-shard-1"), &own(run)), [], "{run}");
    }
    for text in [
        "gh-run-42-shard-1",
        "42",
        "release-7.4",
        "nightly-417",
        "main-417",
        "shop-e2e-118",
        "3f2a9c1-build-4711",
        "a8f3d8e4x",
        "16873243901-3f2a9c1",
    ] {
        assert_eq!(check(text, &own("16873243901")), [], "{text}");
    }
    assert_eq!(check("16873243901", &Known::default()), []);
    assert_eq!(check(full().key().as_str(), &Known::default()), []);
}

#[test]
fn a_commit_as_run_says_that_two_runs_collapse() {
    let findings = check(SHA, &Known::default());
    assert_eq!(findings.len(), 1);
    assert!(findings[0].severity.strict_fails());
    assert!(findings[0].why.contains("Two real runs of one commit"), "{}", findings[0].why);
    assert!(findings[0].why.contains("collapse"), "{}", findings[0].why);
}

#[test]
fn a_round_label_is_judged_too_but_may_be_the_attempt() {
    let known = Known { renewed: vec![("GITHUB_RUN_ATTEMPT", "2".to_owned())], ..Known::default() };
    assert_eq!(check(full().key().as_str(), &known), []);
    let round = Some(RoundLabel::parse("2026-03-02").unwrap());
    assert_eq!(check(KeyParts { round, ..full() }.key().as_str(), &known).len(), 1);
}
