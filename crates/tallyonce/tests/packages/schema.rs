//! The files of the packages against what their platforms ask of such files: fields, types, and references that lead
//! somewhere. And no text of a user becomes part of a script.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::expression::{condition, interpolate};
use crate::{file_of, program, root, yaml};

/// Names that `push.sh` reads as `TALLYONCE_CI_NAME`.
fn known_settings() -> BTreeSet<String> {
    let script = file_of("packages/push.sh");
    let list = script.split("for name in ").nth(1).unwrap().split(';').next().unwrap();
    let names = list.split_whitespace().filter(|word| *word != "\\").map(str::to_owned);
    names.chain(["PATHS", "COMMAND", "ARGS", "DO", "SCRIPT"].map(str::to_owned)).collect()
}

/// Every `TALLYONCE_CI_NAME` in a text is one that `push.sh` reads.
#[track_caller]
fn only_known_settings(name: &str, text: &str) {
    let known = known_settings();
    for piece in text.split("TALLYONCE_CI_").skip(1) {
        let setting: String =
            piece.chars().take_while(|c| c.is_ascii_uppercase() || "_0123456789".contains(*c)).collect();
        // In comments and loops the name is a variable.
        let meant = !setting.is_empty() && setting != "X" && setting != "INSTALL";
        assert!(!meant || known.contains(&setting), "{name}: push.sh doesn't read TALLYONCE_CI_{setting}");
    }
}

/// Every name that is referred to is there, and every name that is there is referred to.
#[track_caller]
fn matched(file: &str, there: &[&str], referred: &[String]) {
    let there: BTreeSet<&str> = there.iter().copied().collect();
    let referred: BTreeSet<&str> = referred.iter().map(String::as_str).collect();
    let gone: Vec<_> = referred.difference(&there).collect();
    let idle: Vec<_> = there.difference(&referred).collect();
    assert!(
        gone.is_empty() && idle.is_empty(),
        "{file}: referred to and not there {gone:?}, there and unused {idle:?}"
    );
}

#[test]
fn settings_are_variables_of_the_program() {
    let reference = file_of("docs/reference/cli.md");
    let own = ["VERSION", "DOWNLOAD", "SHA256", "PATHS", "COMMAND", "ARGS", "DO", "SCRIPT"];
    for name in known_settings().iter().filter(|name| !own.contains(&name.as_str())) {
        assert!(reference.contains(&format!("`TALLYONCE_{name}`")), "there is no variable TALLYONCE_{name}");
    }
}

#[test]
fn actions_are_whole() {
    for file in ["action.yml", "flush/action.yml"] {
        let action = yaml::load(file);
        let (inputs, outputs) = (action["inputs"].as_object().unwrap(), action["outputs"].as_object().unwrap());
        let steps = action["runs"]["steps"].as_array().unwrap();
        assert!(["name", "description"].iter().all(|field| action[field].is_string()), "{file}");
        assert_eq!(action["runs"]["using"], "composite");
        for (name, input) in inputs {
            assert!(input["description"].is_string() && input["default"].is_string(), "{file}: input {name}");
            // Defaults are evaluated before inputs and steps are there.
            let text = yaml::text(&input["default"]);
            assert!(!text.contains("inputs.") && !text.contains("steps."), "{file}: default of {name}");
        }
        let all: Vec<String> = yaml::strings(&action).into_iter().map(|(_, text)| text).collect();
        let all = all.iter().flat_map(|text| yaml::references(text, "${{", "}}", "inputs.")).collect::<Vec<_>>();
        matched(file, &yaml::keys(&action["inputs"]), &all);
        let ids: Vec<&str> = steps.iter().filter_map(|step| step["id"].as_str()).collect();
        let contexts =
            json!({"success": true, "github": {}, "inputs": {}, "steps": {}, "matrix": null, "strategy": {}});
        for step in steps {
            step_is_whole(file, step, &ids, &contexts);
        }
        for (name, output) in outputs {
            let text = output["value"].as_str().unwrap();
            assert!(output["description"].is_string() && refers_to(text, &ids), "{file}: output {name}");
            interpolate(text, &contexts);
        }
        only_known_settings(file, &file_of(file));
    }
}

fn refers_to(text: &str, ids: &[&str]) -> bool {
    yaml::references(&format!("${{{{{text}}}}}"), "${{", "}}", "steps.").iter().all(|id| ids.contains(&id.as_str()))
}

#[track_caller]
fn step_is_whole(file: &str, step: &Value, ids: &[&str], contexts: &Value) {
    let name = step["name"].as_str().unwrap_or_else(|| panic!("{file}: a step without a name"));
    if let Some(text) = step["if"].as_str() {
        assert!(refers_to(text, ids), "{file}: {name}: if");
        condition(text, contexts);
    }
    if let Some(script) = step["run"].as_str() {
        assert_eq!(step["shell"], "bash", "{file}: {name}");
        assert!(!script.contains("${{"), "{file}: {name}: what is handed over would become part of the script");
        let path = script.split("$GITHUB_ACTION_PATH/").nth(1).unwrap().split('"').next().unwrap();
        let path = path.strip_prefix("../").unwrap_or(path);
        assert!(root().join(path).is_file(), "{file}: {name}: {path} is not there");
    } else {
        let uses = step["uses"].as_str().unwrap();
        assert!(uses.starts_with("actions/") && uses.contains("@v"), "{file}: {name}: {uses}");
    }
    for (field, text) in yaml::strings(step) {
        if text.contains("${{") {
            assert!(field.starts_with("/env/") || field.starts_with("/with/"), "{file}: {name}: {field}");
            assert!(refers_to(&text, ids), "{file}: {name}: {field}");
            interpolate(&text, contexts);
        }
    }
}

#[test]
fn the_gitlab_component_is_whole() {
    let file = "packages/gitlab/templates/tallyonce.yml";
    let documents = yaml::documents(file);
    assert_eq!(documents.len(), 2);
    let inputs = documents[0]["spec"]["inputs"].as_object().unwrap();
    for (name, input) in inputs {
        let kind = input["type"].as_str().unwrap_or("string");
        let fits = match kind {
            "string" => input["default"].is_string(),
            "boolean" => input["default"].is_boolean(),
            _ => false,
        };
        assert!(fits && input["description"].is_string(), "input {name}");
    }
    let jobs = documents[1].as_object().unwrap();
    let mut referred: Vec<String> =
        jobs.keys().flat_map(|name| yaml::references(name, "$[[", "]]", "inputs.")).collect();
    for (at, text) in yaml::strings(&documents[1]) {
        let found = yaml::references(&text, "$[[", "]]", "inputs.");
        let script = at.contains("script") || at.contains("SCRIPT");
        assert!(!script || !text.contains("$[["), "{at}: an input would become part of the script");
        referred.extend(found);
    }
    matched(file, &yaml::keys(&documents[0]["spec"]["inputs"]), &referred);
    let known = ["extends", "variables", "artifacts", "after_script", "script", "stage", "image", "when"];
    for (name, job) in jobs {
        assert!(yaml::keys(job).iter().all(|key| known.contains(key)), "{name}");
        let base = job["extends"].as_str();
        assert!(base.is_none_or(|base| jobs.contains_key(base)), "{name}");
        let variables = job["variables"].as_object().into_iter().flatten();
        // GitLab would put its own variables into what is not marked.
        let raw =
            |value: &Value| value["expand"] == json!(false) || value.is_string() && !yaml::text(value).contains('$');
        for (variable, value) in variables {
            assert!(raw(value), "{name}: {variable}");
        }
    }
    only_known_settings(file, &file_of(file));
}

#[test]
fn the_circleci_orb_is_whole() {
    let folder = "packages/circleci/src";
    let orb = yaml::load(&format!("{folder}/@orb.yml"));
    assert!(orb["version"].as_f64() == Some(2.1) && orb["description"].is_string());
    let commands = ["push", "run_tests"];
    for name in commands {
        let file = format!("{folder}/commands/{name}.yml");
        let command = yaml::load(&file);
        parameters_are_whole(&file, &command);
        let step = &command["steps"][0]["run"];
        assert_eq!(step["command"], "<<include(scripts/push.sh)>>", "nothing else is part of the script");
        only_known_settings(&file, &file_of(&file));
    }
    let file = format!("{folder}/jobs/test.yml");
    let job = yaml::load(&file);
    parameters_are_whole(&file, &job);
    for step in job["steps"].as_array().unwrap().iter().filter_map(Value::as_object).flatten() {
        assert!(commands.contains(&step.0.as_str()), "{file}: {}", step.0);
        let command = yaml::load(&format!("{folder}/commands/{}.yml", step.0));
        assert!(yaml::keys(step.1).iter().all(|key| command["parameters"].get(key).is_some()), "{file}: {}", step.0);
    }
    for name in ["push", "run"] {
        let example = yaml::load(&format!("{folder}/examples/{name}.yml"));
        assert!(example["description"].is_string() && example["usage"]["orbs"]["tallyonce"].is_string());
    }
}

#[track_caller]
fn parameters_are_whole(file: &str, element: &Value) {
    assert!(element["description"].is_string(), "{file}");
    for (name, parameter) in element["parameters"].as_object().unwrap() {
        let default = &parameter["default"];
        let fits = match parameter["type"].as_str().unwrap() {
            "string" => default.is_string() || default.is_null(),
            "boolean" => default.is_boolean(),
            "integer" => default.is_u64(),
            "enum" => parameter["enum"].as_array().unwrap().contains(default),
            _ => false,
        };
        let named = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
        assert!(fits && named && parameter["description"].is_string(), "{file}: {name}");
    }
    let all: Vec<String> = yaml::strings(element).into_iter().map(|(_, text)| text).collect();
    let referred: Vec<String> = all.iter().flat_map(|text| yaml::references(text, "<<", ">>", "parameters.")).collect();
    matched(file, &yaml::keys(&element["parameters"]), &referred);
}

#[test]
fn the_azure_template_is_whole() {
    let file = "packages/azure/tallyonce.yml";
    let template = yaml::load(file);
    let parameters = template["parameters"].as_array().unwrap();
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
    for parameter in parameters {
        let fits = match parameter["type"].as_str().unwrap() {
            "string" => parameter["default"].is_string(),
            "boolean" => parameter["default"].is_boolean(),
            _ => false,
        };
        assert!(fits, "{parameter}");
    }
    let strings = yaml::strings(&template["steps"]);
    for (at, text) in &strings {
        assert!(!at.ends_with("/bash") || !text.contains("${{"), "{at}: a parameter would become part of the script");
    }
    let referred: Vec<String> =
        strings.iter().flat_map(|(_, text)| yaml::references(text, "${{", "}}", "parameters.")).collect();
    matched(file, &names, &referred);
    for step in template["steps"].as_array().unwrap() {
        assert!(step["displayName"].is_string() && step["condition"].is_string(), "{step}");
        assert!(step["bash"].is_string() != step["publish"].is_string(), "{step}");
    }
    only_known_settings(file, &file_of(file));
}

#[test]
fn the_buildkite_plugin_is_whole() {
    let plugin = yaml::load("packages/buildkite/plugin.yml");
    assert!(["name", "description", "author"].iter().all(|field| plugin[field].is_string()));
    let configuration = &plugin["configuration"];
    let properties = configuration["properties"].as_object().unwrap();
    let hook = file_of("packages/buildkite/hooks/post-command");
    let read: Vec<String> = hook
        .split("for name in ")
        .skip(1)
        .flat_map(|list| list.split(';').next().unwrap().split_whitespace())
        .filter(|word| *word != "\\")
        .map(|word| word.to_lowercase().replace('_', "-"))
        .collect();
    matched("plugin.yml", &properties.keys().map(String::as_str).collect::<Vec<_>>(), &read);
    for (name, property) in properties {
        let kinds = property["type"].as_array().cloned().unwrap_or_else(|| vec![property["type"].clone()]);
        let known = ["string", "array", "boolean", "integer"];
        assert!(kinds.iter().all(|kind| known.contains(&kind.as_str().unwrap())), "{name}");
        assert_eq!(kinds.contains(&json!("array")), property["items"].is_object(), "{name}");
    }
    for name in configuration["required"].as_array().unwrap() {
        assert!(properties.contains_key(name.as_str().unwrap()), "{name}");
    }
    assert_eq!(configuration["additionalProperties"], false);
    only_known_settings("the hook", &hook);
}

#[test]
fn the_jenkins_library_is_whole() {
    let (push, help) =
        (file_of("packages/jenkins/vars/tallyoncePush.groovy"), file_of("packages/jenkins/vars/tallyoncePush.txt"));
    let map = push.split("names = [").nth(1).unwrap().split(']').next().unwrap();
    let known = known_settings();
    let mut options = 0;
    for pair in map.split(',') {
        let (option, setting) = pair.trim().split_once(": '").unwrap();
        assert!(known.contains(setting.trim_end_matches('\'')), "push.sh doesn't read {setting}");
        assert!(option == "command" || option == "exitWith" || help.contains(option), "the help doesn't name {option}");
        options += 1;
    }
    assert!(options > 20, "{options} options are found");
    for name in ["tallyoncePush", "tallyonceRun"] {
        let text = file_of(&format!("packages/jenkins/vars/{name}.groovy"));
        for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
            assert_eq!(text.matches(open).count(), text.matches(close).count(), "{name}: {open}{close}");
        }
        assert!(
            text.contains("int call(Map options = [:]) {")
                && root().join(format!("packages/jenkins/vars/{name}.txt")).is_file()
        );
    }
    let Some(groovy) = program("groovy") else {
        say("no groovy on this machine: the steps of the Jenkins library are not run");
        return;
    };
    let test = root().join("crates/tallyonce/tests/packages/jenkins.groovy");
    let vars = root().join("packages/jenkins/vars");
    let finished = proof::spawn::Run::new(&groovy).arg(test).arg(vars).timeout(crate::PATIENCE).output().unwrap();
    assert_eq!(finished.code, Some(0), "{finished}");
}

#[expect(clippy::print_stderr, reason = "a test says what it could not do")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}
