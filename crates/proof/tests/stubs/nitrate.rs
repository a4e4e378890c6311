//! The behaviour of the Nitrate stub that was measured on a live one, by raw requests.

use proof::stubs::nitrate::Options;
use proof::stubs::{Nitrate, Stub};

use crate::client::{Client, Sight};

/// Status and text of one call. Parameters are XML already.
fn call(stub: &Stub<Nitrate>, session: &str, method: &str, params: &[&str]) -> anyhow::Result<(u16, String)> {
    let params: String = params.iter().map(|param| ["<param><value>", param, "</value></param>"].concat()).collect();
    let body = format!("<methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>");
    let head = format!(
        "POST /xmlrpc/ HTTP/1.1\r\nHost: x\r\nCookie: sessionid={session}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let sight = Client::connect(stub.addr())?.send_raw(&[head.as_bytes(), body.as_bytes()].concat())?;
    let Sight::Answer(status, _, body) = sight else { anyhow::bail!("{method}: {sight:?}") };
    Ok((status, body))
}

fn int(number: u64) -> String {
    format!("<int>{number}</int>")
}

fn list(numbers: &[u64]) -> String {
    let values: String = numbers.iter().map(|number| ["<value>", &int(*number), "</value>"].concat()).collect();
    format!("<array><data>{values}</data></array>")
}

fn members(of: &[(&str, String)]) -> String {
    let member = |(name, value): &(&str, String)| format!("<member><name>{name}</name><value>{value}</value></member>");
    format!("<struct>{}</struct>", of.iter().map(member).collect::<String>())
}

/// A stub with two cases and a run of the first, and a session there.
fn stub(writes_faults: bool) -> anyhow::Result<(Stub<Nitrate>, String, [u64; 2], u64)> {
    let mut vendor = Nitrate::new(Options { writes_faults, ..Options::default() });
    let cases = ["adds", "pays"].map(|name| vendor.add_case(name));
    let run = vendor.add_run("r", &cases[..1]);
    let stub = Stub::start(vendor)?;
    let text = |text: &str| format!("<string>{text}</string>");
    let who = members(&[("username", text("bot@example.com")), ("password", text("key"))]);
    let (status, answer) = call(&stub, "", "Auth.login", &[&who])?;
    assert_eq!(status, 200);
    let session =
        answer.split("<string>").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default().to_owned();
    Ok((stub, session, cases, run))
}

#[test]
fn a_second_row_of_a_case_is_refused_and_spoils_the_whole_call() -> anyhow::Result<()> {
    for (writes_faults, status) in [(false, 500), (true, 200)] {
        let (stub, session, cases, run) = stub(writes_faults)?;
        let call = |method: &str, params: &[&str]| call(&stub, &session, method, params);
        let row = members(&[("run", int(run)), ("case", int(cases[0])), ("case_run_status", int(4))]);
        let (refused, text) = call("TestCaseRun.create", &[&row])?;
        assert_eq!((refused, text.contains("<fault>")), (status, writes_faults), "{text}");
        assert_eq!(text.contains("409"), writes_faults, "{text}");
        let (refused, _) = call("TestRun.add_cases", &[&list(&[run]), &list(&cases)])?;
        assert_eq!(refused, status);
        let (_, rows) = call("TestRun.get_test_case_runs", &[&int(run)])?;
        assert_eq!(rows.matches("case_run_id").count(), 1, "the one that did not exist was not added either");
        assert_eq!(call("TestRun.add_cases", &[&list(&[run]), &list(&cases[1..])])?.0, 200);
        // Without a session nothing is done.
        assert_eq!(self::call(&stub, "x", "TestRun.get_test_case_runs", &[&int(run)])?.0, status);
    }
    Ok(())
}

#[test]
fn verdict_and_notes_are_replaced_and_equal_words_are_one_comment() -> anyhow::Result<()> {
    let (stub, session, _, run) = stub(false)?;
    let call = |method: &str, params: &[&str]| call(&stub, &session, method, params);
    let (_, rows) = call("TestRun.get_test_case_runs", &[&int(run)])?;
    let row: u64 = rows.split("case_run_id</name><value><int>").nth(1).unwrap().split('<').next().unwrap().parse()?;
    for (status, notes) in [(4, "one"), (5, "two"), (5, "two")] {
        let values = members(&[("case_run_status", int(status)), ("notes", format!("<string>{notes}</string>"))]);
        assert_eq!(call("TestCaseRun.update", &[&list(&[row]), &values])?.0, 200);
    }
    let ledger = stub.ledger();
    let [recorded] = ledger.rows("adds") else { panic!("{ledger:?}") };
    assert_eq!((recorded.status.as_str(), recorded.marker.as_str()), ("5", "two"));
    for words in ["same words", "same words", "other words"] {
        call("TestCaseRun.add_comment", &[&list(&[row]), &format!("<string>{words}</string>")])?;
    }
    assert_eq!(stub.vendor().comments(row), ["same words", "other words"]);
    let log = ["<string>log</string>", "<string>https://x</string>"];
    for _ in 0..2 {
        call("TestCaseRun.attach_log", &[&int(row), log[0], log[1]])?;
    }
    assert_eq!(stub.ledger().rows("adds")[0].side.iter().filter(|side| side.starts_with("log")).count(), 2);
    let (status, none) = call("TestRun.get", &[&int(999_999)])?;
    assert_eq!((status, none.contains("<struct></struct>")), (200, true), "{none}");
    // Rows that are gone are left out, and that is no fault.
    let (status, none) = call("TestCaseRun.update", &[&list(&[999_999]), &members(&[("case_run_status", int(4))])])?;
    assert_eq!((status, none.contains("case_run_id")), (200, false), "{none}");
    Ok(())
}
