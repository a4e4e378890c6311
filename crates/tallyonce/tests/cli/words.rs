//! Words that say what to do next have to be right: commands that they name work, and they claim nothing untrue.

use proof::spawn::github_env;

use crate::{ALL_PASS, Desk, object, pairs};

const DEAD: [&str; 4] = ["--to", "http://127.0.0.1:9", "--deadline", "0s"];

#[test]
fn an_unconfirmed_push_names_the_flush_that_delivers_it() {
    let desk = Desk::with_report();
    let push = [&["push", "r.xml", "--run", "1"], &DEAD[..]].concat();
    let finished = desk.run(75, &push);
    for words in ["`tallyonce flush --to http://127.0.0.1:9`", "http://127.0.0.1:9: ", "This delivery wrote nothing"] {
        assert!(finished.stderr.contains(words), "{words}: {finished}");
    }
    let finished = desk.run(75, &[&push[..], &["--outbox", "box"]].concat());
    assert!(finished.stderr.contains("`tallyonce flush --to http://127.0.0.1:9 --outbox box`"), "{finished}");
}

#[test]
fn what_is_no_store_is_refused_before_anything_is_kept() {
    let desk = Desk::with_report();
    std::fs::create_dir(desk.folder.path().join("folder")).unwrap();
    desk.file("text.db", "no database");
    for to in ["sqlite:text.db", "sqlite:folder"] {
        let finished = desk.run(2, &["push", "r.xml", "--run", "1", "--to", to, "--json"]);
        assert_eq!(object(&finished)["state"], "usage");
        assert!(finished.stderr.contains("is no store"), "{finished}");
        assert!(!desk.exists(".tallyonce"));
        desk.run(2, &["show", "--from", to]);
        desk.run(2, &["check-store", "--store", to]);
    }
    assert!(desk.run(2, &["serve", "--store", "sqlite:text.db"]).stderr.contains("is no store"));
}

#[test]
fn a_store_that_cannot_be_opened_leaves_the_push_in_the_outbox_and_says_so() {
    let desk = Desk::with_report();
    let to = "sqlite:not/there/x.db";
    let finished = desk.run(75, &["push", "r.xml", "--run", "1", "--to", to]);
    assert!(finished.stderr.contains("kept in the outbox"), "{finished}");
    std::fs::create_dir_all(desk.folder.path().join("not/there")).unwrap();
    desk.run(0, &["flush", "--to", to]);
}

#[test]
fn a_sealed_push_says_how_it_is_delivered() {
    let desk = Desk::with_report();
    let seal = ["push", "r.xml", "--run", "7", "--project", "p", "--seal", "s.push"];
    let finished = desk.run(0, &[&seal[..], &["--to", "sqlite:x.db"]].concat());
    assert!(finished.stderr.contains("--to is not used with --seal"), "{finished}");
    assert!(finished.stderr.contains("flush s.push --to DEST --project p --cycle local --run 7"), "{finished}");
    assert!(!desk.exists("x.db") && !desk.exists(".tallyonce"));
    // A destination that is set for every command is no mistake.
    let finished = desk.run_in(0, &seal, &pairs(&[("TALLYONCE_TO", "sqlite:x.db")]));
    assert!(!finished.stderr.contains("not used"), "{finished}");
    std::fs::create_dir(desk.folder.path().join("box")).unwrap();
    std::fs::copy(desk.folder.path().join("s.push"), desk.folder.path().join("box/s.push")).unwrap();
    let finished = desk.run(4, &["flush", "--outbox", "box"]);
    assert!(finished.stderr.contains("flush box/s.push --project"), "{finished}");
    let claims = ["--project", "p", "--cycle", "local", "--run", "7"];
    let finished = desk.run(75, &[&["flush", "s.push"], &DEAD[..], &claims[..]].concat());
    assert!(finished.stderr.contains("still in the sealed file"), "{finished}");
    let finished = desk.run(3, &[&["flush", "gone.push"], &claims[..]].concat());
    assert!(!finished.stderr.contains("--partial") && finished.stderr.contains("--seal"), "{finished}");
}

#[test]
fn each_part_says_where_it_came_from() {
    let desk = Desk::with_report();
    desk.file("tallyonce.toml", "[push]\njob = \"e2e\"\n");
    let env = pairs(&[("TALLYONCE_SHARD", "1/2")]);
    let plan = desk.run_in(0, &["push", "r.xml", "--run", "1", "--dry-run"], &env).stdout;
    for words in ["(--run)", "(tallyonce.toml: push.job)", "(variable TALLYONCE_SHARD)"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    let key = object(&desk.run_in(0, &["key", "--run", "1", "--json"], &env));
    let sources: Vec<&str> = key["parts"].as_array().unwrap().iter().filter_map(|p| p["source"].as_str()).collect();
    assert_eq!(sources, ["--run", "tallyonce.toml: push.job", "variable TALLYONCE_SHARD"]);
    let explained = desk.run_in(0, &["key", "--run", "1", "--job", "j", "--explain"], &env).stdout;
    assert!(explained.contains("from --job") && explained.contains("from variable TALLYONCE_SHARD"), "{explained}");
}

#[test]
fn a_job_that_never_pushes_is_a_mistake() {
    let desk = Desk::with_report();
    desk.run(2, &["push", "r.xml", "--run", "1", "--expect", "0"]);
    desk.file("tallyonce.toml", "[push]\nexpect = 0\n");
    let finished = desk.run(2, &["push", "r.xml", "--run", "1"]);
    assert!(finished.stderr.contains("tallyonce.toml: push.expect"), "{finished}");
}

#[test]
fn in_ci_show_asks_for_the_flag_that_it_has() {
    let desk = Desk::new();
    let finished = desk.run_in(2, &["show"], &github_env(7, 1, "test", "r1"));
    assert!(finished.stderr.contains("--from") && !finished.stderr.contains("--to "), "{finished}");
}

#[test]
fn a_repeat_of_what_is_kept_beside_says_that_it_does_not_count() {
    let desk = Desk::with_report();
    let push = ["push", "r.xml", "--run", "1", "--project", "p", "--on-difference", "keep", "--json"];
    desk.run(0, &push);
    desk.file("r.xml", ALL_PASS);
    for _ in 0..2 {
        let value = desk.json(0, &push);
        assert_eq!(value["state"], "replayed");
        assert!(value["warnings"].to_string().contains("promote"), "{value}");
    }
    desk.run(0, &["promote", "run:1", "--project", "p"]);
    assert_eq!(desk.json(0, &push)["warnings"].as_array().unwrap().len(), 0);
}

#[test]
fn a_wrong_flag_says_what_it_means_for_the_data() {
    let desk = Desk::with_report();
    let finished = desk.run(2, &["push", "r.xml", "--shard", "9/8"]);
    assert!(finished.stderr.contains("data: Nothing was sent") && finished.stderr.contains("exit: 2"), "{finished}");
    assert_eq!(desk.run(0, &["push", "--help"]).stderr, "");
}

#[test]
fn tls_to_a_plain_server_is_named_as_what_it_is() {
    let desk = Desk::with_report();
    let store = format!("sqlite:{}", desk.folder.path().join("served.db").display());
    let server = proof::spawn::Server::start(&desk.binary, &store, &[], &[] as &[&str]).unwrap();
    let to = server.url().replace("http://", "https://");
    let finished = desk.run(75, &["push", "r.xml", "--run", "1", "--to", &to, "--deadline", "0s"]);
    assert!(finished.stderr.contains("is it an http:// address?"), "{finished}");
    // What is not there is said of the question, not of a push.
    let finished = desk.run(4, &["show", "--from", &server.url(), "--project", "nope"]);
    assert!(finished.stderr.contains("the first push creates it"), "{finished}");
    let finished = desk.run(75, &["show", "--from", "http://127.0.0.1:9", "--project", "p"]);
    assert!(!finished.stderr.contains("counted twice"), "{finished}");
}
