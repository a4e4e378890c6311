//! What an audit says of cycles that are gone, unknown, shared with other jobs, or called by a name; and what a repair leaves
//! to people.

use proof::spawn::Finished;
use proof::stubs::generic::Service;
use proof::stubs::{Admin, Fault, Plan, ReportPortal, RetryAfter, Select, Stamp, Stub, Vendor as _};
use serde_json::{Value, json};

use crate::products::DESCRIBED;
use crate::served::{RULE, serve};
use crate::site::{CASES, Folder, config, rail, report};

fn object(finished: &Finished) -> Value {
    serde_json::from_str(finished.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {finished}"))
}

fn audit(folder: &Folder, cycle: &str, more: &[&str]) -> Finished {
    folder.run(&[&["audit", "there", "--cycle", cycle][..], more].concat()).output().unwrap()
}

#[test]
fn a_run_that_was_deleted_is_said_and_the_others_are_audited() {
    let (stub, mut folder, _) = rail();
    let mut cycles = Vec::new();
    for run in ["7", "8"] {
        run.clone_into(&mut folder.run);
        let (pushed, object) = folder.push(&[]);
        assert_eq!(pushed.code, Some(0), "{pushed}");
        cycles.push(object["forward"]["cycle"].as_str().unwrap().to_owned());
    }
    let (gone, kept) = (&cycles[0], cycles[1].parse::<u64>().unwrap());
    {
        let mut vendor = stub.vendor();
        assert!(vendor.admin(&Admin::DeleteCycle(gone.clone())));
        let twin = vendor.results.iter().find(|row| row.data.run == kept).unwrap().data.clone();
        vendor.results.push(Stamp::default(), twin);
    }
    let found = audit(&folder, "main", &["--json"]);
    assert_eq!(found.code, Some(1), "{found}");
    let audits = &object(&found)["audits"];
    assert_eq!((&audits[0]["gone"], &audits[0]["counts"]["missing"]), (&json!([gone]), &json!(CASES)), "{audits:#}");
    assert_eq!((&audits[1]["gone"], &audits[1]["counts"]["doubled_rows"]), (&Value::Null, &json!(1)), "{audits:#}");
    let line = format!("cycle {gone} is not there any more");
    let text = audit(&folder, "main", &[]);
    assert!(text.stdout.contains(&line) && text.stdout.contains("doubled"), "{text}");
    let csv = audit(&folder, "main", &["--format", "csv"]);
    assert!(csv.stderr.contains(&line) && !csv.stdout.contains(&line), "{csv}");
    let repair = folder.run(&["repair", "there", "--cycle", "main", "--apply"]).output().unwrap();
    assert_eq!(repair.code, Some(0), "{repair}");
    let after = audit(&folder, "main", &["--json"]);
    assert_eq!(object(&after)["audits"][1]["counts"]["marked_repeats"], 1, "{after}");
}

#[test]
fn a_service_that_cannot_be_asked_for_its_cycles_has_only_those_that_hold_something() {
    let stub = Stub::start(Service::appending()).unwrap();
    let folder = |described: &str| Folder::new(&config(&stub, "generic", "shop", described));
    let first = folder(DESCRIBED);
    first.write("report.xml", &report(&["adds".to_owned(), "pays".to_owned()], &[]));
    let (pushed, object) = first.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let run = object["forward"]["cycle"].as_str().unwrap();
    let refusing = DESCRIBED.replace("missing-is-empty = true", "missing-is-empty = false");
    for described in [DESCRIBED, &refusing] {
        let other = folder(described);
        let clean = audit(&other, run, &["--json"]);
        assert_eq!(clean.code, Some(0), "{clean}");
        let audits = self::object(&clean)["audits"].clone();
        assert_eq!((&audits[0]["counts"]["cycles"], &audits[0]["counts"]["rows"]), (&json!(1), &json!(2)), "{clean}");
        let unknown = audit(&other, "nope", &[]);
        assert_eq!(unknown.code, Some(4), "{unknown}");
        assert!(unknown.stderr.contains("there is none"), "{unknown}");
    }
    let wrong = audit(&folder(&DESCRIBED.replace("items-at = \"/results\"", "items-at = \"/rows\"")), run, &[]);
    assert_eq!(wrong.code, Some(4), "{wrong}");
    assert!(wrong.stderr.contains("leads to no array") && !wrong.stderr.contains("there is none"), "{wrong}");
}

#[test]
fn what_another_jobs_ledger_knows_is_listed_and_nothing_wrong() {
    let (stub, folder, names) = rail();
    let other = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
    folder.write("report.xml", &report(&names[..3], &[]));
    other.write("report.xml", &report(&names[3..], &[]));
    for (job, shard) in [(&folder, "1/2"), (&other, "2/2")] {
        let (pushed, _) = job.push(&["--shard", shard]);
        assert_eq!(pushed.code, Some(0), "{pushed}");
    }
    let found = audit(&folder, "main", &["--json"]);
    assert_eq!(found.code, Some(0), "{found}");
    let audits = &object(&found)["audits"];
    assert_eq!((&audits[0]["counts"]["cycles"], &audits[0]["counts"]["orphans"]), (&json!(1), &json!(CASES - 3)));
    let finding = &audits[0]["findings"][0];
    assert_eq!((&finding["finding"], &finding["perhaps_anothers"]), (&json!("orphan"), &json!(true)), "{finding:#}");
}

#[test]
fn what_a_servers_store_does_not_know_is_wrong() {
    let (stub, folder, names) = rail();
    let other = Folder::new(&config(&stub, "testrail", "1", "user = \"bot@example.com\"\n"));
    folder.write("report.xml", &report(&names[..3], &[]));
    other.write("report.xml", &report(&names[3..], &[]));
    let server = serve(&folder, RULE);
    let url = server.url();
    let place = ["--project", "shop", "--cycle", "main", "--run", "7"];
    let push = [&["push", "report.xml", "--to", &url, "--wait-forward", "--shard", "1/2"][..], &place].concat();
    let pushed = folder.run(&push).output().unwrap();
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let (pushed, _) = other.push(&["--shard", "2/2"]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let found = audit(&folder, "main", &["--json"]);
    assert_eq!(found.code, Some(1), "{found}");
    assert_eq!(object(&found)["audits"][0]["counts"]["orphans"], CASES - 3, "{found}");
}

#[test]
fn a_cycle_is_found_by_its_name_where_an_unknown_id_is_no_refusal() {
    let stub = Stub::start(ReportPortal::default()).unwrap();
    let folder = || Folder::new(&config(&stub, "reportportal", "demo", ""));
    let first = folder();
    first.write("report.xml", &report(&["adds".to_owned()], &[]));
    let (pushed, _) = first.push(&[]);
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let known = object(&audit(&first, "main", &["--json"]));
    let seen = &known["audits"][0]["cycles"][0];
    let named = audit(&folder(), seen["name"].as_str().unwrap(), &["--json"]);
    assert_eq!(named.code, Some(0), "{named}");
    assert_eq!(object(&named)["audits"][0]["cycles"][0]["cycle"], seen["cycle"], "{named}");
    assert_eq!(audit(&folder(), "nobody's", &[]).code, Some(4));
}

#[test]
fn a_search_for_a_name_without_an_answer_finds_nothing_out() {
    let (stub, folder, _) = rail();
    let none = audit(&folder, "nightly", &[]);
    assert_eq!(none.code, Some(4), "{none}");
    assert!(none.stderr.contains("there is none"), "{none}");
    let refused = |status| Fault::Refused { status, retry_after: RetryAfter::Missing };
    for (status, code) in [(500, 75), (403, 4)] {
        stub.set_plan(Plan::on(Select::reads().what("get_runs"), refused(status)));
        let unknown = audit(&folder, "nightly", &["--deadline", "1s"]);
        assert_eq!(unknown.code, Some(code), "{unknown}");
        assert!(!unknown.stderr.contains("there is none"), "{unknown}");
    }
}

#[test]
fn no_text_of_a_row_is_a_command_for_the_runner() {
    let (stub, folder, names) = rail();
    let case = names[0][1..names[0].find(' ').unwrap()].parse().unwrap();
    let run = {
        let mut vendor = stub.vendor();
        let run = vendor.add_run("##vso[task.complete]nightly", &[case]);
        for second in [0, 1] {
            let at = Stamp { unix_ms: 1_790_000_000_000 + second * 1000, ..Stamp::default() };
            vendor.foreign_result(at, run, case, 1, "##vso[task.setvariable variable=x]y").unwrap();
        }
        run.to_string()
    };
    let text = audit(&folder, &run, &[]);
    assert_eq!(text.code, Some(1), "{text}");
    assert!(text.stdout.contains("# #vso[task.setvariable") && text.stdout.contains("# #vso[task.complete"), "{text}");
    let json = audit(&folder, &run, &["--json"]);
    let repair = folder.run(&["repair", "there", "--cycle", &run, "--likely"]).output().unwrap();
    for said in [text, json, repair] {
        assert!(!said.stdout.contains("##vso[") && !said.stderr.contains("##vso["), "{said}");
    }
}

#[test]
fn a_double_that_somebody_triaged_is_left_to_people() {
    for triaged in [false, true] {
        let stub = Stub::start(ReportPortal::default()).unwrap();
        let folder = Folder::new(&config(&stub, "reportportal", "demo", ""));
        folder.write("report.xml", &report(&["adds".to_owned()], &[0]));
        let (pushed, _) = folder.push(&[]);
        assert_eq!(pushed.code, Some(0), "{pushed}");
        {
            let mut vendor = stub.vendor();
            let mut twin = vendor.items.iter().next().unwrap().data.clone();
            "ffffffff-0000-4000-8000-000000000002".clone_into(&mut twin.uuid);
            if triaged {
                (twin.issue, twin.remark) = (Some("pb001".to_owned()), Some("SHOP-7 breaks it".to_owned()));
            }
            vendor.items.push(Stamp { unix_ms: 1_890_000_000_000, ..Stamp::default() }, twin);
        }
        let args = ["repair", "there", "--cycle", "main", "--apply", "--json"];
        let repair = folder.run(&args).output().unwrap();
        assert_eq!(repair.code, Some(i32::from(triaged)), "{repair}");
        let left = object(&repair)["plan"][0]["not_possible"].as_array().unwrap().len();
        assert_eq!((left, stub.ledger().count()), (usize::from(triaged), 1 + usize::from(triaged)), "{repair}");
    }
}
