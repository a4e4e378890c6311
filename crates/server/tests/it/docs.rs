//! `docs/api.md` against the code: its table of problem codes is made from the list, and every route stands in it.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use domain::ProblemCode;
use serde_json::to_value;
use server::router::routes;

use crate::served::{Served, on_every_engine};

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md")).unwrap()
}

fn table() -> String {
    let mut table = "| status | code | retry | written | meaning |\n|---|---|---|---|---|\n".to_owned();
    for code in ProblemCode::ALL {
        let (retry, written) = (to_value(code.retry()).unwrap(), to_value(code.written()).unwrap());
        let (retry, written) = (retry.as_str().unwrap(), written.as_str().unwrap());
        let _ = writeln!(table, "| {} | `{}` | {retry} | {written} | {} |", code.status(), code.word(), code.title());
    }
    table
}

#[test]
fn the_table_of_problem_codes_is_the_list() {
    let table = table();
    assert!(page().contains(&table), "put this table into docs/api.md:\n\n{table}");
}

#[test]
fn every_route_is_described() {
    let page = page();
    for (method, path) in routes() {
        let line = format!("{} {path}", method.to_uppercase());
        assert!(page.contains(&line), "docs/api.md does not hold {line:?}");
    }
}

/// The shell of the page's section with this heading.
fn shell(heading: &str) -> String {
    let page = page();
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).expect("the section");
    section.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("shell in it").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_staged_push_by_hand_works_as_written() {
    on_every_engine(async |served: Served| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-euc", &shell("A large push, staged")]).current_dir(folder.path());
        command.env("URL", format!("http://{}", served.address));
        let tools = ["curl", "openssl", "base64"].iter().all(|tool| Command::new(tool).arg("--help").output().is_ok());
        if !tools {
            println!("skipped: no curl, openssl or base64");
            return;
        }
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("\"missing\":[[0,0]]") && said.contains("\"result\":\"recorded\""), "{said}");
        let report = served.get("/api/v1/projects/shop/rounds?cycle=main&round=all").await.json();
        assert_eq!(report["rounds"][0]["counts"]["passed"], 1, "{report:#}");
    })
    .await;
}
