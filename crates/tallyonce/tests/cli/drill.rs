//! `drill` on real processes: against a server of its own and a given one, all is well; against servers that forget,
//! double or swallow, it says so.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use proof::spawn::{Run, Server};
use serde_json::Value;

use crate::{Desk, object};

/// The drill leaves nothing behind in here.
const TEMP: &str = "temp";

fn drill(desk: &Desk, arguments: &[&str]) -> Run {
    let temp = desk.folder.path().join(TEMP);
    std::fs::create_dir_all(&temp).unwrap();
    desk.command(&["drill"]).args(arguments).env("TMPDIR", temp).timeout(Duration::from_mins(5))
}

fn left_behind(desk: &Desk) -> usize {
    std::fs::read_dir(desk.folder.path().join(TEMP)).unwrap().count()
}

fn number(report: &Value, name: &str) -> u64 {
    report[name].as_u64().unwrap_or_else(|| panic!("{name} is no number: {report}"))
}

fn server(desk: &Desk, store: &str) -> Server {
    let store = format!("sqlite:{}", desk.folder.path().join(store).display());
    Server::start(&desk.binary, &store, &[], &[] as &[&str]).unwrap()
}

#[test]
fn an_own_server_comes_through_and_the_numbers_add_up() {
    let desk = Desk::new();
    let finished = drill(&desk, &["--seed", "11", "--pushes", "32", "--json"]).output().unwrap();
    assert_eq!(finished.code, Some(0), "{finished}");
    let report = object(&finished);
    for name in ["doubled", "lost", "suppressed", "unexplained"] {
        assert_eq!(report[name], 0, "{name}: {report}");
    }
    assert_eq!((number(&report, "pushes"), number(&report, "recorded")), (32, 32));
    let faults = report["faults"].as_object().unwrap();
    let classes = proof::proxy::Fault::all(Duration::ZERO).map(proof::proxy::Fault::name);
    assert!(classes.iter().all(|class| faults.contains_key(*class)), "{report}");
    let broken: u64 = faults.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(broken > 32 && number(&report, "deliveries") > 64, "{report}");
    // Whatever was accepted was recorded first, recorded as another content, or replayed; and each was a delivery, or
    // the second half of one that the link doubled.
    let accepted = ["recorded", "revised", "replayed"].iter().map(|name| number(&report, name)).sum::<u64>();
    let doubled: u64 = ["duplicate", "duplicate-concurrent"].iter().map(|class| faults[*class].as_u64().unwrap()).sum();
    assert!(accepted <= number(&report, "deliveries") + doubled, "{report}");
    assert!(number(&report, "replayed") > 0 && number(&report, "revised") > 0, "{report}");
    assert!(number(&report, "server_kills") >= 1 && number(&report, "client_kills") >= 1, "{report}");
    assert_eq!(report["findings"], Value::Array(Vec::new()));
    assert_eq!(left_behind(&desk), 0);
}

#[test]
fn a_given_server_comes_through_and_keeps_the_pushes() {
    let desk = Desk::new();
    let server = server(&desk, "served.db");
    let finished = drill(&desk, &["--seed", "12", "--pushes", "24", "--to", &server.url()]).output().unwrap();
    assert_eq!(finished.code, Some(0), "{finished}");
    for words in ["24 pushes were delivered", "every outcome is counted exactly once", "--seed 12 --pushes 24 --to"] {
        assert!(finished.stdout.contains(words), "{words}: {finished}");
    }
    let project = finished.stderr.split("into project ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    assert!(project.starts_with("drill-12-"), "{finished}");
    let show = ["show", "--project", project, "--cycle", "drill", "--round", "all", "--from", &server.url()];
    let shown = desk.json(0, &[&show[..], &["--format", "json"]].concat());
    let pushes: usize = shown["rounds"].as_array().unwrap().iter().map(|r| r["pushes"].as_array().unwrap().len()).sum();
    assert_eq!(pushes, 24);
    assert_eq!(left_behind(&desk), 0);
}

#[test]
fn what_cannot_be_drilled_is_said() {
    let desk = Desk::new();
    let refused = drill(&desk, &["--to", "https://tally.example.com"]).output().unwrap();
    assert!(refused.code == Some(2) && refused.stderr.contains("inside TLS"), "{refused}");
    for wrong in [&["--to", "sqlite:x.db"][..], &["--to", "nonsense"], &["--pushes", "0"], &["--seed", "x"]] {
        let refused = drill(&desk, wrong).output().unwrap();
        assert_eq!(refused.code, Some(2), "{wrong:?}: {refused}");
    }
    let nobody = drill(&desk, &["--to", "http://127.0.0.1:9"]).output().unwrap();
    assert_eq!(nobody.code, Some(75), "{nobody}");
    assert!(nobody.stderr.contains("Nothing was pushed"), "{nobody}");
    // Where pushes go by default is no wish to drill there.
    let finished =
        drill(&desk, &["--pushes", "1", "--json"]).env("TALLYONCE_TO", "http://127.0.0.1:9").output().unwrap();
    assert_eq!((finished.code, &object(&finished)["to"]), (Some(0), &Value::Null), "{finished}");
    assert_eq!(left_behind(&desk), 0);
}

#[test]
fn the_folder_is_kept_on_wish_only() {
    let desk = Desk::new();
    let finished = drill(&desk, &["--seed", "13", "--pushes", "2", "--keep"]).output().unwrap();
    assert_eq!((finished.code, left_behind(&desk)), (Some(0), 1), "{finished}");
    let kept = finished.stderr.lines().find_map(|line| line.strip_prefix("kept: ")).unwrap();
    assert!(std::path::Path::new(kept).join("drill.db").exists(), "{finished}");
}

#[test]
fn a_signal_ends_it_and_takes_everything_away() {
    let desk = Desk::new();
    let running = drill(&desk, &["--pushes", "10000"]).start().unwrap();
    running.find_in_stderr(crate::PATIENCE, |text| text.contains("drill with seed").then_some(())).unwrap();
    running.interrupt();
    let finished = running.wait(crate::PATIENCE).unwrap();
    assert_eq!((finished.code, finished.timed_out), (Some(75), false), "{finished}");
    assert!(finished.stderr.contains("interrupted") && finished.stdout.is_empty(), "{finished}");
    assert_eq!(left_behind(&desk), 0);
}

/// What a server does wrong. Its first server is honest, and answers every question.
#[derive(Debug, Clone, Copy)]
enum Lie {
    /// Pushes of one job go to a second server, which nobody asks: answered, and forgotten.
    Forget,
    /// Pushes of one job are recorded a second time, under a key of the liar's own.
    Double,
    /// Second attempts go to the second server: the client hears that they are recorded, and the first ones count.
    Swallow,
}

/// A server that lies, in front of two honest ones. One request a connection.
fn liar(lie: Lie, honest: SocketAddr, other: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A connection that ends early is the drill's doing.
            std::thread::spawn(move || answer(stream, lie, honest, other));
        }
    });
    url
}

fn answer(mut client: TcpStream, lie: Lie, honest: SocketAddr, other: SocketAddr) -> std::io::Result<()> {
    let Some((head, body)) = request(&mut client)? else { return Ok(()) };
    let is_write = head.starts_with("POST ");
    let of_job = is_write && head.contains(":job:unit-1");
    let again = is_write && head.to_ascii_lowercase().contains("push-attempt: 2");
    let to = match lie {
        Lie::Forget if of_job => other,
        Lie::Swallow if again => other,
        _ => honest,
    };
    let answer = ask(to, &head, &body)?;
    if matches!(lie, Lie::Double) && of_job {
        ask(honest, &head.replace(":job:unit-1", ":job:unit-1-again"), &body)?;
    }
    client.write_all(&answer)
}

/// A head and its body; `None` if the connection ends within.
fn request(client: &mut TcpStream) -> std::io::Result<Option<(String, Vec<u8>)>> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some(end) = text.find("\r\n\r\n") {
            let head = text[..end + 4].to_owned();
            let length =
                head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            let body = bytes[head.len()..].to_vec();
            if body.len() >= length.unwrap_or(0) {
                return Ok(Some((head, body)));
            }
        }
        match client.read(&mut buffer)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

fn ask(server: SocketAddr, head: &str, body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut upstream = TcpStream::connect(server)?;
    let head = head.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    upstream.write_all(&[head.as_bytes(), body].concat())?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Drills a liar; the report.
#[track_caller]
fn caught(lie: Lie) -> Value {
    let desk = Desk::new();
    let (honest, other) = (server(&desk, "honest.db"), server(&desk, "other.db"));
    let url = liar(lie, honest.addr(), other.addr());
    let finished = drill(&desk, &["--seed", "14", "--pushes", "24", "--json", "--to", &url]).output().unwrap();
    assert_eq!(finished.code, Some(1), "{lie:?}: {finished}");
    object(&finished)
}

#[test]
fn a_server_that_forgets_is_caught() {
    let report = caught(Lie::Forget);
    assert!(number(&report, "lost") > 0 && number(&report, "recorded") == 21, "{report}");
    assert_eq!((number(&report, "doubled"), number(&report, "suppressed")), (0, 0), "{report}");
}

#[test]
fn a_server_that_records_twice_is_caught() {
    let report = caught(Lie::Double);
    assert!(number(&report, "doubled") > 0 && number(&report, "recorded") == 21, "{report}");
    assert_eq!((number(&report, "lost"), number(&report, "suppressed")), (0, 0), "{report}");
}

#[test]
fn a_server_that_swallows_a_re_execution_is_caught() {
    let report = caught(Lie::Swallow);
    assert!(number(&report, "suppressed") > 0, "{report}");
    assert_eq!((number(&report, "lost"), number(&report, "doubled")), (0, 0), "{report}");
}
