//! Kiwi TCMS and Nitrate, live: they start, know their user, and end with whoever started them. Skipped, and said so,
//! where they can't be installed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may panic")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use proof::rigs::{self, Rig, Vendor};

/// Posts a body by hand and gives the whole answer, head and all, as the server closes after it.
fn post(rig: &Rig, kind: &str, body: &str) -> String {
    let address = rig.url().strip_prefix("http://").unwrap();
    let path = rig.rpc().strip_prefix(rig.url()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
    write!(stream, "{head}Connection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn login_to_kiwi(rig: &Rig, password: &str) -> String {
    let params = serde_json::json!([rig.user(), password]);
    let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "Auth.login", "params": params});
    post(rig, "application/json", &call.to_string())
}

#[test]
fn kiwi_lets_its_user_in_and_nobody_else() {
    let Some(rig) = rigs::or_skip(Rig::kiwi()).unwrap() else { return };
    let answer = login_to_kiwi(&rig, rig.password());
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("sessionid=") && answer.contains("\"result\""), "{answer}");
    let refusal = login_to_kiwi(&rig, "guessed");
    assert!(refusal.contains("\"error\"") && !refusal.contains("sessionid="), "{refusal}");
}

#[test]
fn nitrate_lets_its_user_in_and_nobody_else() {
    let Some(rig) = rigs::or_skip(Rig::nitrate()).unwrap() else { return };
    let login = |password: &str| {
        let member = |name, value| format!("<member><name>{name}</name><value>{value}</value></member>");
        let who = member("username", rig.user()) + &member("password", password);
        let param = format!("<params><param><value><struct>{who}</struct></value></param></params>");
        post(&rig, "text/xml", &format!("<methodCall><methodName>Auth.login</methodName>{param}</methodCall>"))
    };
    let answer = login(rig.password());
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("sessionid="), "{answer}");
    // Each of its refusals is a 500, whatever the reason.
    let refusal = login("guessed");
    assert!(refusal.starts_with("HTTP/1.1 500 ") && !refusal.contains("sessionid="), "{refusal}");
}

#[test]
fn two_rigs_at_once_have_two_worlds() {
    let second = std::thread::spawn(Rig::kiwi);
    let first = rigs::or_skip(Rig::kiwi()).unwrap();
    let second = rigs::or_skip(second.join().unwrap()).unwrap();
    let (Some(first), Some(second)) = (first, second) else { return };
    assert_ne!((first.url(), first.database()), (second.url(), second.database()));
    for rig in [&first, &second] {
        assert!(login_to_kiwi(rig, rig.password()).contains("\"result\""), "{}", rig.log());
    }
}

#[test]
fn a_rig_ends_and_its_folder_goes_when_it_is_dropped() {
    let Some(rig) = rigs::or_skip(Rig::kiwi()).unwrap() else { return };
    let mut stream = TcpStream::connect(rig.url().strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let database = rig.database();
    assert!(database.is_file());
    drop(rig);
    match stream.read(&mut [0]) {
        Ok(0) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        other => panic!("the server lives on: {other:?}"),
    }
    assert!(!database.exists());
}

#[test]
fn a_rig_ends_by_itself_when_nobody_holds_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let Some(run) = rigs::or_skip(Vendor::Kiwi.serve(folder.path())).unwrap() else { return };
    let finished = run.timeout(Duration::from_mins(5)).output().unwrap().expect_code(0).unwrap();
    assert!(finished.stdout.contains("\"url\""), "{}", finished.stdout);
}
