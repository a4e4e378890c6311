//! From an announcement and a medium to what has to be done: lines, files and commands as values. Pure: it reads nothing and
//! does nothing. Must not know platforms beyond their media.

use std::path::{Path, PathBuf};

use domain::PushKey;
use domain::ci::Env;

use super::content::{Announcement, Level, Mood, Note};
use super::media::{Folding, Medium, Place};
use super::{escape, markdown};

/// Names of values outside GitHub begin with this. Not with `TALLYONCE_` alone: later steps get them as variables, and
/// `TALLYONCE_ROUND` is a flag of the next push.
pub(crate) const PREFIX: &str = "TALLYONCE_PUSH_";
/// The same where names are paths.
const PATH_PREFIX: &str = "tallyonce.push.";
/// What Buildkite keeps of an annotation, in bytes.
const ANNOTATION_MAX: usize = 1024 * 1024;
/// How many characters of a message `AppVeyor` is given as its first line.
const MESSAGE_MAX: usize = 300;

/// One thing to do. None of them is repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Append to a file that platform and other programs write too.
    Append {
        /// The file.
        file: PathBuf,
        /// What is appended.
        text: String,
        /// How many bytes the file may hold, if there is a bound: the text is cut to what is left.
        bytes_max: Option<u64>,
    },
    /// Write a file of its own.
    Create {
        /// The file; it is not there yet.
        file: PathBuf,
        /// What it holds.
        text: String,
    },
    /// Write values, in place of those that an earlier push of the job left there.
    Merge {
        /// The file.
        file: PathBuf,
        /// `NAME=value` lines.
        lines: Vec<String>,
    },
    /// Add a link to a report of links.
    Link {
        /// The file.
        file: PathBuf,
        /// What the link is called.
        label: String,
        /// Where it leads.
        url: String,
    },
    /// A command to the runner on standard error.
    Line(String),
    /// A command to the runner that reads standard output alone.
    OutLine(String),
    /// A program of the platform.
    Run {
        /// Its name, looked for in `PATH`.
        program: &'static str,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its standard input.
        input: String,
    },
}

/// What rendering needs beside the announcement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surface<'a> {
    /// Where the platform says which files it reads.
    pub env: &'a Env,
    /// A text that nobody can guess, for delimiters and names of files.
    pub nonce: &'a str,
    /// How many notes may still be shown by themselves.
    pub notes_max: usize,
}

/// What has to be done for one push in one medium, without the values for later steps.
pub(super) fn shown(medium: Medium, announcement: &Announcement<'_>, surface: Surface<'_>) -> Vec<Act> {
    let notes = || announcement.notes().into_iter().take(surface.notes_max);
    match medium {
        Medium::SummaryFile(place, bytes_max) => {
            let file = path(place, surface.env);
            let text = markdown::summary(announcement);
            file.map(|file| Act::Append { file, text, bytes_max: Some(bytes_max) }).into_iter().collect()
        }
        Medium::UploadedSummary(folder) => {
            let folder = surface.env.get(folder).map(PathBuf::from);
            folder.map(|folder| uploaded(&folder, announcement, surface.nonce)).unwrap_or_default()
        }
        Medium::Annotation => annotation(announcement, surface.nonce).into_iter().collect(),
        Medium::WorkflowCommands => notes().map(|note| Act::Line(workflow_command(&note))).collect(),
        Medium::LogIssues => notes().filter_map(|note| log_issue(&note)).map(Act::Line).collect(),
        Medium::ServiceMessages => notes().map(|note| Act::OutLine(service_message(&note))).collect(),
        Medium::BuildMessages => notes().map(|note| build_message(&note)).collect(),
        _ => Vec::new(),
    }
}

/// What has to be done in one medium to hand the values to later steps.
pub(super) fn handed(medium: Medium, announcement: &Announcement<'_>, surface: Surface<'_>) -> Vec<Act> {
    let values = announcement.outputs();
    let key = announcement.object.key.as_ref();
    match medium {
        Medium::DelimitedOutputs(place) => {
            let text = values.iter().map(|(name, value)| delimited(name, value, surface.nonce)).collect();
            let file = path(place, surface.env);
            file.map(|file| Act::Append { file, text, bytes_max: None }).into_iter().collect()
        }
        Medium::OutputLines(place) => {
            let text = lines(announcement).into_iter().map(|line| line + "\n").collect();
            let file = path(place, surface.env);
            file.map(|file| Act::Append { file, text, bytes_max: None }).into_iter().collect()
        }
        Medium::OutputVariables => values.iter().map(|(name, value)| Act::Line(output_variable(name, value))).collect(),
        Medium::Parameters => values.iter().map(|(name, value)| Act::OutLine(parameter(name, value))).collect(),
        Medium::MetaData => meta_data(key, &values).into_iter().collect(),
        Medium::BuildVariables => values
            .iter()
            .map(|(name, value)| run("appveyor", ["SetVariable", "-Name", &variable(name), "-Value", value], ""))
            .collect(),
        // The value on standard input: as an argument, nothing would stand for an empty one.
        Medium::Envman => {
            values.iter().map(|(name, value)| run("envman", ["add", "--key", &variable(name)], value)).collect()
        }
        Medium::Meta => values
            .iter()
            .map(|(name, value)| run("meta", ["set", &format!("{PATH_PREFIX}{name}"), value], ""))
            .collect(),
        _ => Vec::new(),
    }
}

/// The values as `NAME=value` lines.
pub(super) fn lines(announcement: &Announcement<'_>) -> Vec<String> {
    announcement.outputs().iter().map(|(name, value)| format!("{}={value}", variable(name))).collect()
}

/// The link to what is recorded, for a report of links; nothing where there is no page.
pub(super) fn link(file: &Path, announcement: &Announcement<'_>) -> Option<Act> {
    let object = announcement.object;
    let of = [object.job.as_ref().map(ToString::to_string), object.shard.as_ref().map(|s| format!("shard {s}"))];
    let of: Vec<String> = of.into_iter().flatten().collect();
    let of = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
    let label = escape::shortened(&escape::line(&format!("Tallyonce: {}{of}", object.state.word())), 200);
    Some(Act::Link { file: file.to_owned(), label, url: object.url.clone()? })
}

fn path(place: Place, env: &Env) -> Option<PathBuf> {
    match place {
        Place::Named(variable) => env.get(variable).map(PathBuf::from),
        Place::In(variable, name) => env.get(variable).map(|folder| Path::new(folder).join(name)),
    }
}

fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_uppercase())
}

fn run<'a>(program: &'static str, arguments: impl IntoIterator<Item = &'a str>, input: &str) -> Act {
    let arguments = arguments.into_iter().map(ToOwned::to_owned).collect();
    Act::Run { program, arguments, input: input.to_owned() }
}

fn uploaded(folder: &Path, announcement: &Announcement<'_>, nonce: &str) -> Vec<Act> {
    let file = folder.join(format!("tallyonce-{nonce}.md"));
    let command = format!("##vso[task.uploadsummary]{}", escape::vso_data(&file.display().to_string()));
    vec![Act::Create { file, text: markdown::summary(announcement) }, Act::Line(command)]
}

/// The same push again replaces its annotation; another push has another one, and so has what is no push yet.
fn annotation(announcement: &Announcement<'_>, nonce: &str) -> Option<Act> {
    let style = match announcement.mood() {
        Mood::Good => "success",
        Mood::Calm => "info",
        Mood::Doubt => "warning",
        Mood::Bad => "error",
    };
    let object = announcement.object;
    let of = object.push.map(|push| push.to_string()).or_else(|| Some(escape::line(object.key.as_ref()?.as_str())));
    let context = format!("tallyonce-{}", of.as_deref().unwrap_or(nonce));
    let body = markdown::fitted(&markdown::summary(announcement), ANNOTATION_MAX)?;
    Some(run("buildkite-agent", ["annotate", "--style", style, "--context", &context], &body))
}

/// One entry for each push, since the metadata belong to the whole build and its jobs must not overwrite each other's.
fn meta_data(key: Option<&PushKey>, values: &[(&'static str, String)]) -> Option<Act> {
    let object: serde_json::Map<String, serde_json::Value> =
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into())).collect();
    let name = format!("tallyonce:{}", key?);
    Some(run("buildkite-agent", ["meta-data", "set", &name], &serde_json::Value::from(object).to_string()))
}

fn workflow_command(note: &Note) -> String {
    let level = match note.level {
        Level::Notice => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    format!("::{level} title={}::{}", escape::workflow_property(&note.title), escape::workflow_data(&note.text))
}

/// Azure Pipelines knows no notices.
fn log_issue(note: &Note) -> Option<String> {
    let level = match note.level {
        Level::Notice => return None,
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let text = escape::vso_data(&format!("{}: {}", note.title, note.text));
    Some(format!("##vso[task.logissue type={level};]{text}"))
}

fn service_message(note: &Note) -> String {
    let status = match note.level {
        Level::Notice => "NORMAL",
        Level::Warning => "WARNING",
        Level::Error => "ERROR",
    };
    let text = escape::service(&format!("{}: {}", note.title, note.text));
    format!("##teamcity[message text='{text}' status='{status}']")
}

fn build_message(note: &Note) -> Act {
    let category = match note.level {
        Level::Notice => "Information",
        Level::Warning => "Warning",
        Level::Error => "Error",
    };
    let title = escape::shortened(&escape::line(&note.title), MESSAGE_MAX);
    let details = escape::log(&note.text);
    run("appveyor", ["AddMessage", &title, "-Category", category, "-Details", &details], "")
}

/// No value holds the delimiter, since nobody can guess it.
fn delimited(name: &str, value: &str, nonce: &str) -> String {
    format!("{name}<<tallyonce_{nonce}\n{value}\ntallyonce_{nonce}\n")
}

fn output_variable(name: &str, value: &str) -> String {
    let name = escape::vso_property(&variable(name));
    format!("##vso[task.setvariable variable={name};isOutput=true]{}", escape::vso_data(value))
}

fn parameter(name: &str, value: &str) -> String {
    format!("##teamcity[setParameter name='{PATH_PREFIX}{name}' value='{}']", escape::service(value))
}

/// The line that begins a fold. `unix` in seconds; `id` tells it from other folds of the log.
pub(super) fn opening(folding: Folding, title: &str, unix: u64, id: &str) -> String {
    match folding {
        Folding::Workflow => format!("::group::{title}"),
        Folding::Azure => format!("##[group]{title}"),
        Folding::Buildkite => format!("--- {title}"),
        Folding::Gitlab => format!("\u{1b}[0Ksection_start:{unix}:tallyonce_{id}\r\u{1b}[0K{title}"),
        Folding::Travis => format!("travis_fold:start:tallyonce.{id}\r\u{1b}[0K{title}"),
    }
}

/// The line that ends it. What comes behind stands outside.
pub(super) fn closing(folding: Folding, title: &str, unix: u64, id: &str) -> String {
    match folding {
        Folding::Workflow => "::endgroup::".to_owned(),
        Folding::Azure => "##[endgroup]".to_owned(),
        // Groups end where the next one begins: this one is open.
        Folding::Buildkite => format!("+++ {title}"),
        Folding::Gitlab => format!("\u{1b}[0Ksection_end:{unix}:tallyonce_{id}\r\u{1b}[0K"),
        Folding::Travis => format!("travis_fold:end:tallyonce.{id}\r\u{1b}[0K"),
    }
}
