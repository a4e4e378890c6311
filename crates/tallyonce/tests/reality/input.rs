//! Bad input and wrong use of every kind: a clear error that names the file, and nothing lost or half sent by it.

use std::fmt::Write as _;
use std::io::Write as _;

use proof::spawn::{Server, github_env};

use crate::world::{Outcome, World, junit};

#[track_caller]
fn unreadable(world: &World, arguments: &[&str], words: &[&str]) -> Outcome {
    let outcome = world.push_local("r1", arguments).expect(3, "unreadable");
    for word in words {
        assert!(outcome.stderr.contains(word), "{word:?} is not in: {}", outcome.stderr);
    }
    assert_eq!(world.outbox_entries(), 0);
    outcome
}

#[test]
fn files_that_are_no_report() {
    let world = World::new();
    world.report("empty.xml", "");
    unreadable(&world, &["empty.xml"], &["empty.xml", "empty"]);
    world.report("text.xml", "all tests passed, promise\n");
    unreadable(&world, &["text.xml"], &["text.xml"]);
    std::fs::write(world.path("binary.xml"), (0..=255).cycle().take(5000).collect::<Vec<u8>>()).unwrap();
    unreadable(&world, &["binary.xml"], &["binary.xml"]);
    world.report("page.xml", "<html><body>502</body></html>");
    unreadable(&world, &["page.xml"], &["page.xml", "html"]);
    unreadable(&world, &["no/such/*.xml"], &["no/such/*.xml"]);
    unreadable(&world, &["missing.xml"], &["missing.xml"]);
    std::fs::create_dir(world.path("void")).unwrap();
    unreadable(&world, &["void"], &["void"]);
}

#[test]
fn a_cut_report_names_file_line_and_what_was_readable() {
    let world = World::new();
    let whole = junit("pppp");
    let at = whole.match_indices("<testcase").nth(3).unwrap().0 + 12;
    world.report("cut.xml", &whole[..at]);
    unreadable(&world, &["cut.xml"], &["cut.xml:5:1", "3 outcomes", "--partial"]);
    let partial = world.push_local("r1", &["cut.xml", "--partial"]).expect(0, "recorded");
    assert_eq!((partial.total(), &partial.json["report"]["damaged"]), (3, &1.into()));
}

#[test]
fn one_bad_file_never_hides_the_others() {
    let world = World::new();
    world.report("a.xml", &junit("pp"));
    world.report("b.xml", "");
    unreadable(&world, &["a.xml", "b.xml"], &["b.xml"]);
    assert!(!world.path("tallyonce.db").exists(), "nothing was sent");
}

#[test]
fn entity_bombs_and_zip_bombs_end_with_words() {
    let world = World::new();
    let mut bomb = String::from("<?xml version=\"1.0\"?>\n<!DOCTYPE lolz [<!ENTITY l0 \"lol\">");
    for n in 1..20 {
        let inner = format!("&l{};", n - 1).repeat(10);
        let _ = write!(bomb, "<!ENTITY l{n} \"{inner}\">");
    }
    bomb.push_str("]><testsuites><testsuite name=\"s\"><testcase name=\"&l19;\"/></testsuite></testsuites>");
    world.report("bomb.xml", &bomb);
    unreadable(&world, &["bomb.xml"], &["bomb.xml", "DOCTYPE"]);

    let file = std::fs::File::create(world.path("zeros.xml.gz")).unwrap();
    let mut gzip =
        std::process::Command::new("gzip").arg("-c").stdin(std::process::Stdio::piped()).stdout(file).spawn().unwrap();
    let mut stdin = gzip.stdin.take().unwrap();
    let mebibyte = vec![b' '; 1 << 20];
    stdin.write_all(b"<testsuites>").unwrap();
    for _ in 0..1500 {
        stdin.write_all(&mebibyte).unwrap();
    }
    drop(stdin);
    gzip.wait().unwrap();
    unreadable(&world, &["zeros.xml.gz"], &["zeros.xml.gz"]);
}

#[test]
fn no_run_identity_teaches() {
    let world = World::new();
    world.report("junit.xml", &junit("pp"));
    let outcome = world.push(&["junit.xml", "--project", "shop"], &[]).expect(2, "usage");
    assert!(outcome.stderr.contains("--run") && outcome.stderr.to_lowercase().contains("commit"), "{}", outcome.stderr);
    assert!(!world.path("tallyonce.db").exists());
}

#[test]
fn a_commit_as_run_is_called_out() {
    let world = World::new();
    let sha = "3f2a9c1e5b7d8f60412e9ab3c4d5e6f708192a3b";
    let checked = world.run(&["key", "--run", sha, "--check"]).output().unwrap();
    let words = format!("{}{}", checked.stdout, checked.stderr).to_lowercase();
    assert!(words.contains("commit") && words.contains("two real runs"), "{words}");
    assert_eq!(checked.code, Some(0));
    assert_ne!(world.run(&["key", "--run", sha, "--check", "--strict"]).output().unwrap().code, Some(0));
}

#[test]
fn a_rejected_push_ends_at_once_and_says_what_to_fix() {
    let world = World::new();
    let server = world.serve();
    world.report("junit.xml", &junit("pp"));
    let url = format!("{}/wrong", server.url());
    let outcome = world.push(
        &["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url, "--deadline", "60s"],
        &github_env(1, 1, "test", "runner"),
    );
    let outcome = outcome.expect(4, "rejected");
    assert!(outcome.json["delivery"]["elapsed_ms"].as_u64().unwrap() < 10_000);
    assert_eq!(outcome.json["delivery"]["attempts"], 1);
}

#[test]
fn what_a_server_refuses_ends_at_once_and_says_why() {
    let world = World::new();
    world.report("tallyonce.toml", "[serve]\nbody-bytes-max = 200\n");
    let config = world.path("tallyonce.toml").display().to_string();
    let server = Server::start(&world.binary, &world.store_url(), &[], &["--config", &config]).unwrap();
    world.report("junit.xml", &junit(&"pf".repeat(500)));
    std::fs::remove_file(world.path("tallyonce.toml")).unwrap();
    let url = server.url();
    let push = ["junit.xml", "--project", "shop", "--cycle", "main", "--to", &url, "--deadline", "60s"];
    let large = world.push(&push, &github_env(1, 1, "test", "runner")).expect(4, "rejected");
    // It tried smaller bodies first, without a wait in between; not even the list of chunks fits.
    assert_eq!(large.json["code"], "too-large");
    assert!(large.stderr.contains("Raise its limit"), "{}", large.stderr);

    let raw = std::process::Command::new("curl")
        .args(["--silent", "-H", "Idempotency-Key: k", "--data-binary", "not a report"])
        .arg(format!("{url}/api/v1/projects/shop/pushes?cycle=main&run=1"))
        .output()
        .unwrap();
    let problem: serde_json::Value = serde_json::from_slice(&raw.stdout).unwrap();
    assert_eq!((&problem["code"], &problem["written"]), (&"report-unreadable".into(), &"no".into()));

    world.report("small.xml", &junit("p"));
    let seal = ["small.xml", "--project", "shop", "--cycle", "main", "--seal", "push.sealed"];
    world.push(&seal, &github_env(1, 1, "test", "runner")).expect(0, "sealed");
    let claim = ["flush", "push.sealed", "--json", "--to", &url, "--project", "bank", "--cycle", "main", "--run", "1"];
    let wrong = crate::world::outcome(world.run(&claim).output().unwrap()).expect(4, "rejected");
    assert!(wrong.stderr.contains("bank") && wrong.stderr.contains("shop"), "{}", wrong.stderr);
}

#[test]
fn a_readable_report_without_any_test_is_recorded_with_a_warning() {
    let world = World::new();
    world.report("none.xml", "<testsuites/>");
    let outcome = world.push_local("r1", &["none.xml"]).expect(0, "recorded");
    assert!(outcome.json["warnings"].to_string().contains("none.xml"), "{:#}", outcome.json);
}

#[test]
fn ten_gigabytes_of_text_in_one_case_are_cut_in_bounded_memory() {
    let world = World::new();
    // Ten gigabytes would take minutes on two cores; TALLYONCE_HUGE_MB makes it the whole ten.
    let megabytes: usize = std::env::var_os("TALLYONCE_HUGE_MB").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(600);
    let mut child = std::process::Command::new(world.binary.path())
        .args(["push", "--json", "-", "--project", "shop", "--run", "r1"])
        .current_dir(world.folder.path())
        .env_clear()
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mebibyte = "lorem ipsum dolor sit amet ".repeat((1 << 20) / 27).into_bytes();
    stdin.write_all(b"<testsuites><testsuite name=\"s\"><testcase name=\"a\"><failure>").unwrap();
    let mut peak_kb = 0;
    for _ in 0..megabytes {
        stdin.write_all(&mebibyte).unwrap();
        peak_kb = peak_kb.max(resident_kb(child.id()));
    }
    stdin.write_all(b"</failure></testcase></testsuite></testsuites>").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["state"], &json["report"]["cut"]), (&"recorded".into(), &1.into()), "{json:#}");
    println!("{megabytes} MiB in one text: peak {peak_kb} KiB");
    assert!(peak_kb < 64 * 1024, "peak {peak_kb} KiB");
}

fn resident_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}
