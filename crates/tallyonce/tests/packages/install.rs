//! `packages/install.sh` against a server with good, damaged and missing files, and against a folder.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use proof::spawn::{Finished, Run};

use crate::stub::{Answer, Stub};
use crate::{Machine, pairs, program, root, said, system_path};

const TARGET: &str = "x86_64-unknown-linux-musl";
const ARCHIVE: &str = "/tallyonce-x86_64-unknown-linux-musl.tar.gz";
const SUM: &str = "/tallyonce-x86_64-unknown-linux-musl.tar.gz.sha256";

/// A release of a program that says its version, as files by their names.
fn release(machine: &Machine, version: &str) -> BTreeMap<String, Vec<u8>> {
    machine.file("release/tallyonce", &format!("#!/bin/sh\necho tallyonce {version}\n"));
    let script = format!(
        "cd release && chmod 755 tallyonce && tar -czf a tallyonce && sha256sum a | sed 's| .*|  {}|'",
        &ARCHIVE[1..]
    );
    let made = Run::new(&program("sh").unwrap()).args(["-c", &script]).folder(machine.folder.path()).output().unwrap();
    assert_eq!(made.code, Some(0), "{made}");
    let archive = std::fs::read(machine.path("release/a")).unwrap();
    BTreeMap::from([(ARCHIVE.to_owned(), archive), (SUM.to_owned(), made.stdout.into_bytes())])
}

fn serve(files: BTreeMap<String, Vec<u8>>) -> Stub {
    Stub::start(move |asked| {
        files.get(asked.path()).map_or_else(|| Answer::status(404), |body| Answer::body(body.clone()))
    })
}

/// Without the tested program on the PATH.
fn install(machine: &Machine, from: &str, more: &[(&str, &str)]) -> Finished {
    let script = root().join("packages/install.sh");
    let cache = machine.path("cache");
    let env =
        [("TALLYONCE_DOWNLOAD", from), ("TALLYONCE_TARGET", TARGET), ("TALLYONCE_CACHE", cache.to_str().unwrap())];
    let path = system_path();
    let env = pairs(&[&[("PATH", path.as_str())], &env[..], more].concat());
    machine.shell("sh", &[script.to_str().unwrap()], &env).output().unwrap()
}

#[track_caller]
fn fails(finished: &Finished, words: &str) {
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished}");
    assert!(finished.stderr.contains(words) && finished.stderr.contains("nothing was sent"), "{words}: {finished}");
}

#[track_caller]
fn works(machine: &Machine, finished: &Finished, version: &str) {
    assert_eq!(finished.code, Some(0), "{finished}");
    let folder = finished.stdout.trim();
    assert!(Path::new(folder).starts_with(machine.path("cache")), "{finished}");
    let run = machine.shell("sh", &["-c", &format!("{folder}/tallyonce --version")], &[]).output().unwrap();
    assert_eq!(run.stdout.trim(), format!("tallyonce {version}"));
    let left = std::fs::read_dir(machine.path("cache")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with("new-")), "something is left behind");
}

#[test]
fn a_good_archive_is_checked_and_kept() {
    let machine = Machine::new();
    let server = serve(release(&machine, "9.9.9"));
    works(&machine, &install(&machine, &server.url(), &[]), "9.9.9");
    works(&machine, &install(&machine, &format!("{}/", server.url()), &[("TALLYONCE_VERSION", "v9.9.9")]), "9.9.9");
    assert_eq!((server.times(ARCHIVE), server.times(SUM)), (1, 2), "what is kept is not fetched again");
    let other = install(&machine, &server.url(), &[("TALLYONCE_VERSION", "1.0.0")]);
    fails(&other, "holds tallyonce 9.9.9, wanted is 1.0.0");
}

#[test]
fn a_folder_will_do() {
    let machine = Machine::new();
    for (name, content) in release(&machine, "9.9.9") {
        std::fs::create_dir_all(machine.path("a folder")).unwrap();
        std::fs::write(machine.path("a folder").join(&name[1..]), content).unwrap();
    }
    let folder = machine.path("a folder").display().to_string();
    works(&machine, &install(&machine, &folder, &[]), "9.9.9");
    works(&machine, &install(&machine, &format!("file://{folder}"), &[]), "9.9.9");
    fails(&install(&machine, "/nowhere", &[]), "can't be had");
    fails(&install(&machine, "ftp://example.com", &[]), "only http, https and file addresses");
    fails(&install(&machine, "", &[]), "TALLYONCE_DOWNLOAD doesn't say where");
}

#[test]
fn a_damaged_archive_is_not_used() {
    let machine = Machine::new();
    let mut files = release(&machine, "9.9.9");
    let sum = files[SUM].clone();
    files.get_mut(ARCHIVE).unwrap().push(0);
    fails(&install(&machine, &serve(files.clone()).url(), &[]), "is damaged or not the one that was meant");
    files.insert(SUM.to_owned(), b"<html>sign in</html>".to_vec());
    fails(&install(&machine, &serve(files.clone()).url(), &[]), "is no SHA-256");
    // A digest that somebody pinned is believed rather than the one beside it.
    let sum = String::from_utf8(sum).unwrap();
    let server = serve(files);
    fails(
        &install(&machine, &server.url(), &[("TALLYONCE_SHA256", &sum[..64])]),
        "is damaged or not the one that was meant",
    );
    assert_eq!(server.times(SUM), 0);
    assert!(std::fs::read_dir(machine.path("cache")).unwrap().next().is_none(), "nothing is kept of it");
}

#[test]
fn what_is_missing_is_said_at_once() {
    let machine = Machine::new();
    let mut files = release(&machine, "9.9.9");
    files.remove(ARCHIVE);
    let server = serve(files);
    fails(&install(&machine, &server.url(), &[]), "answers 404");
    assert_eq!(server.times(ARCHIVE), 1, "a 404 is not asked for again");
    fails(&install(&machine, &serve(BTreeMap::new()).url(), &[]), "answers 404");
}

#[test]
fn a_server_that_is_busy_is_asked_again() {
    for tool in ["curl", "wget"] {
        let machine = Machine::new();
        let files = release(&machine, "9.9.9");
        let busy = Mutex::new(true);
        let server = Stub::start(move |asked| {
            let first = std::mem::take(&mut *busy.lock().unwrap());
            if first { Answer::status(503) } else { Answer::body(files[asked.path()].clone()) }
        });
        let path = only(&machine, tool);
        let finished = install(&machine, &server.url(), &[("PATH", path.as_str())]);
        works(&machine, &finished, "9.9.9");
        assert_eq!((server.times(SUM), server.times(ARCHIVE)), (2, 1), "{tool}: {}", said(&finished));
    }
    let machine = Machine::new();
    let path = only(&machine, "true");
    fails(&install(&machine, "http://127.0.0.1:9", &[("PATH", path.as_str())]), "neither curl nor wget is here");
}

/// A PATH on which of the tools that fetch there is this one.
fn only(machine: &Machine, tool: &str) -> String {
    let folder = machine.path("tools");
    std::fs::create_dir_all(&folder).unwrap();
    let needed = [
        "sh",
        "uname",
        "mkdir",
        "mktemp",
        "rm",
        "sleep",
        "cp",
        "cut",
        "head",
        "tr",
        "sha256sum",
        "tar",
        "gzip",
        "mv",
        "chmod",
        "dirname",
    ];
    for name in needed.into_iter().chain([tool]) {
        let program = program(name).unwrap_or_else(|| panic!("{name} is not here"));
        std::os::unix::fs::symlink(program.path().canonicalize().unwrap(), folder.join(name)).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn a_program_on_the_path_is_taken_unless_another_is_wanted() {
    let machine = Machine::new();
    machine.executable("tallyonce", "#!/bin/sh\necho tallyonce 1.2.3\n");
    let path = machine.search_path();
    let finished = install(&machine, "", &[("PATH", &path)]);
    assert_eq!((finished.code, finished.stdout.trim()), (Some(0), machine.path("bin").to_str().unwrap()), "{finished}");
    let server = serve(release(&machine, "9.9.9"));
    works(&machine, &install(&machine, &server.url(), &[("PATH", &path), ("TALLYONCE_VERSION", "9.9.9")]), "9.9.9");
    assert_eq!(install(&machine, "", &[("PATH", &path), ("TALLYONCE_VERSION", "1.2.3")]).code, Some(0));
}

#[test]
fn this_machine_has_a_name() {
    let machine = Machine::new();
    let server = serve(BTreeMap::new());
    let finished = install(&machine, &server.url(), &[("TALLYONCE_TARGET", "")]);
    fails(&finished, "answers 404");
    let asked = server.asked();
    let known =
        ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "x86_64-apple-darwin", "aarch64-apple-darwin"];
    assert!(known.iter().any(|target| asked[0].path() == format!("/tallyonce-{target}.tar.gz.sha256")), "{asked:?}");
    machine.executable("uname", "#!/bin/sh\necho Plan9\n");
    let path = format!("{}:{}", machine.path("bin").display(), system_path());
    fails(
        &install(&machine, &server.url(), &[("TALLYONCE_TARGET", ""), ("PATH", &path)]),
        "there is no build for Plan9",
    );
}

#[test]
fn what_others_may_have_put_there_is_not_used() {
    let machine = Machine::new();
    let server = serve(release(&machine, "9.9.9"));
    // Without a home: a new folder each time.
    let temp = machine.path("temp").display().to_string();
    let homeless = [("TALLYONCE_CACHE", ""), ("HOME", ""), ("XDG_CACHE_HOME", ""), ("RUNNER_TOOL_CACHE", "")];
    let mut places = Vec::new();
    for _ in 0..2 {
        let finished = install(&machine, &server.url(), &[&homeless[..], &[("TMPDIR", &temp)]].concat());
        assert!(finished.code == Some(0) && finished.stdout.starts_with(&temp), "{finished}");
        places.push(finished.stdout);
    }
    assert_ne!(places[0], places[1]);
    // A folder of another user: only root can give one away; others have one in the system's.
    let foreign = machine.path("foreign");
    std::fs::create_dir(&foreign).unwrap();
    let given = std::os::unix::fs::chown(&foreign, Some(12_345), None).is_ok();
    let foreign = if given { foreign.display().to_string() } else { "/usr".to_owned() };
    fails(&install(&machine, &server.url(), &[("TALLYONCE_CACHE", &foreign)]), "belongs to another user");
}
