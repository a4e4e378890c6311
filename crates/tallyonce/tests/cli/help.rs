//! The words of `--help`, completions and manual pages.

use crate::Desk;

#[test]
fn help_of_each_command() {
    let desk = Desk::new();
    insta::assert_snapshot!("help", desk.run(0, &["--help"]).stdout);
    for command in [
        "push",
        "run",
        "flush",
        "key",
        "serve",
        "show",
        "promote",
        "close",
        "wait",
        "check-store",
        "drill",
        "completions",
        "man",
    ] {
        insta::assert_snapshot!(command, desk.run(0, &[command, "--help"]).stdout);
    }
}

#[test]
fn completions_and_pages_come_from_the_same_tree() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(desk.run(0, &["completions", shell]).stdout.contains("on-difference"), "{shell}");
    }
    assert!(desk.run(0, &["man"]).stdout.contains(".TH tallyonce"));
    assert!(desk.run(0, &["man", "push"]).stdout.contains("on\\-difference"));
    desk.run(2, &["man", "pusch"]);
    desk.run(0, &["man", "--dir", "pages"]);
    assert!(desk.exists("pages/tallyonce.1") && desk.exists("pages/tallyonce-push.1"));
}

#[test]
fn help_and_version_end_well() {
    let desk = Desk::new();
    assert!(desk.run(0, &["--version"]).stdout.starts_with("tallyonce "));
    assert!(desk.run(2, &[]).stderr.contains("Usage"));
}
