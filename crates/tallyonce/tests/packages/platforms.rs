//! The packages of the other platforms: their shell parts, run in the environment of a job there. What the platform itself
//! would do (variables, artifacts) is done here as far as the packages need it. Must not know keys beyond their first word.

use std::collections::BTreeMap;

use proof::spawn::{Finished, Server};
use serde_json::Value;

use crate::{Machine, file_of, pairs, system_path, yaml};

type Env = Vec<(String, String)>;
/// How a package is run: settings by their names in the GitHub Action, the job's variables.
type Package = fn(&Machine, &[(&str, &str)], &[(String, String)]) -> Ended;

const NOBODY: &str = "http://127.0.0.1:9";

const PACKAGES: [(&str, Package); 5] =
    [("gitlab", gitlab), ("circleci", circleci), ("azure", azure), ("buildkite", buildkite), ("jenkins", jenkins)];

/// How a package's part of a job ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    log: String,
    /// The folder whose content the platform keeps, if the package asked for it.
    kept: Option<String>,
}

impl Ended {
    fn of(finished: &Finished, kept: Option<String>) -> Self {
        Self { code: finished.code, log: crate::said(finished), kept }
    }
}

/// The variables of a job on a platform, as the tests of identities read them.
fn job_on(slug: &str) -> Env {
    let text = file_of(&format!("crates/domain/tests/env/{slug}.env"));
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once('=').unwrap()).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A text with each `open NAME close` replaced by the value of that name.
fn filled(text: &str, open: &str, close: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        let (name, behind) = after.split_once(close).unwrap();
        out.push_str(before);
        out.push_str(values.get(name.trim()).unwrap_or_else(|| panic!("{name:?} is not there")));
        rest = behind;
    }
    out + rest
}

/// Defaults with what is given over them. A name that the package doesn't know is a mistake of the test.
fn settled<'a>(
    defaults: impl Iterator<Item = (&'a str, &'a Value)>,
    given: &[(String, &str)],
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        defaults.map(|(name, default)| (name.to_owned(), yaml::text(default))).collect();
    for (name, value) in given {
        assert!(all.insert(name.clone(), (*value).to_owned()).is_some(), "there is no {name}");
    }
    all
}

fn renamed<'a>(settings: &[(&str, &'a str)], rename: fn(&str) -> String) -> Vec<(String, &'a str)> {
    settings.iter().map(|(name, value)| (rename(name), *value)).collect()
}

/// GitLab: inputs into the template, `extends` followed, the job's script in `sh`.
fn gitlab(machine: &Machine, settings: &[(&str, &str)], env: &[(String, String)]) -> Ended {
    let documents = yaml::documents("packages/gitlab/templates/tallyonce.yml");
    let inputs = documents[0]["spec"]["inputs"].as_object().unwrap();
    let given = renamed(settings, str::to_owned);
    let values = settled(inputs.iter().map(|(name, input)| (name.as_str(), &input["default"])), &given);
    let command = settings.iter().any(|(name, _)| *name == "command");
    let name = if command { "$[[ inputs.job-name ]]" } else { ".tallyonce" };
    let job = extended(&documents[1], name);
    let mut env = env.to_vec();
    for (name, value) in job["variables"].as_object().unwrap() {
        let text = yaml::text(value.get("value").unwrap_or(value));
        env.push((name.clone(), filled(&text, "$[[ inputs.", " ]]", &values)));
    }
    let script: Vec<String> =
        job[if command { "script" } else { "after_script" }].as_array().unwrap().iter().map(yaml::text).collect();
    let finished = machine.shell("sh", &["-ec", &script.join("\n")], &env).output().unwrap();
    let kept = filled(job["artifacts"]["paths"][0].as_str().unwrap(), "$[[ inputs.", " ]]", &values);
    Ended::of(&finished, Some(kept))
}

fn extended(jobs: &Value, name: &str) -> Value {
    let job = &jobs[name];
    let mut all = job["extends"].as_str().map_or(Value::Object(serde_json::Map::new()), |base| extended(jobs, base));
    merge(&mut all, job);
    all
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// `CircleCI`: parameters into the step of the command, its script in bash.
fn circleci(machine: &Machine, settings: &[(&str, &str)], env: &[(String, String)]) -> Ended {
    let command = settings.iter().any(|(name, _)| *name == "command");
    let file = if command { "run_tests" } else { "push" };
    let definition = yaml::load(&format!("packages/circleci/src/commands/{file}.yml"));
    let given = renamed(settings, |name| name.replace('-', "_"));
    let parameters = definition["parameters"].as_object().unwrap().iter();
    let values = settled(parameters.map(|(name, parameter)| (name.as_str(), &parameter["default"])), &given);
    let step = &definition["steps"][0]["run"];
    let include = step["command"].as_str().unwrap();
    let script = include.strip_prefix("<<include(").and_then(|name| name.strip_suffix(")>>")).unwrap();
    let script = file_of(&format!("packages/circleci/src/{script}"));
    let own = step["environment"].as_object().unwrap().iter();
    let own = own.map(|(name, value)| (name.clone(), filled(&yaml::text(value), "<< parameters.", " >>", &values)));
    let env: Env = env.iter().cloned().chain(own).collect();
    let finished = machine.shell("bash", &["-eo", "pipefail", "-c", &script], &env).output().unwrap();
    let kept =
        filled(definition["steps"][1]["store_artifacts"]["path"].as_str().unwrap(), "<< parameters.", " >>", &values);
    Ended::of(&finished, Some(kept))
}

/// Azure: parameters into the steps; a variable set by a logging command decides about the artifact.
fn azure(machine: &Machine, settings: &[(&str, &str)], env: &[(String, String)]) -> Ended {
    let template = yaml::load("packages/azure/tallyonce.yml");
    let camel = |name: &str| {
        let mut parts = name.split('-');
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |all, part| all + &part[..1].to_uppercase() + &part[1..])
    };
    let parameters = template["parameters"].as_array().unwrap().iter();
    let values = settled(parameters.map(|p| (p["name"].as_str().unwrap(), &p["default"])), &renamed(settings, camel));
    let steps = template["steps"].as_array().unwrap();
    let run = |step: &Value| {
        let own = step["env"].as_object().unwrap().iter();
        let own =
            own.map(|(name, value)| (name.clone(), filled(&yaml::text(value), "${{ parameters.", " }}", &values)));
        let env: Env = env.iter().cloned().chain(own).collect();
        machine.shell("bash", &["--noprofile", "--norc", "-c", step["bash"].as_str().unwrap()], &env).output().unwrap()
    };
    let (pushed, looked) = (run(&steps[0]), run(&steps[1]));
    let set = "##vso[task.setvariable variable=TALLYONCE_KEPT]";
    let kept = looked.stdout.lines().find_map(|line| line.strip_prefix(set)).unwrap().to_owned();
    assert_eq!(steps[2]["publish"], "$(TALLYONCE_KEPT)");
    Ended::of(&pushed, Some(kept).filter(|folder| !folder.is_empty()))
}

/// Buildkite: settings as the agent hands them to the hook of a plugin in a folder `buildkite`.
fn buildkite(machine: &Machine, settings: &[(&str, &str)], env: &[(String, String)]) -> Ended {
    let mut env = env.to_vec();
    env.push(("BUILDKITE_PLUGIN_NAME".to_owned(), "BUILDKITE".to_owned()));
    let uploads = machine.path("uploads.txt");
    let _ = std::fs::remove_file(&uploads);
    machine.executable("buildkite-agent", &format!("#!/bin/sh\necho \"$@\" >>'{}'\n", uploads.display()));
    for (name, value) in settings {
        let name = format!("BUILDKITE_PLUGIN_BUILDKITE_{}", name.to_uppercase().replace('-', "_"));
        match *value {
            list if name.ends_with("_PATHS") && list.contains('\n') => {
                let items = list.lines().enumerate().map(|(at, item)| (format!("{name}_{at}"), item.to_owned()));
                env.extend(items);
            }
            one => env.push((name, one.to_owned())),
        }
    }
    let hook = crate::root().join("packages/buildkite/hooks/post-command");
    let finished = machine.shell("bash", &[hook.to_str().unwrap()], &env).output().unwrap();
    let uploads = std::fs::read_to_string(&uploads).unwrap_or_default();
    let upload = uploads.lines().find_map(|line| line.strip_prefix("artifact upload ")).map(str::to_owned);
    Ended::of(&finished, upload.map(|pattern| pattern.trim_end_matches("/*.push").to_owned()))
}

/// Jenkins: the script of the library with the variables that the Groovy step sets.
fn jenkins(machine: &Machine, settings: &[(&str, &str)], env: &[(String, String)]) -> Ended {
    let mut env = env.to_vec();
    env.push(("TALLYONCE_CI_OUTBOX".to_owned(), ".tallyonce/outbox".to_owned()));
    for (name, value) in settings {
        env.push((format!("TALLYONCE_CI_{}", name.to_uppercase().replace('-', "_")), (*value).to_owned()));
    }
    let script = file_of("packages/jenkins/resources/tallyonce/push.sh");
    let finished = machine.shell("sh", &["-c", &script], &env).output().unwrap();
    Ended::of(&finished, Some(".tallyonce/outbox".to_owned()))
}

fn kept(machine: &Machine, ended: &Ended) -> usize {
    let Some(folder) = &ended.kept else { return 0 };
    let Ok(entries) = std::fs::read_dir(machine.path("workspace").join(folder)) else { return 0 };
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "push")).count()
}

#[track_caller]
fn recorded(slug: &str, ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{slug}: {}", ended.log);
    let under = [":", "@"].iter().any(|next| ended.log.contains(&format!("recorded: {slug}{next}")));
    assert!(under, "{slug}: {}", ended.log);
}

#[test]
fn each_package_pushes_under_its_platforms_key() {
    for (slug, package) in PACKAGES {
        let machine = Machine::new();
        let server: Server = machine.server();
        let to = [("to", server.url()), ("project", "shop".to_owned())];
        let to: Vec<(&str, &str)> = to.iter().map(|(k, v)| (*k, v.as_str())).collect();
        recorded(slug, &package(&machine, &[&to[..], &[("paths", "r.xml")]].concat(), &job_on(slug)));
        // Settings reach the key, the job's own variables too, and blanks in a list of lines separate nothing.
        machine.file("workspace/a dir/one.xml", &crate::ALL_PASS.replace("name=\"", "name=\"other "));
        let mut env = job_on(slug);
        env.extend(pairs(&[("TALLYONCE_VARIANT", "os=plan9")]));
        let more = [("paths", "a dir/*.xml\nr.xml\n"), ("job", "of its own"), ("partial", "true")];
        let ended = package(&machine, &[&to[..], &more].concat(), &env);
        recorded(slug, &ended);
        for part in ["job:of%20its%20own", "variant:os=plan9", "4 items"] {
            assert!(ended.log.contains(part), "{slug}: {part}: {}", ended.log);
        }
    }
}

#[test]
fn each_package_keeps_what_is_not_confirmed() {
    for (slug, package) in PACKAGES {
        let machine = Machine::new();
        let mut server = machine.server();
        let url = server.url();
        server.kill9().unwrap();
        let settings = [("to", url.as_str()), ("paths", "r.xml"), ("project", "shop"), ("deadline", "0s")];
        let ended = package(&machine, &settings, &job_on(slug));
        assert_eq!((ended.code, kept(&machine, &ended)), (Some(75), 1), "{slug}: {}", ended.log);
        server.restart().unwrap();
        // The job is retried: the same push, and nothing is left.
        let ended = package(&machine, &settings, &job_on(slug));
        assert_eq!((ended.code, kept(&machine, &ended)), (Some(0), 0), "{slug}: {}", ended.log);
    }
}

#[test]
fn each_package_says_where_the_program_could_come_from() {
    for (slug, package) in PACKAGES {
        let machine = Machine::new();
        let mut env = job_on(slug);
        env.extend(pairs(&[("PATH", &system_path())]));
        let ended = package(&machine, &[("to", NOBODY), ("paths", "r.xml")], &env);
        assert_eq!(ended.code, Some(2), "{slug}: {}", ended.log);
        assert!(
            ended.log.contains("TALLYONCE_DOWNLOAD") && ended.log.contains("nothing was sent"),
            "{slug}: {}",
            ended.log
        );
        // From a folder, as behind an air gap.
        let folder = machine.path("release").display().to_string();
        let target = "x86_64-unknown-linux-musl";
        let made = format!(
            "mkdir -p ../release && cd ../release && cp '{}' . && printf '#!/bin/sh\\n[ \"$1\" != push ] || touch pushed\\necho tallyonce 9.9.9\\n' >tallyonce && \
             chmod 755 tallyonce && tar -czf tallyonce-{target}.tar.gz tallyonce && sha256sum tallyonce-{target}.tar.gz >tallyonce-{target}.tar.gz.sha256",
            crate::root().join("packages/install.sh").display()
        );
        assert_eq!(machine.shell("sh", &["-ec", &made], &[]).output().unwrap().code, Some(0));
        env.extend(pairs(&[
            ("TALLYONCE_TARGET", target),
            ("TALLYONCE_CACHE", &machine.path("cache").display().to_string()),
        ]));
        let ended = package(&machine, &[("to", NOBODY), ("paths", "r.xml"), ("download", &folder)], &env);
        assert!(ended.code == Some(0) && machine.path("workspace/pushed").exists(), "{slug}: {}", ended.log);
    }
}

#[test]
fn each_package_takes_texts_for_texts() {
    let hostile = "$(touch pwned) `touch pwned` ';touch pwned;' \"&& touch pwned\"";
    for (slug, package) in PACKAGES {
        let machine = Machine::new();
        for name in ["paths", "project", "job", "variant", "args", "deadline", "version", "download"] {
            let mut settings = vec![("to", NOBODY), ("paths", "r.xml"), ("deadline", "0s")];
            settings.retain(|(other, _)| *other != name);
            settings.push((name, hostile));
            let ended = package(&machine, &settings, &job_on(slug));
            assert!(!machine.path("workspace/pwned").exists(), "{slug}: {name} is run as a script: {}", ended.log);
        }
    }
}

#[test]
fn packages_that_run_tests_end_with_the_worse_code() {
    for (slug, package) in [PACKAGES[0], PACKAGES[1], PACKAGES[2], PACKAGES[4]] {
        let machine = Machine::new();
        let server = machine.server();
        let settings = [("to", server.url()), ("project", "shop".to_owned()), ("paths", "out.xml".to_owned())];
        let mut settings: Vec<(&str, &str)> = settings.iter().map(|(k, v)| (*k, v.as_str())).collect();
        settings.push(("command", "cp r.xml out.xml; exit 7"));
        let ended = package(&machine, &settings, &job_on(slug));
        assert!(ended.code == Some(7) && ended.log.contains("recorded"), "{slug}: {}", ended.log);
    }
}

#[test]
fn a_failed_command_stays_the_exit_code_of_a_buildkite_job() {
    let machine = Machine::new();
    let mut env = job_on("buildkite");
    env.extend(pairs(&[("BUILDKITE_COMMAND_EXIT_STATUS", "1")]));
    let ended =
        buildkite(&machine, &[("to", NOBODY), ("paths", "r.xml"), ("project", "shop"), ("deadline", "0s")], &env);
    assert_eq!((ended.code, kept(&machine, &ended)), (Some(0), 1), "{}", ended.log);
}
