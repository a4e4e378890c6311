//! The guides in docs/targets: every example of a target can be opened as it stands there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use delivery::foreign::{Options, TargetSettings};
use delivery::{HttpUrl, Secret};
use proof::stubs::Stub;
use proof::stubs::generic::Service;
use serde_json::json;
use toml::{Table, Value};

use crate::given::{opened, settings};

/// The blocks of a page that describe targets; one without a kind changes the one before it, table by table.
fn examples(page: &str) -> Vec<Table> {
    let mut examples: Vec<Table> = Vec::new();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    for block in blocks.filter(|block| block.contains("[target.")) {
        let table: Table = block.parse().unwrap_or_else(|error| panic!("{error}\n{block}"));
        for target in table["target"].as_table().unwrap().values().filter_map(Value::as_table) {
            let mut whole = if target.contains_key("kind") { Table::new() } else { examples[0].clone() };
            whole.extend(target.clone());
            examples.push(whole);
        }
    }
    examples
}

/// What the program reads before the adapter does, as far as an adapter looks at it.
fn read(mut target: Table, mut settings: TargetSettings) -> TargetSettings {
    let text = |target: &mut Table, key: &str| target.remove(key).map(|value| value.as_str().unwrap().to_owned());
    settings.kind = text(&mut target, "kind").unwrap().parse().unwrap();
    settings.url = HttpUrl::parse(&text(&mut target, "url").unwrap()).unwrap();
    settings.project = text(&mut target, "project").unwrap();
    settings.user = text(&mut target, "user");
    settings.token = text(&mut target, "token").map(|token| Secret::new(&token));
    settings.strategy = text(&mut target, "strategy").map(|strategy| strategy.parse().unwrap());
    settings.create_cases = target.remove("create-cases").is_some_and(|flag| flag.as_bool().unwrap());
    let statuses = target.remove("statuses").map(|statuses| statuses.try_into::<BTreeMap<String, String>>().unwrap());
    let statuses = statuses.into_iter().flatten().map(|(status, word)| (status.parse().unwrap(), word));
    settings.statuses = statuses.collect();
    let ours =
        ["cycle", "cycle-per", "close", "mapping", "quiet", "ledger", "probe", "attachments", "attachment-bytes-max"];
    for key in ours {
        target.remove(key);
    }
    settings.options = Options::new(target.into_iter().map(|(key, value)| (key, json!(value))).collect());
    settings
}

#[test]
fn every_example_of_a_target_can_be_opened() {
    let stub = Stub::start(Service::appending()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/targets");
    let mut opened_ones = 0;
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        for target in examples(&fs::read_to_string(&path).unwrap()) {
            let settings = read(target.clone(), settings(delivery::foreign::Kind::Generic, &stub, json!({})));
            if let Err(error) = opened(settings) {
                panic!("{}: {error}\n{target}", path.display());
            }
            opened_ones += 1;
        }
    }
    assert!(opened_ones >= 6, "{opened_ones}");
}
