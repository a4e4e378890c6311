//! `packages/push.sh` by itself: which installer it runs and with what, and which settings it refuses.

use std::path::PathBuf;

use proof::spawn::Finished;

use crate::{Machine, file_of, pairs, program, root, said, system_path};

fn push(machine: &Machine, settings: &[(&str, &str)]) -> Finished {
    let script = root().join("packages/push.sh");
    machine.shell("sh", &[script.to_str().unwrap()], &pairs(settings)).output().unwrap()
}

/// A folder to install from, with this `install.sh`.
fn release(machine: &Machine, install: &str) -> String {
    machine.file("release/install.sh", install);
    machine.path("release").display().to_string()
}

#[test]
fn only_the_installer_of_its_own_release_is_run() {
    let machine = Machine::new();
    let own = file_of("packages/install.sh");
    let folder = release(&machine, &format!("{own}touch pwned\n"));
    let path = system_path();
    let settings = [("PATH", path.as_str()), ("TALLYONCE_DOWNLOAD", &folder), ("TALLYONCE_CI_TOKEN", "s3cret-s3cret")];
    let ended = push(&machine, &settings);
    assert!(ended.code == Some(2) && said(&ended).contains("the same release"), "{ended}");
    assert!(!machine.path("workspace/pwned").exists(), "{ended}");
    // Its own is run: it finds no archive.
    release(&machine, &own);
    let ended = push(&machine, &settings);
    assert!(ended.code == Some(2) && said(&ended).contains("tallyonce install: "), "{ended}");
}

#[test]
fn without_a_program_that_computes_digests_a_pinned_one_is_refused() {
    let machine = Machine::new();
    let folder = release(&machine, &file_of("packages/install.sh"));
    let tools = machine.path("tools");
    std::fs::create_dir(&tools).unwrap();
    for name in ["sh", "env", "mktemp", "cp", "rm", "uname", "mkdir"] {
        let at: PathBuf = program(name).unwrap().path().canonicalize().unwrap();
        std::os::unix::fs::symlink(at, tools.join(name)).unwrap();
    }
    let path = tools.display().to_string();
    let settings = [("PATH", path.as_str()), ("TALLYONCE_DOWNLOAD", &folder)];
    let ended = push(&machine, &settings);
    assert!(said(&ended).contains("is run unchecked") && said(&ended).contains("tallyonce install: "), "{ended}");
    let pin = "0".repeat(64);
    let ended = push(&machine, &[&settings[..], &[("TALLYONCE_CI_SHA256", &pin)]].concat());
    assert!(ended.code == Some(2) && said(&ended).contains("TALLYONCE_SHA256 is set"), "{ended}");
    assert!(!said(&ended).contains("tallyonce install: "), "{ended}");
}

#[test]
fn the_installer_gets_no_token() {
    let machine = Machine::new();
    machine.file("install.sh", "env >seen.txt\nexit 2\n");
    let install = machine.path("install.sh").display().to_string();
    let path = system_path();
    let settings =
        [("PATH", path.as_str()), ("TALLYONCE_CI_INSTALL", &install), ("TALLYONCE_CI_TOKEN", "s3cret-s3cret")];
    let ended = push(&machine, &settings);
    let seen = std::fs::read_to_string(machine.path("workspace/seen.txt")).unwrap();
    assert!(ended.code == Some(2) && !seen.contains("s3cret-s3cret"), "{ended}");
}

#[test]
fn a_variable_that_nobody_replaced_is_no_part_of_a_key() {
    let machine = Machine::new();
    machine.executable("tallyonce", "#!/bin/sh\necho \"$@\" >>told.txt\nenv >>told.txt\n");
    let path = machine.search_path();
    let push = |name: &str, value: &str| push(&machine, &[("PATH", &path), ("TALLYONCE_CI_DO", "key"), (name, value)]);
    for part in ["RUN", "JOB", "VARIANT", "ROUND", "CYCLE", "SHARD", "ATTEMPT"] {
        for value in ["$PARENT", "release-$(X)", "a ${X}", "$(A)-$(B)"] {
            for name in [format!("TALLYONCE_CI_{part}"), format!("TALLYONCE_{part}")] {
                let ended = push(&name, value);
                assert!(ended.code == Some(2) && said(&ended).contains("nothing was sent"), "{name}={value}: {ended}");
                assert!(said(&ended).contains(&format!("the setting {part} ")), "{ended}");
            }
        }
        let ended = push(&format!("TALLYONCE_CI_{part}"), "$(Not.There)");
        let warned = said(&ended).contains("goes on without it");
        assert_eq!((ended.code, warned), (Some(0), part == "SHARD"), "{part}: {ended}");
    }
    assert!(!std::fs::read_to_string(machine.path("workspace/told.txt")).unwrap().contains("Not.There"));
    for (name, value) in [("TALLYONCE_CI_JOB", "costs 5$"), ("TALLYONCE_CI_JOB", "$5"), ("TALLYONCE_CI_TO", "$X")] {
        assert_eq!(push(name, value).code, Some(0), "{name}={value}");
    }
}
