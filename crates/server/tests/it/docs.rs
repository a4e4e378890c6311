//! `docs/api.md` against the code: its table of problem codes is made from the list, and every route stands in it.

use std::fmt::Write as _;
use std::path::Path;

use domain::ProblemCode;
use serde_json::to_value;
use server::router::routes;

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
