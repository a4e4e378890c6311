//! What the stubs of Xray and Zephyr Scale do where no adapter of ours goes: imports and calls that make a cycle each
//! time, and side rows of a repeat, by raw requests.

use proof::stubs::{Door, Stub, XrayCloud, XrayServer, ZephyrCloud, ZephyrServer};
use serde_json::{Value, json};

use crate::client::{Client, Sight};

/// Status and body of one call.
fn call(stub: &Door, token: &str, line: &str, kind: &str, body: &str) -> anyhow::Result<(u16, Value)> {
    let head = format!(
        "{line} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let sight = Client::connect(stub.addr())?.send_raw(&[head.as_bytes(), body.as_bytes()].concat())?;
    let Sight::Answer(status, _, body) = sight else { anyhow::bail!("{line}: {sight:?}") };
    Ok((status, serde_json::from_str(&body)?))
}

fn post(stub: &Door, token: &str, path: &str, body: &Value) -> anyhow::Result<(u16, Value)> {
    call(stub, token, &format!("POST {path}"), "application/json", &body.to_string())
}

#[test]
fn an_import_into_xray_cloud_without_an_execution_makes_one_each_time() -> anyhow::Result<()> {
    let mut vendor = XrayCloud::default();
    let test = vendor.site.add_test("pays");
    let stub = Stub::start(vendor)?;
    let login = json!({ "client_id": "id", "client_secret": "secret" });
    let (status, token) = post(&stub, "", "/api/v2/authenticate", &login)?;
    assert_eq!(status, 200);
    let token = token.as_str().unwrap();
    let file = json!({ "data": "AA==", "filename": "log.txt" });
    let mut import = json!({ "tests": [{ "testKey": test, "status": "PASSED", "evidence": [file] }] });
    let (_, first) = post(&stub, token, "/api/v2/import/execution", &import)?;
    let (_, second) = post(&stub, token, "/api/v2/import/execution", &import)?;
    assert_ne!(first["key"], second["key"]);
    assert_eq!(stub.ledger().rows(&test).len(), 2);
    import["testExecutionKey"] = first["key"].clone();
    let (_, third) = post(&stub, token, "/api/v2/import/execution", &import)?;
    assert_eq!(third["key"], first["key"]);
    assert!(stub.doubled().is_empty(), "the verdict is replaced");
    let ledger = stub.ledger();
    let row = ledger.rows(&test).iter().find(|row| first["key"] == row.cycle).unwrap();
    assert_eq!(row.side, ["log.txt", "log.txt"], "and evidence appended");
    Ok(())
}

#[test]
fn an_import_into_xray_server_tells_what_it_refused() -> anyhow::Result<()> {
    let mut vendor = XrayServer::default();
    let test = vendor.site.add_test("pays");
    let stub = Stub::start(vendor)?;
    let import =
        json!({ "tests": [{ "testKey": test, "status": "PASS" }, { "testKey": "SHOP-99", "status": "PASS" }] });
    let (status, body) = post(&stub, "token", "/rest/raven/2.0/import/execution", &import)?;
    assert_eq!(status, 200);
    assert_eq!(body["testIssues"]["success"][0]["key"], json!(test));
    assert_eq!(body["testIssues"]["error"][0]["testKey"], "SHOP-99");
    assert_eq!(stub.ledger().count(), 1);
    Ok(())
}

#[test]
fn a_report_for_zephyr_cloud_makes_a_cycle_each_time() -> anyhow::Result<()> {
    let mut vendor = ZephyrCloud::default();
    let cases: Vec<String> = (0..12).map(|n| vendor.add_case(&format!("case {n}"))).collect();
    let stub = Stub::start(vendor)?;
    let tests: Vec<String> =
        cases.iter().map(|key| format!("<testcase name=\"{key} x\"><failure/></testcase>")).collect();
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"r.xml\"\r\n\r\n<testsuite>{}</testsuite>\r\n\
         --b\r\nContent-Disposition: form-data; name=\"testCycle\"\r\nContent-Type: application/json\r\n\r\n\
         {{\"name\":\"nightly\"}}\r\n--b--\r\n",
        tests.concat()
    );
    let line = "POST /v2/automations/executions/junit?projectKey=SHOP";
    let kind = "multipart/form-data; boundary=b";
    let (status, first) = call(&stub, "token", line, kind, &form)?;
    let (_, second) = call(&stub, "token", line, kind, &form)?;
    assert_eq!((status, first["testCycle"]["key"].as_str()), (200, Some("SHOP-R1")));
    assert_ne!(first["testCycle"]["key"], second["testCycle"]["key"]);
    let ledger = stub.ledger();
    assert!(cases.iter().all(|case| ledger.rows(case).len() == 2 && ledger.rows(case)[0].status == "Fail"));
    let (_, page) = call(&stub, "token", "GET /v2/testexecutions?projectKey=SHOP&testCycle=SHOP-R1", "", "")?;
    assert_eq!(
        (page["values"].as_array().unwrap().len(), &page["total"], &page["isLast"]),
        (10, &json!(12), &json!(false))
    );
    Ok(())
}

#[test]
fn one_call_makes_a_whole_run_at_zephyr_server_each_time() -> anyhow::Result<()> {
    let mut vendor = ZephyrServer::default();
    let case = vendor.add_case("pays");
    let stub = Stub::start(vendor)?;
    let run = |case: &str| json!({ "projectKey": "SHOP", "name": "n", "folder": "/Nightly", "items": [{ "testCaseKey": case, "status": "Pass" }] });
    let (status, first) = post(&stub, "token", "/rest/atm/1.0/testrun", &run(&case))?;
    let (_, second) = post(&stub, "token", "/rest/atm/1.0/testrun", &run(&case))?;
    assert_eq!((status, first["key"].as_str(), second["key"].as_str()), (201, Some("SHOP-R1"), Some("SHOP-R2")));
    let (status, _) = post(&stub, "token", "/rest/atm/1.0/testrun", &run("SHOP-T9"))?;
    assert_eq!((status, stub.ledger().count()), (400, 2), "all or nothing");
    Ok(())
}
