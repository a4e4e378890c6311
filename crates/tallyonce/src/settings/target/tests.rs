//! Keys of targets, right and wrong.

use super::*;

fn section(text: &str) -> TargetSection {
    TargetSection {
        file: PathBuf::from("tallyonce.toml"),
        name: TargetName::parse("rail").unwrap(),
        table: text.parse().unwrap(),
        served: None,
    }
}

fn env(pairs: &[(&str, &str)]) -> Env {
    let map: BTreeMap<String, String> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Env::from(map)
}

const GOOD: &str = "kind = 'testrail'\nurl = 'https://rail.example'\nproject = 3\nuser = 'ci@example'\n\
                    token = '${RAIL_KEY}'\nstrategy = 'reconcile'\nquiet = '90s'\nsuite = 4\n\
                    [statuses]\nskipped = 4\n";

#[test]
fn every_key_is_read_and_the_rest_is_the_adapters() {
    let mut target = section(GOOD).resolve(&env(&[("RAIL_KEY", "s3cret")])).unwrap();
    assert_eq!(target.settings.kind, Kind::Testrail);
    assert_eq!(target.settings.project, "3");
    assert_eq!(target.settings.token.as_ref().map(Secret::expose), Some("s3cret"));
    assert_eq!(target.settings.quiet_ms, Some(90_000));
    assert_eq!(target.settings.status(Status::Skipped), Some("4"));
    assert_eq!(target.settings.options.text("suite").unwrap().as_deref(), Some("4"));
    assert!(target.settings.options.finish().is_ok(), "nothing that all share is left");
    assert_eq!(target.probe, PathBuf::from(".tallyonce/probe-rail.json"));
    assert!(!format!("{target:?}", target = section(GOOD)).contains("s3cret"));
}

#[test]
fn credentials_come_by_variables_that_are_set() {
    let failure = section(GOOD).resolve(&env(&[])).unwrap_err();
    assert!(failure.what.contains("target.rail.token names the variable RAIL_KEY"), "{}", failure.what);
    let text = GOOD.replace("${RAIL_KEY}", "plain-text-key");
    let failure = section(&text).resolve(&env(&[])).unwrap_err();
    assert!(failure.what.contains("a credential stands in the file itself"), "{}", failure.what);
    assert!(!format!("{failure:?}").contains("plain-text-key"));
}

#[test]
fn headers_that_tell_who_asks_come_by_variables_too() {
    let env = env(&[("RAIL_KEY", "k"), ("OTHER_KEY", "Bearer of-another")]);
    let text =
        |header: &str| format!("{GOOD}[write]\nheaders = {{ {header} }}\n[read.headers]\nAccept = 'text/plain'\n");
    for header in ["Authorization = 'Bearer abc'", "X-Api-Key = 'abc'", "cookie = 'id=abc'", "PRIVATE-TOKEN = 'abc'"] {
        let failure = section(&text(header)).resolve(&env).unwrap_err();
        assert!(failure.what.contains("a credential stands in the file itself"), "{}", failure.what);
        assert!(!format!("{failure:?}").contains("abc"), "{failure:?}");
    }
    for header in ["Authorization = '${OTHER_KEY}'", "Idempotency-Key = '\"{id}\"'", "Accept = 'application/json'"] {
        assert!(section(&text(header)).resolve(&env).is_ok(), "{header}");
    }
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let env = env(&[("RAIL_KEY", "k")]);
    for (from, to, said) in [
        ("kind = 'testrail'\n", "", "kind is missing: which product it is"),
        ("'testrail'", "'testrial'", "target.rail.kind: unknown kind \"testrial\"; one of testrail"),
        ("https://rail.example", "rail", "target.rail.url: "),
        ("'reconcile'", "'twice'", "target.rail.strategy: unknown strategy"),
        ("'90s'", "'soon'", "target.rail.quiet: "),
        ("skipped = 4", "skiped = 4", "target.rail.statuses: unknown status \"skiped\""),
    ] {
        let failure = section(&GOOD.replace(from, to)).resolve(&env).unwrap_err();
        assert!(failure.what.contains(said), "{said}: {}", failure.what);
        assert_eq!(failure.exit.number(), 2);
    }
}

#[test]
fn a_mapping_file_names_its_bad_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.tsv");
    std::fs::write(&path, "# items\nsuite > adds\tC12\na, b,C13\n").unwrap();
    let cases = mapping(&path).unwrap();
    assert_eq!(cases["suite > adds"], CaseId::new("C12"));
    assert_eq!(cases["a, b"], CaseId::new("C13"));
    std::fs::write(&path, "adds\tC12\nadds\tC13\n").unwrap();
    assert!(mapping(&path).unwrap_err().what.contains("cases.tsv:2: \"adds\" has a case already"));
    std::fs::write(&path, "adds\n").unwrap();
    assert!(mapping(&path).unwrap_err().what.contains("cases.tsv:1: no item and case"));
}
