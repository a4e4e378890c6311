//! Real processes: clean environment, captured output, time-outs, servers killed and started again.
//! `/bin/sh` plays the program.

use std::time::Duration;

use proof::spawn::{Binary, Run, Server, github_env, gitlab_env};

const LONG: Duration = Duration::from_secs(30);

fn shell(script: &str) -> anyhow::Result<Run> {
    Ok(Run::new(&Binary::at("/bin/sh")?).args(["-c", script]))
}

#[test]
fn output_code_and_input_are_captured() -> anyhow::Result<()> {
    let done = shell("cat; echo loud >&2; exit 75")?.input("quiet").output()?.expect_code(75)?;
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("quiet", "loud\n"));
    let error = shell("echo why >&2; exit 3")?.output()?.expect_code(0).expect_err("it exits 3").to_string();
    assert!(error.contains("exit 3") && error.contains("why"), "{error}");
    // More than a pipe holds.
    assert_eq!(shell("head -c 300000 /dev/zero")?.output()?.stdout.len(), 300_000);
    Ok(())
}

#[test]
fn nothing_of_the_ci_is_inherited() -> anyhow::Result<()> {
    let done = shell("env")?.env("A", "1").envs(vec![("A".into(), "2".into())]).output()?.expect_code(0)?;
    let names: Vec<&str> = done.stdout.lines().filter_map(|line| line.split('=').next()).collect();
    // What a shell sets by itself is allowed.
    let known = ["PATH", "HOME", "TMPDIR", "A", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    assert!(done.stdout.contains("A=2\n"), "the later one wins");
    Ok(())
}

#[test]
fn a_time_out_kills_the_whole_group() -> anyhow::Result<()> {
    let done = shell("sleep 600 & sleep 600")?.timeout(Duration::from_millis(50)).output()?;
    assert!(done.timed_out && !done.was_killed());
    assert_eq!(done.signal, Some(9));
    let running = shell("echo up >&2; sleep 600")?.start()?;
    let up = running.find_in_stderr(LONG, |text| text.contains("up").then_some(()));
    assert_eq!(up, Some(()));
    assert!(!running.ended(Duration::from_millis(1)));
    running.kill9_all();
    assert!(running.ended(LONG));
    assert!(running.wait(LONG)?.was_killed());
    Ok(())
}

#[test]
fn a_process_that_was_paused_does_nothing_more() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("written");
    let running = shell("while :; do echo x >>written; done")?.folder(folder.path()).start()?;
    let written = || std::fs::metadata(&file).map(|file| file.len()).unwrap_or_default();
    let mut before = 0;
    for _ in 0..200 {
        running.pause();
        let stood = written();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(written(), stood, "it went on");
        before = before.max(stood);
        running.resume();
        std::thread::sleep(Duration::from_millis(1));
    }
    running.pause();
    assert!(written() > before && before > 0, "it goes on when it is resumed");
    Ok(())
}

/// A stand-in for `serve`.
fn stand_in() -> anyhow::Result<Binary> {
    Binary::at(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/stand-in.sh"))
}

#[test]
fn a_server_is_found_killed_and_started_where_it_was() -> anyhow::Result<()> {
    let binary = stand_in()?;
    let armed = [proof::kill::kill_at("k4:2")];
    let mut server = Server::start(&binary, "sqlite:x.db", &armed, &["--more"])?;
    assert_eq!(server.url(), "http://127.0.0.1:4711");
    assert!(server.log().contains("args serve --store sqlite:x.db --more --listen 127.0.0.1:0, kill at <k4:2>"));
    assert!(server.kill9()?.was_killed());
    assert!(server.kill9().is_err(), "it is gone");
    server.restart_with(&[proof::kill::kill_nowhere()])?;
    assert!(server.log().contains("--listen 127.0.0.1:4711, kill at <>"), "{}", server.log());
    assert_eq!(server.stop(LONG)?.signal, Some(15));
    server.restart()?;
    assert!(server.process().is_some());
    Ok(())
}

#[test]
fn a_server_that_ends_early_says_why() -> anyhow::Result<()> {
    let why = ("FAIL".to_owned(), "the store is newer than this binary".to_owned());
    let error = Server::start::<&str>(&stand_in()?, "sqlite:x.db", &[why], &[]).expect_err("it exits").to_string();
    assert!(error.contains("exit 2") && error.contains("newer than this binary"), "{error}");
    Ok(())
}

#[test]
fn made_up_jobs_differ_where_real_ones_do() {
    let value = |env: &[(String, String)], name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let (one, again) = (github_env(42, 1, "e2e", "r1"), github_env(42, 2, "e2e", "r2"));
    for same in ["GITHUB_RUN_ID", "GITHUB_JOB", "GITHUB_SHA", "GITHUB_REPOSITORY"] {
        assert_eq!(value(&one, same), value(&again, same), "{same}");
        assert!(value(&one, same).is_some(), "{same}");
    }
    for other in ["GITHUB_RUN_ATTEMPT", "RUNNER_NAME", "RUNNER_TRACKING_ID"] {
        assert_ne!(value(&one, other), value(&again, other), "{other}");
    }
    let (one, again) = (gitlab_env(9, 100, "rspec 1/3", Some((1, 3))), gitlab_env(9, 101, "rspec 1/3", Some((1, 3))));
    assert_eq!(value(&one, "CI_NODE_INDEX"), Some("1".into()));
    assert_eq!(value(&one, "CI_PIPELINE_ID"), value(&again, "CI_PIPELINE_ID"));
    assert_ne!(value(&one, "CI_JOB_ID"), value(&again, "CI_JOB_ID"));
    assert_eq!(value(&gitlab_env(9, 100, "lint", None), "CI_NODE_INDEX"), None);
    assert_eq!(value(&one, "CI_COMMIT_SHA").map(|sha| sha.len()), Some(40));
}

#[test]
fn a_missing_binary_is_said() {
    assert!(Binary::at("/nowhere/tallyonce").is_err());
    let error = Binary::locate("no-such-binary").expect_err("it is not there").to_string();
    assert!(error.contains("build it first"), "{error}");
}
