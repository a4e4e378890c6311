//! A stand-in for the runner of GitHub Actions: runs the steps of a composite action in order, with bash, as far as our
//! actions need it. Uploads go into a list. Must not know what the steps do.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proof::spawn::{Finished, Running};
use serde_json::{Map, Value, json};

use crate::expression::{condition, interpolate};
use crate::{Machine, yaml};

/// Files by their names.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// What jobs of one run uploaded: one list for all, as on the platform.
#[derive(Debug, Default)]
pub(crate) struct Uploads(RefCell<BTreeMap<String, Files>>);

impl Uploads {
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.borrow().keys().cloned().collect()
    }

    pub(crate) fn files(&self, name: &str) -> Files {
        self.0.borrow()[name].clone()
    }

    /// As `actions/upload-artifact` does it: names are unique in a run, and some characters are refused.
    fn take(&self, with: &Map<String, Value>) -> bool {
        let (name, folder) = (yaml::text(&with["name"]), yaml::text(&with["path"]));
        let allowed = !name.is_empty() && !name.contains(['"', ':', '<', '>', '|', '*', '?', '\r', '\n', '\\', '/']);
        let mut all = self.0.borrow_mut();
        let free = with.get("overwrite").is_some_and(|v| yaml::text(v) == "true") || !all.contains_key(&name);
        let files: Files = std::fs::read_dir(folder)
            .unwrap()
            .map(Result::unwrap)
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
            .collect();
        if allowed && free && !files.is_empty() {
            all.insert(name, files);
            return true;
        }
        false
    }
}

/// A job that uses an action.
pub(crate) struct Job<'a> {
    pub(crate) machine: &'a Machine,
    /// Variables of the job.
    pub(crate) env: Vec<(String, String)>,
    /// The contexts `github`, `matrix` and `strategy`.
    pub(crate) contexts: Value,
    pub(crate) uploads: &'a Uploads,
    /// False: the storage for artifacts is away.
    pub(crate) storage: bool,
    /// Called with each script while it runs.
    pub(crate) during: Option<&'a dyn Fn(&Running)>,
}

/// How an action ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code of the step that failed, if one did.
    pub(crate) failed: Option<i32>,
    pub(crate) outputs: BTreeMap<String, String>,
    /// All that the steps said.
    pub(crate) log: String,
}

impl Ended {
    #[track_caller]
    pub(crate) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).unwrap_or_else(|| panic!("the action has no output {name}"))
    }
}

/// Runs the action in this file with these inputs.
pub(crate) fn run(action: &str, inputs: &[(&str, &str)], job: &Job<'_>) -> Ended {
    let definition = yaml::load(action);
    let folder = crate::root().join(action).parent().unwrap().to_owned();
    let mut contexts = job.contexts.clone();
    contexts["success"] = Value::Bool(true);
    contexts["steps"] = json!({});
    contexts["inputs"] = given(&definition, inputs, &contexts);
    let mut state =
        State { job, folder, contexts, path: Vec::new(), env: Vec::new(), log: String::new(), failed: None };
    for (number, step) in definition["runs"]["steps"].as_array().unwrap().iter().enumerate() {
        state.step(number, step);
    }
    let outputs = definition["outputs"].as_object().unwrap().iter();
    let value = |output: &Value| interpolate(output["value"].as_str().unwrap(), &state.contexts);
    let outputs = outputs.map(|(name, output)| (name.clone(), value(output))).collect();
    Ended { failed: state.failed, outputs, log: state.log }
}

/// The inputs: what is given, else their defaults. One that the action doesn't know is a mistake of the test.
fn given(definition: &Value, inputs: &[(&str, &str)], contexts: &Value) -> Value {
    let known = definition["inputs"].as_object().unwrap();
    for (name, _) in inputs {
        assert!(known.contains_key(*name), "there is no input {name}");
    }
    let value = |name: &str, input: &Value| {
        let default = || interpolate(&yaml::text(&input["default"]), contexts);
        inputs.iter().find(|(given, _)| *given == name).map_or_else(default, |(_, value)| (*value).to_owned())
    };
    known.iter().map(|(name, input)| (name.clone(), Value::String(value(name, input)))).collect::<Map<_, _>>().into()
}

struct State<'a> {
    job: &'a Job<'a>,
    folder: PathBuf,
    contexts: Value,
    path: Vec<String>,
    env: Vec<(String, String)>,
    log: String,
    failed: Option<i32>,
}

impl State<'_> {
    fn step(&mut self, number: usize, step: &Value) {
        let id = step["id"].as_str().map_or_else(|| format!("__{number}"), str::to_owned);
        if !condition(step["if"].as_str().unwrap_or("success()"), &self.contexts) {
            self.contexts["steps"][&id] = json!({"outputs": {}, "outcome": "skipped"});
            return;
        }
        let (code, outputs) = match step["uses"].as_str() {
            Some(uses) => (self.uses(uses, step), Map::new()),
            None => self.script(number, step),
        };
        let outcome = if code == 0 { "success" } else { "failure" };
        self.contexts["steps"][&id] = json!({"outputs": outputs, "outcome": outcome});
        if code != 0 && step["continue-on-error"] != Value::Bool(true) {
            self.contexts["success"] = Value::Bool(false);
            self.failed = self.failed.or(Some(code));
        }
    }

    fn uses(&self, uses: &str, step: &Value) -> i32 {
        assert!(uses.starts_with("actions/upload-artifact@v"), "{uses} is not known here");
        let with = step["with"].as_object().unwrap().iter();
        let with = with.map(|(k, v)| (k.clone(), Value::String(interpolate(&yaml::text(v), &self.contexts)))).collect();
        i32::from(!(self.job.storage && self.job.uploads.take(&with)))
    }

    fn script(&mut self, number: usize, step: &Value) -> (i32, Map<String, Value>) {
        assert_eq!(step["shell"], "bash");
        let temp = self.job.machine.path("temp");
        let files = ["GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"];
        let files: Vec<(String, PathBuf)> =
            files.iter().map(|name| ((*name).to_owned(), temp.join(format!("{name}-{number}")))).collect();
        for (_, file) in &files {
            std::fs::write(file, "").unwrap();
        }
        let mut env = self.job.env.clone();
        env.extend(self.env.iter().cloned());
        if let Some(own) = step["env"].as_object() {
            env.extend(own.iter().map(|(k, v)| (k.clone(), interpolate(&yaml::text(v), &self.contexts))));
        }
        env.extend(files.iter().map(|(name, file)| (name.clone(), file.display().to_string())));
        env.push(("RUNNER_TEMP".to_owned(), temp.display().to_string()));
        env.push(("GITHUB_ACTION_PATH".to_owned(), self.folder.display().to_string()));
        let searched = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let searched = searched.unwrap_or_else(|| self.job.machine.search_path());
        env.push(("PATH".to_owned(), self.path.iter().rev().cloned().chain([searched]).collect::<Vec<_>>().join(":")));
        let script = step["run"].as_str().unwrap();
        let arguments = ["--noprofile", "--norc", "-eo", "pipefail", "-c", script];
        let running = self.job.machine.shell("bash", &arguments, &env).start().unwrap();
        if let Some(during) = self.job.during {
            during(&running);
        }
        let finished: Finished = running.wait(crate::PATIENCE).unwrap();
        assert!(!finished.timed_out, "{finished}");
        self.log.push_str(&crate::said(&finished));
        self.path.extend(lines(&files[2].1));
        (finished.code.unwrap_or(137), outputs(&files[0].1))
    }
}

fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

/// `name=value` lines, and values between delimiters.
fn outputs(file: &Path) -> Map<String, Value> {
    let mut found = Map::new();
    let text = lines(file);
    let mut lines = text.iter();
    while let Some(line) = lines.next() {
        let delimited = line.split_once("<<").filter(|(name, _)| !name.contains('='));
        if let Some((name, end)) = delimited {
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).map(String::as_str).collect();
            found.insert(name.to_owned(), Value::String(value.join("\n")));
        } else {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("{line:?} is no output"));
            found.insert(name.to_owned(), Value::String(value.to_owned()));
        }
    }
    found
}
