//! A target whose table names another place than its ledger stands for: nothing is sent until a person says which it is.

use proof::stubs::testrail::Options;
use proof::stubs::{Stub, TestRail};

use crate::served::serve;
use crate::site::{CASES, Folder, config, rail};

/// Another instance with the same cases, which the folder's table names from now on.
fn elsewhere(folder: &Folder, project: &str) -> Stub<TestRail> {
    let stub = Stub::start(TestRail::new(Options { rate: None, ..Options::default() })).unwrap();
    for n in 0..CASES {
        stub.vendor().add_case(&format!("case {n}"), None);
    }
    folder.write("tallyonce.toml", &config(&stub, "testrail", project, "user = \"bot@example.com\"\n"));
    stub
}

#[test]
fn another_instance_is_not_written_into_with_the_ids_of_the_first() {
    let (old, folder, _) = rail();
    assert_eq!(folder.push(&[]).0.code, Some(0));
    let new = elsewhere(&folder, "1");
    let there = format!("testrail at {}, project 1", new.url());
    for args in [
        &["push", "report.xml", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "8"][..],
        &["run", "--to", "there", "--project", "shop", "--cycle", "main", "--run", "8", "--", "touch", "ran"],
        &["flush", "--to", "there"],
        &["audit", "there", "--cycle", "main"],
        &["repair", "there", "--cycle", "main", "--apply"],
        &["forwards", "--sweep"],
        &["close", "--to", "there", "--round", "7", "--project", "shop", "--cycle", "main"],
    ] {
        let refused = folder.run(args).output().unwrap();
        assert_eq!(refused.code, Some(2), "{args:?}: {refused}");
        assert!(refused.stderr.contains(&there) && refused.stderr.contains(&old.url()), "{args:?}: {refused}");
        assert!(refused.stderr.contains("tallyonce forwards --moved --target there"), "{args:?}: {refused}");
    }
    assert!(new.log().is_empty(), "it was asked nothing");
    assert!(!folder.path("ran").exists(), "no test runs whose push can't go anywhere");
    let kept = std::fs::read_dir(folder.path(".tallyonce/outbox")).unwrap().map(|file| file.unwrap().path());
    let is_push = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "push");
    assert_eq!(kept.filter(is_push).count(), 0, "nothing is kept that nobody would send");
    // What the ledger says is still to be read, and whose it is, is said.
    let listed = folder.run(&["forwards"]).output().unwrap();
    assert!(listed.code == Some(0) && listed.stdout.contains("1 acked"), "{listed}");
    assert!(listed.stderr.contains(&there), "{listed}");
}

#[test]
fn a_ledger_that_cannot_be_read_keeps_no_push_from_the_outbox() {
    let (_stub, folder, _) = rail();
    assert_eq!(folder.push(&[]).0.code, Some(0));
    let ledger = rusqlite::Connection::open(folder.path(".tallyonce/ledger-there.db")).unwrap();
    ledger.execute("INSERT INTO schema_version(version) VALUES (99)", []).unwrap();
    let refused = folder.pushing(&["--job", "b"]).output().unwrap();
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("It is kept in the outbox"), "{refused}");
}

#[test]
fn a_service_that_only_moved_goes_on_once_a_person_says_so() {
    let (old, mut folder, _) = rail();
    assert_eq!(folder.push(&[]).0.code, Some(0));
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    folder.write("tallyonce.toml", &table.replace("127.0.0.1", "localhost"));
    folder.run = "8".to_owned();
    assert_eq!(folder.push(&[]).0.code, Some(2));
    let all = folder.run(&["forwards", "--moved"]).output().unwrap();
    assert!(all.code == Some(2) && all.stderr.contains("--moved is said of one target"), "{all}");
    let moved = folder.run(&["forwards", "--moved", "--target", "there"]).output().unwrap();
    assert_eq!(moved.code, Some(0), "{moved}");
    assert!(moved.stderr.contains("its ledger stands for testrail at http://localhost"), "{moved}");
    assert_eq!(folder.push(&[]).0.code, Some(0));
    assert_eq!(old.ledger().count(), 2 * CASES);
    // And back: who moves a table there and here again is asked each time.
    folder.write("tallyonce.toml", &table);
    assert_eq!(folder.push(&[]).0.code, Some(2));
}

#[test]
fn a_server_forwards_nothing_to_another_instance_and_says_why() {
    let (old, folder, _) = rail();
    let mut server = serve(&folder, "[forward.there]\n");
    let pushed = |server: &proof::spawn::Server, run: &str, deadline: &str| {
        let url = server.url();
        let args = ["push", "report.xml", "--to", &url, "--project", "shop", "--cycle", "main", "--run", run];
        folder.run(&[&args[..], &["--wait-forward", "--deadline", deadline]].concat()).output().unwrap()
    };
    let first = pushed(&server, "7", "60s");
    assert_eq!(first.code, Some(0), "{first}");
    assert!(server.stop(std::time::Duration::from_secs(30)).unwrap().code == Some(0));
    let table = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    let new = elsewhere(&folder, "1");
    folder.write("tallyonce.toml", &table.replace(&old.url(), &new.url()));
    server.restart().unwrap();
    let waits = pushed(&server, "8", "4s");
    assert_eq!(waits.code, Some(7), "{waits}");
    assert!(waits.stderr.contains("its ledger stands for testrail at"), "{waits}");
    assert!(server.log().contains("nothing is forwarded"), "{}", server.log());
    let listed = folder.run(&["forwards"]).output().unwrap();
    assert!(listed.stdout.contains("tallyonce forwards --moved"), "{listed}");
    assert!(new.log().is_empty(), "it was asked nothing");
    // It was the same one after all: the server goes on without a restart.
    let moved = folder.run(&["forwards", "--moved", "--target", "there"]).output().unwrap();
    assert!(
        moved.code.is_some_and(|code| code == 0 || code == 7) && moved.stderr.contains("before: testrail at"),
        "{moved}"
    );
    let goes_on = pushed(&server, "9", "80s");
    assert_eq!(goes_on.code, Some(0), "{goes_on}");
    assert!(new.ledger().count() >= CASES);
}
