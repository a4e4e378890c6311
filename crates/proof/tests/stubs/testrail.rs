//! The behaviour of the `TestRail` stub that an adapter relies on, by raw requests.

use proof::stubs::testrail::Options;
use proof::stubs::{Admin, Damage, Fault, Lag, Limit, Plan, Quirks, RetryAfter, Select, Stub, TestRail};
use serde_json::{Value, json};

use crate::client::{Client, Sight};

/// `bot@example.com:key`.
const LOGIN: &str = "Ym90QGV4YW1wbGUuY29tOmtleQ==";

/// Status and body of one call.
fn call_as(stub: &Stub<TestRail>, login: &str, call: &str, body: Option<&Value>) -> anyhow::Result<(u16, Value)> {
    let (method, body) = body.map_or(("GET", String::new()), |body| ("POST", body.to_string()));
    let head = format!(
        "{method} /index.php?/api/v2/{call} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {login}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let sight = Client::connect(stub.addr())?.send_raw(&[head.as_bytes(), body.as_bytes()].concat())?;
    let Sight::Answer(status, _, body) = sight else { anyhow::bail!("{call}: {sight:?}") };
    Ok((status, serde_json::from_str(&body)?))
}

fn get(stub: &Stub<TestRail>, call: &str) -> anyhow::Result<(u16, Value)> {
    call_as(stub, LOGIN, call, None)
}

fn post(stub: &Stub<TestRail>, call: &str, body: &Value) -> anyhow::Result<(u16, Value)> {
    call_as(stub, LOGIN, call, Some(body))
}

/// A stub with so many cases and a run of all of them.
fn stub(count: usize, options: Options) -> anyhow::Result<(Stub<TestRail>, Vec<u64>, u64)> {
    let mut vendor = TestRail::new(options);
    let cases: Vec<u64> = (0..count).map(|n| vendor.add_case(&format!("t{n}"), None)).collect();
    let run = vendor.add_run("r", &cases);
    Ok((Stub::start(vendor)?, cases, run))
}

fn passed(cases: &[u64], comment: &str) -> Value {
    let result = |case: &u64| json!({ "case_id": case, "status_id": 1, "comment": comment });
    json!({ "results": cases.iter().map(result).collect::<Vec<_>>() })
}

/// The comments of a page of results.
fn comments(page: &Value) -> Vec<&str> {
    let rows = page.get("results").unwrap_or(page).as_array().unwrap();
    rows.iter().map(|row| row["comment"].as_str().unwrap()).collect()
}

#[test]
fn a_repeat_appends_and_the_newest_counts() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(2, Options::default())?;
    let turned = [cases[1], cases[0]];
    let (status, stored) = post(&stub, &format!("add_results_for_cases/{run}"), &passed(&turned, "K1"))?;
    assert_eq!(status, 200);
    let tests = stub.vendor().tests(run);
    let order: Vec<_> = stored.as_array().unwrap().iter().map(|one| one["test_id"].as_u64().unwrap()).collect();
    assert_eq!(order, [tests[&cases[1]], tests[&cases[0]]], "in the order sent");
    post(&stub, &format!("add_results_for_cases/{run}"), &passed(&turned, "K1"))?;
    let failed = json!({ "status_id": 5, "comment": "K2" });
    post(&stub, &format!("add_result_for_case/{run}/{}", cases[0]), &failed)?;
    let first = format!("C{}", cases[0]);
    assert_eq!(stub.doubled(), [(first.clone(), 2), (format!("C{}", cases[1]), 1)].into());
    let by_marker = stub.ledger().doubled_by(|row| row.marker.clone());
    assert_eq!(by_marker[&first], 1, "the second round is no double");
    let (_, test) = get(&stub, &format!("get_test/{}", tests[&cases[0]]))?;
    assert_eq!(test["status_id"], 5);
    let (_, counts) = get(&stub, &format!("get_run/{run}"))?;
    assert_eq!((&counts["passed_count"], &counts["failed_count"]), (&json!(1), &json!(1)));
    Ok(())
}

#[test]
fn one_bad_result_refuses_the_whole_batch() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(2, Options::default())?;
    let good = json!({ "case_id": cases[0], "status_id": 1 });
    for bad in [
        json!({ "case_id": 999, "status_id": 1 }),
        json!({ "case_id": cases[1], "status_id": 3 }),
        json!({ "case_id": cases[1], "status_id": 77 }),
        json!({ "case_id": cases[1], "status_id": 1, "custom_rec_key": "K1" }),
    ] {
        let batch = json!({ "results": [good, bad] });
        let (status, body) = post(&stub, &format!("add_results_for_cases/{run}"), &batch)?;
        assert!(status == 400 && body["error"].is_string(), "{bad} {status} {body}");
        assert_eq!(stub.ledger().count(), 0, "{bad}");
    }
    stub.vendor().options.drops_unknown_fields = true;
    let batch = json!({ "results": [{ "case_id": cases[1], "status_id": 1, "custom_rec_key": "K1" }] });
    let (status, stored) = post(&stub, &format!("add_results_for_cases/{run}"), &batch)?;
    assert_eq!((status, stored[0].get("custom_rec_key")), (200, None), "dropped without a word");
    Ok(())
}

#[test]
fn lists_come_in_both_shapes_at_most_250_newest_first() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(300, Options::default())?;
    stub.set_clock(Some(1_790_000_000_000));
    post(&stub, &format!("add_results_for_cases/{run}"), &passed(&cases[..299], "old"))?;
    stub.set_clock(Some(1_790_000_060_999));
    post(&stub, &format!("add_results_for_cases/{run}"), &passed(&cases[299..], "new"))?;
    let (_, page) = get(&stub, &format!("get_results_for_run/{run}&limit=1000"))?;
    assert_eq!((&page["limit"], &page["size"], &page["offset"]), (&json!(250), &json!(250), &json!(0)));
    assert_eq!((page["results"][0]["created_on"].as_i64(), comments(&page)[0]), (Some(1_790_000_060), "new"));
    let next = page["_links"]["next"].as_str().unwrap().strip_prefix("/api/v2/").unwrap();
    let (_, rest) = get(&stub, next)?;
    assert_eq!((&rest["size"], &rest["_links"]["next"]), (&json!(50), &Value::Null));
    let (_, since) = get(&stub, &format!("get_results_for_run/{run}&created_after=1790000059"))?;
    assert_eq!(comments(&since), ["new"]);
    let (_, since) = get(&stub, &format!("get_results_for_run/{run}&created_after=1790000060"))?;
    assert_eq!(since["size"], 0, "after, not at");
    stub.vendor().options.bare_lists = true;
    let (_, bare) = get(&stub, &format!("get_results_for_run/{run}&limit=2&offset=299"))?;
    assert_eq!(comments(&bare), ["old"]);
    let (_, tests) = get(&stub, &format!("get_tests/{run}&limit=3"))?;
    assert_eq!(tests.as_array().unwrap().len(), 3);
    Ok(())
}

#[test]
fn a_page_repeats_a_row_when_another_writes_meanwhile() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(3, Options::default())?;
    for (case, key) in cases.iter().zip(["K1", "K2"]) {
        post(&stub, &format!("add_results_for_cases/{run}"), &passed(&[*case], key))?;
    }
    let other = cases[2];
    stub.before(Select::reads().path("offset=1"), move |vendor, at| {
        vendor.foreign_result(at, run, other, 1, "theirs");
    });
    let (_, first) = get(&stub, &format!("get_results_for_run/{run}&limit=1"))?;
    let (_, second) = get(&stub, &format!("get_results_for_run/{run}&limit=1&offset=1"))?;
    assert_eq!((comments(&first), comments(&second)), (vec!["K2"], vec!["K2"]), "newest first: offsets shift");
    Ok(())
}

#[test]
fn choosing_cases_replaces_the_selection_and_drops_results() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(3, Options::default())?;
    post(&stub, &format!("add_results_for_cases/{run}"), &passed(&cases, "K1"))?;
    let (status, _) = post(&stub, &format!("update_run/{run}"), &json!({ "description": "only a text" }))?;
    assert_eq!((status, stub.ledger().count()), (200, 3), "no selection given: nothing changes");
    let before = stub.vendor().tests(run);
    post(&stub, &format!("update_run/{run}"), &json!({ "include_all": false, "case_ids": cases[..2] }))?;
    assert_eq!(stub.lost([format!("C{}", cases[2])]).len(), 1, "left out: gone with its result");
    post(&stub, &format!("update_run/{run}"), &json!({ "include_all": true }))?;
    let after = stub.vendor().tests(run);
    assert_eq!(after[&cases[0]], before[&cases[0]], "those that stay keep their tests");
    assert_ne!(after[&cases[2]], before[&cases[2]], "one that comes back is another test");
    assert_eq!(stub.ledger().count(), 2);
    let late = stub.vendor().add_case("late", None);
    assert!(stub.vendor().tests(run).contains_key(&late), "a run of all cases gets later ones");
    Ok(())
}

#[test]
fn runs_are_not_unique_and_end_for_ever() -> anyhow::Result<()> {
    let (stub, cases, _) = stub(1, Options::default())?;
    let body = json!({ "name": "nightly", "include_all": false, "case_ids": cases });
    let ids: Vec<_> =
        [(); 2].iter().map(|()| post(&stub, "add_run/1", &body).unwrap().1["id"].as_u64().unwrap()).collect();
    assert_ne!(ids[0], ids[1]);
    let (_, found) = get(&stub, "get_runs/1&is_completed=0")?;
    assert_eq!(found["size"], 3);
    assert_eq!(post(&stub, &format!("close_run/{}", ids[0]), &json!({}))?.0, 200);
    let batch = passed(&cases, "K1");
    assert_eq!(post(&stub, &format!("add_results_for_cases/{}", ids[0]), &batch)?.0, 403);
    assert_eq!(post(&stub, &format!("update_run/{}", ids[0]), &body)?.0, 403);
    assert_eq!(post(&stub, &format!("add_results_for_cases/{}", ids[1]), &batch)?.0, 200);
    assert_eq!(post(&stub, &format!("delete_run/{}", ids[1]), &json!({}))?.0, 200);
    assert_eq!(get(&stub, &format!("get_results_for_run/{}", ids[1]))?.0, 400);
    assert_eq!(stub.ledger().count(), 0);
    Ok(())
}

#[test]
fn a_result_is_amended_where_the_site_allows_it() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(1, Options { marker_field: "version".to_owned(), ..Options::default() })?;
    let one = json!({ "status_id": 1, "comment": "c", "version": "K1" });
    let (_, stored) = post(&stub, &format!("add_result_for_case/{run}/{}", cases[0]), &one)?;
    let edit = format!("edit_result/{}", stored["id"]);
    let (status, edited) = post(&stub, &edit, &json!({ "status_id": 5 }))?;
    assert_eq!((status, &edited["status_id"], &edited["comment"]), (200, &json!(5), &json!("c")));
    stub.vendor().options.edit_results = false;
    assert_eq!(post(&stub, &edit, &json!({ "status_id": 1 }))?.0, 403);
    let ledger = stub.ledger();
    let row = &ledger.rows(&format!("C{}", cases[0]))[0];
    assert_eq!((row.status.as_str(), row.marker.as_str(), ledger.count()), ("5", "K1", 1));
    Ok(())
}

#[test]
fn refusals_have_the_vendors_shape() -> anyhow::Result<()> {
    let (stub, _, run) = stub(1, Options { suite_mode: 3, ..Options::default() })?;
    assert_eq!(call_as(&stub, "eDp5", "get_projects", None)?.0, 401);
    assert_eq!(get(&stub, "get_cases/1")?.0, 400, "several suites: which?");
    assert_eq!(get(&stub, "get_cases/1&suite_id=1")?.0, 200);
    assert_eq!(get(&stub, "get_nothing/1")?.0, 404);
    assert_eq!(post(&stub, "add_run/1", &json!({ "name": "r", "suite_id": 1, "refs": "x".repeat(251) }))?.0, 400);
    let maintenance = Fault::Refused { status: 409, retry_after: RetryAfter::Missing };
    stub.set_plan(Plan::on(Select::any().first(1), maintenance));
    let (status, body) = get(&stub, &format!("get_run/{run}"))?;
    assert!(status == 409 && body["error"].is_string());
    stub.set_clock(Some(0));
    stub.set_quirks(Quirks { limit: Limit::AsDocumented, ..Quirks::default() });
    let statuses: Vec<_> = (0..181).map(|_| get(&stub, "get_statuses").unwrap().0).collect();
    assert_eq!((statuses[179], statuses[180]), (200, 429));
    Ok(())
}

#[test]
fn kernel_faults_reach_into_the_vendor() -> anyhow::Result<()> {
    let (stub, cases, run) = stub(3, Options::default())?;
    let call = format!("add_results_for_cases/{run}");
    stub.set_plan(Plan::on(Select::writes().nth(1), Fault::AppliedInPart { first: 1 }));
    assert_eq!(post(&stub, &call, &passed(&cases, "K1"))?.0, 500);
    assert_eq!(stub.ledger().count(), 1);

    stub.set_plan(Plan::pass());
    stub.set_quirks(Quirks { damage: vec![Damage::CutTo(2)], lag: Lag::Reads(1), ..Quirks::default() });
    post(&stub, &call, &passed(&cases[1..2], "K22"))?;
    assert_eq!(get(&stub, &format!("get_results_for_run/{run}"))?.1["size"], 0, "lags");
    let (_, seen) = get(&stub, &format!("get_results_for_run/{run}"))?;
    assert_eq!(comments(&seen), ["K2", "K1"]);

    let item = format!("C{}", cases[0]);
    let (from, to) = ("failed".to_owned(), "red".to_owned());
    assert!(stub.admin(&Admin::RenameStatus { from, to }));
    assert_eq!(get(&stub, "get_statuses")?.1[4]["name"], "red");
    assert!(stub.admin(&Admin::RemoveItem { cycle: run.to_string(), item: item.clone() }));
    assert_eq!(stub.lost([&item]), [item.as_str()]);
    stub.set_plan(Plan::on(Select::writes().nth(1), Fault::Admin(Admin::CloseCycle(run.to_string()))));
    assert_eq!(post(&stub, &call, &passed(&cases[1..], "K3"))?.0, 403, "closed under the client");
    assert!(stub.admin(&Admin::DeleteCycle(run.to_string())) && !stub.admin(&Admin::DeleteCycle("x".to_owned())));
    assert_eq!(stub.ledger().count(), 0);
    Ok(())
}
