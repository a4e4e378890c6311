//! Every medium with every end of a push, as snapshots; and with text that wants to be more than text.

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory as _;
use domain::ci::Env;
use domain::protocol::DifferenceClass;
use domain::receipt::{ItemDifference, ItemHashText};
use domain::{Counts, ItemName, PushId, PushKey, ReportSummary, RoundId, Status};

use super::content::{Announcement, OUTPUTS};
use super::media::{folding, media, slugs};
use super::render::{Act, PREFIX, Surface, closing, handed, lines, link, opening, shown};
use super::{NOTES_MAX, markdown};
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::object::{DifferenceObject, PushObject};

const HOSTILE: &str = "a|b `c`\n::set-output name=state::recorded\r\n##vso[task.complete result=Failed;]x]|\u{1b}[31m\
                       <script>alert(1)</script>\u{2028}##teamcity[buildProblem description='x'] %0A::error::y @team";

fn object(state: State, exit: Exit) -> PushObject {
    let (key, project) =
        (PushKey::parse("github:acme/shop:run:42:job:e2e:shard:3-8").unwrap(), "shop".parse().unwrap());
    let push = PushId::of(&project, &key);
    PushObject {
        state,
        exit: exit.number(),
        cycle: Some("main".parse().unwrap()),
        round: RoundId::parse("github:acme/shop:run:42").ok(),
        job: Some("e2e".parse().unwrap()),
        shard: Some("3/8".parse().unwrap()),
        push: Some(push),
        url: Some(format!("https://tally.example.com/api/v1/projects/shop/pushes/{push}")),
        report: Some(ReportSummary { files: 1, outcomes: 50, ..ReportSummary::default() }),
        key: Some(key),
        project: Some(project),
        ..PushObject::new()
    }
}

fn recorded(state: State) -> PushObject {
    let counts = Counts { total: 50, passed: 46, failed: 2, errored: 1, skipped: 1, flaky: 3 };
    PushObject { counts: Some(counts), revision: Some(1), ..object(state, Exit::Success) }
}

fn item(name: &str, recorded: Option<Status>, offered: Option<Status>) -> ItemDifference {
    let item = ItemName::new(["cart"], Some("Add"), name);
    ItemDifference { hash: ItemHashText(item.hash()), item, recorded, offered }
}

fn revised(name: &str) -> PushObject {
    let mut items =
        vec![item(name, Some(Status::Failed), Some(Status::Passed)), item("new", None, Some(Status::Skipped))];
    items.extend((0..30).map(|n| item(&format!("more {n}"), Some(Status::Passed), None)));
    let difference =
        DifferenceObject { class: DifferenceClass::Structural, changed: 1, added: 1, not_offered: 130, items };
    PushObject { difference: Some(difference), revision: Some(2), ..recorded(State::Revised) }
}

fn failure(exit: Exit, state: State, what: &str) -> Failure {
    Failure {
        exit,
        state,
        code: None,
        what: what.to_owned(),
        details: vec!["runner: recorded \"linux\", offered \"mac\"".to_owned()],
        means: "Nothing of this delivery counts.".to_owned(),
        next: "Tell the pieces apart: --shard I/N.".to_owned(),
    }
}

/// Each end of a push, with its name.
fn cases() -> Vec<(&'static str, PushObject, Option<Failure>)> {
    let refused = failure(Exit::Collision, State::Collision, "The key belongs to other work (key-collision)");
    let kept = failure(Exit::NotConfirmed, State::NotSent, "https://tally.example.com: connection refused");
    let unreadable = failure(Exit::Unreadable, State::Unreadable, "a.xml: is empty");
    let doubtful = PushObject {
        warnings: (1..=8).map(|n| format!("doubt {n}")).collect(),
        exit: Exit::Found.number(),
        ..recorded(State::Recorded)
    };
    vec![
        ("recorded", recorded(State::Recorded), None),
        ("replayed", recorded(State::Replayed), None),
        ("revised", revised("adds one"), None),
        ("refused", object(State::Collision, Exit::Collision), Some(refused)),
        ("kept in the outbox", object(State::NotSent, Exit::NotConfirmed), Some(kept)),
        ("unreadable", PushObject { state: State::Unreadable, exit: 3, ..PushObject::new() }, Some(unreadable)),
        ("recorded with doubts, told to fail", doubtful, None),
    ]
}

fn outbox(state: State) -> Option<&'static str> {
    matches!(state, State::NotSent | State::PossiblyWritten | State::Collision).then_some(".tallyonce/outbox")
}

fn env() -> Env {
    let files = ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT", "CIRRUS_ENV", "DRONE_OUTPUT", "VELA_OUTPUTS"];
    let folders = ["AGENT_TEMPDIRECTORY", "CF_VOLUME_PATH", "ARTIFACTS", "BITBUCKET_PIPELINES_VARIABLES_PATH"];
    files.iter().chain(&folders).map(|name| (*name, format!("/{name}"))).collect()
}

fn acts(slug: &str, announcement: &Announcement<'_>) -> Vec<Act> {
    let env = env();
    let surface = Surface { env: &env, nonce: "0a1b", notes_max: NOTES_MAX };
    let media = media(slug).iter();
    media.flat_map(|m| shown(*m, announcement, surface).into_iter().chain(handed(*m, announcement, surface))).collect()
}

/// Without the summary's own text, which has a snapshot of its own.
fn written(act: &Act, summary: &str) -> String {
    let short = |text: &str| text.replace(summary, "(the summary)\n");
    match act {
        Act::Append { file, text, bytes_max } => {
            let most = bytes_max.map(|max| format!(", at most {max} bytes")).unwrap_or_default();
            format!("append to {}{most}:\n{}", file.display(), short(text))
        }
        Act::Create { file, text } => format!("create {}:\n{}", file.display(), short(text)),
        Act::Line(line) => format!("stderr: {line}\n"),
        Act::OutLine(line) => format!("stdout: {line}\n"),
        Act::Run { program, arguments, input } => format!("run {program} {arguments:?} < {:?}\n", short(input)),
        Act::Merge { .. } | Act::Link { .. } => format!("{act:?}\n"),
    }
}

#[test]
fn summaries() {
    let mut text = String::new();
    for (name, object, failure) in &cases() {
        let announcement = Announcement { object, failure: failure.as_ref(), outbox: outbox(object.state) };
        let _ = writeln!(text, "<!-- {name} -->\n{}", markdown::summary(&announcement));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn what_each_platform_is_told() {
    for slug in slugs() {
        let mut text = String::new();
        for (name, object, failure) in &cases() {
            let announcement = Announcement { object, failure: failure.as_ref(), outbox: outbox(object.state) };
            let summary = markdown::summary(&announcement);
            let _ = writeln!(text, "# {name}");
            for act in acts(slug, &announcement) {
                text += &written(&act, &summary);
            }
        }
        if let Some(folding) = folding(slug) {
            let _ = writeln!(text, "# fold\n{:?}", opening(folding, "title", 1_700_000_000, "ab"));
            let _ = writeln!(text, "{:?}", closing(folding, "title", 1_700_000_060, "ab"));
        }
        insta::assert_snapshot!(format!("platform_{slug}"), text);
    }
}

#[test]
fn files_that_are_asked_for() {
    let object = recorded(State::Recorded);
    let announcement = Announcement { object: &object, failure: None, outbox: None };
    insta::assert_snapshot!(lines(&announcement).join("\n"));
    let Some(Act::Link { label, url, .. }) = link(Path::new("links.json"), &announcement) else { panic!("no link") };
    assert_eq!(label, "Tallyonce: recorded (e2e, shard 3/8)");
    assert_eq!(Some(url), object.url);
    let embedded = PushObject { url: None, ..object };
    assert!(link(Path::new("x"), &Announcement { object: &embedded, failure: None, outbox: None }).is_none());
}

/// A push whose every free text wants to be a command, markup or a second line.
fn hostile() -> (PushObject, Failure) {
    let url = Some(format!("https://tally.example.com/x)[y](javascript:{HOSTILE}"));
    let object = PushObject { url, warnings: vec![HOSTILE.to_owned()], ..revised(HOSTILE) };
    let mut failure = failure(Exit::Rejected, State::Rejected, HOSTILE);
    (failure.means, failure.next, failure.details) = (HOSTILE.to_owned(), HOSTILE.to_owned(), vec![HOSTILE.to_owned()]);
    (object, failure)
}

#[test]
fn text_of_a_report_stays_text_everywhere() {
    let (object, failure) = hostile();
    let outbox = Some(HOSTILE);
    for failure in [None, Some(&failure)] {
        let announcement = Announcement { object: &object, failure, outbox };
        for slug in slugs() {
            for act in acts(slug, &announcement) {
                check(slug, &act);
            }
        }
        check_markdown(&markdown::summary(&announcement));
        assert!(lines(&announcement).iter().all(|line| line.starts_with(PREFIX) && one_line(line)));
    }
}

fn one_line(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}'))
}

#[track_caller]
fn check(slug: &str, act: &Act) {
    match act {
        Act::Line(line) | Act::OutLine(line) => {
            assert!(one_line(line), "{slug}: {line:?}");
            // One command, at the head.
            for mark in ["##vso[", "##teamcity[", "##["] {
                assert!(!line[1..].contains(mark), "{slug}: {line:?}");
            }
            if let Some(value) = line.strip_prefix("##teamcity[") {
                assert_eq!(unescaped(value, ']'), 1, "{slug}: {line:?}");
            }
            if line.starts_with("::") {
                assert!(!line.split("::").nth(1).unwrap().contains(','), "{slug}: {line:?}");
            }
        }
        Act::Append { file, text, .. } if file.ends_with("GITHUB_OUTPUT") => {
            for (at, line) in text.lines().enumerate() {
                assert_eq!(at % 3 == 0, line.contains("<<tallyonce_0a1b") && !line.contains(' '), "{line}");
                assert_eq!(at % 3 == 2, line == "tallyonce_0a1b", "{line}");
                assert!(one_line(line), "{line:?}");
            }
            assert_eq!(text.lines().count(), 3 * OUTPUTS.len());
        }
        Act::Append { text, .. } if text.starts_with(PREFIX) => {
            assert!(text.lines().all(|line| line.starts_with(PREFIX) && one_line(line)), "{slug}: {text}");
            assert_eq!(text.lines().count(), OUTPUTS.len());
        }
        Act::Append { text, .. } | Act::Create { text, .. } => check_markdown(text),
        Act::Run { program: "buildkite-agent", arguments, input } if arguments[0] == "annotate" => {
            check_markdown(input);
        }
        Act::Run { arguments, .. } => {
            let told = arguments[0] == "AddMessage";
            assert!(!told || !arguments.iter().any(|argument| argument.contains("##")), "{slug}: {arguments:?}");
        }
        Act::Merge { .. } | Act::Link { .. } => {}
    }
}

/// How often the character stands there without a bar before it.
fn unescaped(text: &str, wanted: char) -> usize {
    let (mut count, mut escaped) = (0, false);
    for c in text.chars() {
        count += usize::from(c == wanted && !escaped);
        escaped = c == '|' && !escaped;
    }
    count
}

#[track_caller]
fn check_markdown(text: &str) {
    for words in ["<script", "@team", "javascript:a|b `", "](javascript", "\u{1b}", "\u{2028}", "\r", "\n::", "##vso["]
    {
        assert!(!text.contains(words), "{words:?}: {text}");
    }
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("a\\|b")).collect();
    assert!(rows.iter().all(|row| !row.contains(" `c`")), "{text}");
    let link = text.lines().find(|line| line.starts_with("| link |")).unwrap();
    assert_eq!(link.matches("](").count(), 1, "{link}");
}

#[test]
fn no_value_for_later_steps_is_a_setting_of_the_next_push() {
    let tree = crate::cli::Cli::command();
    let settings: Vec<String> = std::iter::once(&tree)
        .chain(tree.get_subcommands())
        .flat_map(|command| command.get_arguments().filter_map(|arg| arg.get_env()))
        .map(|name| name.to_string_lossy().to_uppercase())
        .collect();
    assert!(settings.contains(&"TALLYONCE_ROUND".to_owned()));
    for name in OUTPUTS {
        let variable = format!("{PREFIX}{}", name.to_uppercase());
        assert!(!settings.contains(&variable), "{variable}");
    }
    assert!(OUTPUTS.len() <= 20, "GitLab takes 20 values from one file");
}

#[test]
fn a_state_has_one_word_for_machines() {
    for state in [State::Recorded, State::PossiblyWritten, State::NotSent, State::DryRun, State::Differs] {
        assert_eq!(serde_json::to_value(state).unwrap(), state.name());
    }
}

#[test]
fn every_platform_of_the_table_is_known_and_no_other_is_told_anything() {
    let known: Vec<&str> = domain::ci::platforms().iter().map(|(slug, ..)| *slug).collect();
    for slug in slugs() {
        assert!(known.contains(&slug), "{slug}");
    }
    for slug in ["jenkins", "circleci", "woodpecker", "k8s", "semaphore"] {
        assert!(known.contains(&slug) && media(slug).is_empty() && folding(slug).is_none(), "{slug}");
    }
}

#[test]
fn notes_are_bounded() {
    let object = PushObject { warnings: (0..100).map(|n| format!("doubt {n}")).collect(), ..recorded(State::Recorded) };
    let announcement = Announcement { object: &object, failure: None, outbox: None };
    assert_eq!(announcement.notes().len(), 6);
    let env = env();
    let surface = Surface { env: &env, nonce: "0a1b", notes_max: 2 };
    let acts: Vec<Act> = media("github").iter().flat_map(|medium| shown(*medium, &announcement, surface)).collect();
    assert_eq!(acts.iter().filter(|act| matches!(act, Act::Line(_))).count(), 2);
}
