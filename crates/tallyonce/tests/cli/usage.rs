//! Wrong uses: each ends with its code, with words that teach, and with nothing written.

use proof::spawn::github_env;
use serde_json::Value;

use crate::{ALL_PASS, Desk, object, pairs};

const FIELDS: [&str; 16] = [
    "state",
    "exit",
    "key",
    "project",
    "cycle",
    "round",
    "job",
    "shard",
    "push",
    "revision",
    "url",
    "counts",
    "report",
    "delivery",
    "difference",
    "warnings",
];

/// Names of the fields in the order in which they are printed.
fn fields(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    let value: Value = serde_json::from_str(line).unwrap();
    for name in value.as_object().unwrap().keys() {
        names.push((line.find(&format!("\"{name}\":")).unwrap(), name.clone()));
    }
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn without_a_run_outside_ci_the_words_teach() {
    let desk = Desk::with_report();
    let finished = desk.run(2, &["push", "r.xml"]);
    for word in ["--run", "Good:", "Bad:", "data:", "next:"] {
        assert!(finished.stderr.contains(word), "{word}: {finished}");
    }
    let value = desk.json(2, &["push", "r.xml", "--json"]);
    assert_eq!((&value["state"], &value["key"]), (&"usage".into(), &Value::Null));
    assert!(!desk.exists("tallyonce.db") && !desk.exists(".tallyonce"));
}

#[test]
fn in_ci_without_a_destination_nothing_is_recorded() {
    let desk = Desk::with_report();
    let env = github_env(7, 1, "test", "r1");
    let finished = desk.run_in(2, &["push", "r.xml", "--json"], &env);
    assert!(finished.stderr.contains("dies with the runner"), "{finished}");
    assert_eq!(object(&finished)["state"], "usage");
    assert!(!desk.exists("tallyonce.db"));
    desk.run_in(0, &["push", "r.xml", "--to", "sqlite:on-purpose.db"], &env);
    assert!(desk.exists("on-purpose.db"));
    // CI that no platform's marker explains counts as well.
    desk.run_in(2, &["push", "r.xml", "--run", "1", "--project", "p"], &pairs(&[("CI", "true")]));
}

#[test]
fn nothing_named_and_nothing_found() {
    let desk = Desk::with_report();
    assert!(desk.run(2, &["push", "--run", "1"]).stderr.contains("no report is named"));
    for path in ["gone.xml", "gone/*.xml", "gone*.xml"] {
        let finished = desk.run(3, &["push", path, "--run", "1", "--json"]);
        assert!(finished.stderr.contains(path), "{finished}");
        assert_eq!(object(&finished)["state"], "unreadable");
    }
    desk.file("empty.xml", "");
    desk.file("pom.xml", "<project/>");
    desk.file("cut.xml", &ALL_PASS[..ALL_PASS.len() - 20]);
    for path in ["empty.xml", "pom.xml", "cut.xml"] {
        let finished = desk.run(3, &["push", "r.xml", path, "--run", "1"]);
        assert!(finished.stderr.contains(path), "{finished}");
    }
    std::fs::create_dir(desk.folder.path().join("hollow")).unwrap();
    desk.run(3, &["push", "hollow", "--run", "1"]);
    assert!(!desk.exists("tallyonce.db"));
    let value = desk.json(0, &["push", "cut.xml", "--run", "1", "--partial", "--json"]);
    assert_eq!((&value["report"]["damaged"], &value["counts"]["total"]), (&1.into(), &1.into()));
    let value = desk.json(0, &["push", "gone*.xml", "--run", "2", "--allow-empty", "--json"]);
    assert_eq!((&value["state"], &value["counts"]["total"]), (&"recorded".into(), &0.into()));
}

#[test]
fn wrong_flags_are_an_object_too() {
    let desk = Desk::with_report();
    for wrong in [
        vec!["push", "--json", "--nope"],
        vec!["push", "r.xml", "--json", "--shard", "9/8"],
        vec!["push", "r.xml", "--json", "--run", "1", "--deadline", "10"],
        vec!["push", "r.xml", "--json", "--run", "1", "--to", "ftp://x"],
        vec!["push", "r.xml", "--json", "--run", "1", "--variant", "linux"],
        vec!["push", "r.xml", "--json", "--run", "1", "--config", "gone.toml"],
        vec!["flush", "sealed", "--json"],
        vec!["flush", "--json", "--nope"],
    ] {
        let finished = desk.run(2, &wrong);
        assert_eq!(object(&finished)["state"], "usage", "{wrong:?}");
        assert_eq!(fields(finished.stdout.trim()), FIELDS, "{wrong:?}");
        assert!(finished.stderr.starts_with("error:"), "{finished}");
    }
    desk.run(2, &["promote"]);
    desk.run(2, &["close"]);
    desk.run(2, &["show", "--format", "yaml"]);
    desk.run(2, &["serve", "--listen", "somewhere"]);
}

#[test]
fn a_wrong_value_is_no_command_for_the_runner() {
    let desk = Desk::new();
    let finished = desk.run(2, &["push", "x", "--shard", "1\n::error::forged\n##vso[task.complete]\n2"]);
    assert!(finished.stderr.contains("forged"), "{finished}");
    let is_command = |line: &str| line.trim_start().starts_with("::") || line.contains("##vso[");
    assert!(!finished.stderr.lines().any(is_command), "{finished}");
}

#[test]
fn the_object_has_these_fields_in_this_order() {
    let desk = Desk::with_report();
    for more in [vec!["--dry-run"], vec!["--seal", "s.push"], vec![], vec![]] {
        let finished = desk.run(0, &[vec!["push", "r.xml", "--run", "1", "--json"], more].concat());
        assert_eq!(fields(finished.stdout.trim()), FIELDS);
        let value = object(&finished);
        let inner = |name: &str| value[name].as_object().map(|o| o.keys().cloned().collect::<Vec<_>>());
        let mut report =
            ["files", "outcomes", "passed", "failed", "errored", "skipped", "repeats", "damaged", "cut"].to_vec();
        report.sort_unstable();
        assert_eq!(inner("report").unwrap(), report);
        assert_eq!(inner("delivery").unwrap(), ["attempts", "bytes", "chunks", "chunks_sent", "elapsed_ms", "resumed"]);
        if value["state"] != "sealed" {
            assert_eq!(inner("counts").unwrap(), ["errored", "failed", "flaky", "passed", "skipped", "total"]);
        }
    }
}

#[test]
fn layers_and_their_sources() {
    let desk = Desk::with_report();
    desk.file(
        "tallyonce.toml",
        "project = \"from-file\"\ncycle = \"file\"\nto = \"sqlite:file.db\"\n[push]\npaths = [\"r.xml\"]\n\
         on-difference = \"keep\"\ndeadline = \"90s\"\n",
    );
    let plan = |arguments: &[&str], env: &[(&str, &str)]| {
        let all = [&["push", "--run", "1", "--dry-run"], arguments].concat();
        desk.run_in(0, &all, &pairs(env)).stdout
    };
    let text = plan(&[], &[]);
    for line in [
        "from-file  (tallyonce.toml: project)",
        "sqlite:file.db  (tallyonce.toml: to)",
        "1m30s  (tallyonce.toml:",
        "keep",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let text = plan(&[], &[("TALLYONCE_PROJECT", "by-variable"), ("TALLYONCE_CYCLE", "")]);
    assert!(text.contains("by-variable  (variable TALLYONCE_PROJECT)"), "{text}");
    assert!(text.contains("file  (tallyonce.toml: cycle)"), "a blank variable counts as absent: {text}");
    let text = plan(&["--project", "by-flag"], &[("TALLYONCE_PROJECT", "by-variable")]);
    assert!(text.contains("by-flag  (--project)"), "{text}");
    let text = plan(&[], &[("TALLYONCE_VARIANT", "os=linux,browser=firefox")]);
    assert!(text.contains("browser=firefox,os=linux"), "{text}");
    assert!(!desk.exists("file.db"), "a dry run writes nothing");
    desk.file("tallyonce.toml", "[push]\npahts = []\n");
    let finished = desk.run(2, &["push", "r.xml", "--run", "1"]);
    assert!(finished.stderr.contains("pahts") && finished.stderr.contains("tallyonce.toml"), "{finished}");
}

#[test]
fn secrets_are_never_shown() {
    let desk = Desk::with_report();
    let env = pairs(&[("TALLYONCE_TOKEN", "s3cr3t-token"), ("TALLYONCE_DEADLINE", "1ms")]);
    let arguments = ["push", "r.xml", "--run", "1", "--to", "http://127.0.0.1:9", "-vv"];
    let finished = desk.run_in(75, &arguments, &env);
    assert!(!format!("{finished}").contains("s3cr3t"));
    let kept = std::fs::read_dir(desk.folder.path().join(".tallyonce/outbox")).unwrap();
    for entry in kept {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"s3cr3t"));
    }
    let finished = desk.run(2, &["push", "r.xml", "--run", "1", "--to", "https://me:hunter2@example.com"]);
    assert!(!format!("{finished}").contains("hunter2"));
    assert!(
        !desk.run_in(0, &["push", "--help"], &pairs(&[("TALLYONCE_TOKEN_FILE", "/s3cr3t")])).stdout.contains("s3cr3t")
    );
}

#[test]
fn keys_are_judged() {
    let desk = Desk::new();
    let sha = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432";
    let finished = desk.run(0, &["key", "--run", sha, "--check"]);
    assert!(finished.stderr.contains("collapse"), "{finished}");
    assert_eq!(finished.stdout, format!("run:{sha}\n"));
    desk.run(2, &["key", "--run", sha, "--strict"]);
    desk.run(0, &["key", "--run", "nightly-4711", "--strict"]);
    let value = desk.json(2, &["key", "--json"]);
    assert_eq!(value["key"], Value::Null);
}

#[test]
fn the_key_object() {
    let desk = Desk::new();
    let env = github_env(7, 2, "test", "r1");
    let finished = desk.run_in(0, &["key", "--json", "--shard", "1/2"], &env);
    let wanted =
        ["key", "round", "parts", "ordinal", "executor", "left_out", "warnings", "platform", "strength", "reruns"];
    assert_eq!(fields(finished.stdout.trim()), wanted);
    let value = object(&finished);
    assert_eq!(value["key"], "github:acme/shop:run:7:job:test:shard:1-2");
    assert_eq!((&value["round"], &value["ordinal"]), (&"github:acme/shop:run:7".into(), &2.into()));
    let parts: Vec<&str> = value["parts"].as_array().unwrap().iter().map(|p| p["part"].as_str().unwrap()).collect();
    assert_eq!(parts, ["scope", "run", "job", "shard"]);
    let explained = desk.run_in(0, &["key", "--explain"], &env).stdout;
    for word in ["Sent along", "left out on purpose", "Re-run failed jobs", "same key", "new key"] {
        assert!(explained.contains(word), "{word}: {explained}");
    }
}

#[test]
fn beyond_loopback_serve_wants_to_be_told() {
    let desk = Desk::new();
    let finished = desk.run(2, &["serve", "--listen", "0.0.0.0:0"]);
    assert!(finished.stderr.contains("--open"), "{finished}");
    assert!(!desk.exists("tallyonce.db"));
}
