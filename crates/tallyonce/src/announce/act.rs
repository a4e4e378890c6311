//! Does what rendering asked for: appends, writes, prints, runs a program for a bounded time. Nothing is tried again, and
//! what fails comes back as words. Must not know what is announced.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::render::{Act, PREFIX};
use super::{escape, markdown};
use crate::env::TOKEN;
use crate::output::Output;

/// How long a program of the platform may take, in milliseconds.
const PROGRAM_MS_MAX: u64 = 10_000;
/// How often it is looked whether it has ended, in milliseconds.
const LOOK_MS: u64 = 10;
/// How much of a file of values or links is read, in bytes: they are small, and ours to keep so.
const FILE_MAX: u64 = 1024 * 1024;
/// The section of a report of links that holds ours.
const SECTION: &str = "Tallyonce";

/// Does them in their order. What a program cannot do once, it is not asked for again.
///
/// Gives the words of what failed.
pub(super) fn carry_out(acts: Vec<Act>, output: Output) -> Vec<String> {
    let mut troubles = Vec::new();
    let mut given_up = BTreeSet::new();
    for act in acts {
        let done = match act {
            Act::Append { file, text, bytes_max } => append(&file, &text, bytes_max).map_err(|why| at(&file, &why)),
            Act::Create { file, text } => create(&file, &text).map_err(|why| at(&file, &why.to_string())),
            Act::Merge { file, lines } => merge(&file, &lines).map_err(|why| at(&file, &why)),
            Act::Link { file, label, url } => link(&file, &label, &url).map_err(|why| at(&file, &why)),
            Act::Line(text) => {
                output.command(&text);
                Ok(())
            }
            Act::OutLine(text) => {
                output.result(&format!("{text}\n"));
                Ok(())
            }
            Act::Run { program, .. } if given_up.contains(program) => Ok(()),
            Act::Run { program, arguments, input } => run(program, &arguments, &input).or_else(|trouble| {
                given_up.insert(program);
                match trouble {
                    Trouble::Absent => {
                        output.detail(&format!("{program} is not in PATH: it is not asked to announce anything"));
                        Ok(())
                    }
                    Trouble::Failed(why) => Err(format!("{program}: {why}")),
                }
            }),
        };
        troubles.extend(done.err());
    }
    troubles
}

fn at(file: &Path, why: &str) -> String {
    format!("{}: {why}", file.display())
}

fn append(file: &Path, text: &str, bytes_max: Option<u64>) -> Result<(), String> {
    let mut open = OpenOptions::new().read(true).append(true).create(true).open(file).map_err(|why| why.to_string())?;
    let there = open.seek(SeekFrom::End(0)).map_err(|why| why.to_string())?;
    // Whoever wrote last may have left its line open.
    let joint = if there > 0 && !ends_with_newline(&mut open) { "\n" } else { "" };
    let room = bytes_max.map_or(u64::MAX, |max| max.saturating_sub(there + joint.len() as u64));
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let Some(text) = markdown::fitted(text, room) else {
        return Err(format!("it is full ({there} bytes): nothing more is written into it"));
    };
    open.write_all(format!("{joint}{text}").as_bytes()).map_err(|why| why.to_string())
}

/// True also where it can't be told, as for a pipe.
fn ends_with_newline(file: &mut File) -> bool {
    let mut last = [b'\n'];
    let read = file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last));
    read.is_err() || last == [b'\n']
}

fn create(file: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())
}

/// Lines of others stay; ours of an earlier push are replaced.
fn merge(file: &Path, lines: &[String]) -> Result<(), String> {
    let there = read(file)?;
    let others = there.lines().filter(|line| !line.starts_with(PREFIX) && !line.is_empty());
    let text: String = others.chain(lines.iter().map(String::as_str)).flat_map(|line| [line, "\n"]).collect();
    std::fs::write(file, text).map_err(|why| why.to_string())
}

/// Adds to our section of a report of links, and leaves the others as they are.
fn link(file: &Path, label: &str, url: &str) -> Result<(), String> {
    let there = read(file)?;
    let mut report: Map<String, Value> = match there.trim() {
        "" => Map::new(),
        text => serde_json::from_str(text).map_err(|why| format!("it is no JSON object, and is left alone ({why})"))?,
    };
    let section = report.entry(SECTION).or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(links) = section else {
        return Err(format!("its {SECTION:?} is no list, and is left alone"));
    };
    links.push(json!({"external_link": {"label": label, "url": url}}));
    let text = Value::Object(report).to_string();
    std::fs::write(file, text + "\n").map_err(|why| why.to_string())
}

/// A file that need not be there.
fn read(file: &Path) -> Result<String, String> {
    let open = match File::open(file) {
        Ok(open) => open,
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(why) => return Err(why.to_string()),
    };
    let mut text = String::new();
    let read = open.take(FILE_MAX + 1).read_to_string(&mut text).map_err(|why| why.to_string())?;
    if read as u64 > FILE_MAX {
        return Err(format!("it holds more than {FILE_MAX} bytes, and is left alone"));
    }
    Ok(text)
}

/// Why a program did nothing.
enum Trouble {
    /// There is none.
    Absent,
    /// It failed, in these words.
    Failed(String),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Absent,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Runs it to its end, or to the end of its time. It hears its input from a file and answers into one, so that nobody waits
/// for a pipe; it never gets our token.
fn run(program: &str, arguments: &[String], input: &str) -> Result<(), Trouble> {
    let mut said = tempfile::tempfile().map_err(failed)?;
    let mut heard = tempfile::tempfile().map_err(failed)?;
    heard.write_all(input.as_bytes()).and_then(|()| heard.rewind()).map_err(failed)?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove(TOKEN)
        .stdin(heard)
        .stdout(Stdio::null())
        .stderr(said.try_clone().map_err(failed)?)
        .spawn()?;
    for _ in 0..PROGRAM_MS_MAX / LOOK_MS {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(Trouble::Failed(format!("it ended with {status}{}", words(&mut said)))),
            None => std::thread::sleep(Duration::from_millis(LOOK_MS)),
        }
    }
    // It may end by itself just now.
    let _ = child.kill();
    let _ = child.wait();
    Err(Trouble::Failed(format!("it takes longer than {} seconds, and is ended", PROGRAM_MS_MAX / 1000)))
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn failed(error: std::io::Error) -> Trouble {
    Trouble::Failed(error.to_string())
}

/// The head of what it said.
fn words(said: &mut File) -> String {
    let mut bytes = Vec::new();
    let read = said.rewind().and_then(|()| said.take(1000).read_to_end(&mut bytes));
    let text = escape::shortened(&escape::line(&String::from_utf8_lossy(&bytes)), 300);
    if read.is_err() || text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quiet() -> Output {
        Output::new(true, 0, true)
    }

    fn append_act(file: &Path, text: &str, bytes_max: Option<u64>) -> Vec<String> {
        carry_out(vec![Act::Append { file: file.to_owned(), text: text.to_owned(), bytes_max }], quiet())
    }

    #[test]
    fn what_is_appended_begins_on_a_line_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summary.md");
        std::fs::write(&file, "theirs").unwrap();
        assert!(append_act(&file, "ours\n", None).is_empty());
        assert!(append_act(&file, "ours too\n", None).is_empty());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs\nours\nours too\n");
    }

    #[test]
    fn a_full_file_is_left_alone_and_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("summary.md");
        let text = "a line\n".repeat(100);
        assert!(append_act(&file, &text, Some(300)).is_empty());
        let there = std::fs::read_to_string(&file).unwrap();
        assert!(there.len() <= 300 && there.contains("cut here"), "{there}");
        let troubles = append_act(&file, &text, Some(300));
        assert!(troubles[0].contains("full"), "{troubles:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), there);
    }

    #[test]
    fn values_of_others_stay_and_ours_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("outputs.env");
        std::fs::write(&file, "THEIRS=1\nTALLYONCE_PUSH_STATE=recorded").unwrap();
        let lines = vec!["TALLYONCE_PUSH_STATE=replayed".to_owned()];
        assert!(carry_out(vec![Act::Merge { file: file.clone(), lines }], quiet()).is_empty());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "THEIRS=1\nTALLYONCE_PUSH_STATE=replayed\n");
    }

    #[test]
    fn links_are_added_to_a_report_of_links() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("links.json");
        let add = || {
            let (label, url) = ("Tallyonce: recorded".to_owned(), "https://t.example/x".to_owned());
            carry_out(vec![Act::Link { file: file.clone(), label, url }], quiet())
        };
        std::fs::write(&file, r#"{"theirs": [{"external_link": {"label": "l", "url": "https://o.example"}}]}"#)
            .unwrap();
        assert!(add().is_empty() && add().is_empty());
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(report["theirs"].as_array().unwrap().len(), 1);
        assert_eq!(report["Tallyonce"][1]["external_link"]["url"], "https://t.example/x");
        for broken in ["[1]", "{\"Tallyonce\": 1}", "x"] {
            std::fs::write(&file, broken).unwrap();
            assert!(add()[0].contains("left alone"), "{broken}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_said_once_and_the_rest_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("there.md");
        let append = |file: &Path| Act::Append { file: file.to_owned(), text: "x\n".into(), bytes_max: None };
        let troubles = carry_out(vec![append(&folder.path().join("no/where.md")), append(&file)], quiet());
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert!(file.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_program_that_fails_is_said_with_its_words_and_not_asked_again() {
        let ask =
            |script: &str| Act::Run { program: "sh", arguments: vec!["-c".into(), script.into()], input: "in".into() };
        assert!(carry_out(vec![ask("test \"$(cat)\" = in && test -z \"$TALLYONCE_TOKEN\"")], quiet()).is_empty());
        let troubles = carry_out(vec![ask("echo no such build >&2; exit 3"), ask("exit 4")], quiet());
        assert_eq!(troubles.len(), 1, "{troubles:?}");
        assert!(troubles[0].contains("no such build") && troubles[0].contains('3'), "{troubles:?}");
        let absent = Act::Run { program: "no-such-program-anywhere", arguments: Vec::new(), input: String::new() };
        assert!(carry_out(vec![absent], quiet()).is_empty());
    }
}
