//! Standing ways of a vendor, repeat rules, jobs and selections.

use std::collections::BTreeSet;

use proof::stubs::{Damage, Fault, JobFate, Lag, Limit, Plan, Quirks, Rate, Repeat, RetryAfter, Rule, Select, Stub};
use serde_json::Value;

use crate::client::{Client, Sight, once};
use crate::toy::{Toy, count, read, write};

#[test]
fn the_repeat_rule_is_data_and_can_lie() -> anyhow::Result<()> {
    // How a second write of the item is answered, and what stands then.
    for (rule, status, texts) in [
        (Rule::honest(Repeat::Append), 201, vec!["m1", "m2"]),
        (Rule::honest(Repeat::Replace), 200, vec!["m2"]),
        (Rule::honest(Repeat::Refuse), 409, vec!["m1"]),
        (Rule::honest(Repeat::Collapse), 200, vec!["m1"]),
        (Rule::lying(Repeat::Replace, Repeat::Append), 200, vec!["m1", "m2"]),
        (Rule::lying(Repeat::Append, Repeat::Collapse), 201, vec!["m1"]),
        (Rule::lying(Repeat::Refuse, Repeat::Replace), 409, vec!["m2"]),
    ] {
        let stub = Stub::start(Toy::new(rule))?;
        assert_eq!(write(&stub, "a", "m1")?.status(), Some(201));
        assert_eq!(write(&stub, "a", "m2")?.status(), Some(status), "{rule:?}");
        assert_eq!(read(&stub, "")?, texts, "{rule:?}");
        assert_eq!(stub.doubled().values().sum::<usize>(), texts.len() - 1);
        assert!(stub.ledger().doubled_by(|row| row.marker.clone()).is_empty(), "two rounds are no double");
    }
    Ok(())
}

#[test]
fn pages_skip_and_repeat() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    for text in ["1", "2", "3", "4", "5"] {
        write(&stub, "a", text)?;
    }
    let pages = || anyhow::Ok([read(&stub, "?offset=0&limit=2")?, read(&stub, "?offset=2&limit=2")?]);
    assert_eq!(pages()?, [["1", "2"], ["3", "4"]]);
    stub.set_plan(Plan::on(Select::reads(), Fault::PageSkips));
    assert_eq!(pages()?, [["1", "2"], ["4", "5"]]);
    stub.set_plan(Plan::on(Select::reads(), Fault::PageRepeats));
    assert_eq!(pages()?, [["1", "2"], ["2", "3"]]);
    assert_eq!(read(&stub, "?offset=9&limit=2")?, Vec::<String>::new());
    Ok(())
}

#[test]
fn another_writer_comes_between_two_pages() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    write(&stub, "a", "1")?;
    stub.before(Select::reads().nth(2), |toy, at| {
        toy.rows.push(at, ("b".to_owned(), "2".to_owned()));
    });
    assert_eq!(read(&stub, "")?, ["1"]);
    assert_eq!(read(&stub, "")?, ["1", "2"]);
    assert_eq!(read(&stub, "")?, ["1", "2"], "once only");
    Ok(())
}

#[test]
fn lists_lag_by_reads_and_by_time() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_clock(Some(1_000_000));
    stub.set_quirks(Quirks { lag: Lag::Reads(2), ..Quirks::default() });
    write(&stub, "a", "1")?;
    assert_eq!([read(&stub, "")?.len(), read(&stub, "")?.len(), read(&stub, "")?.len()], [0, 0, 1]);
    stub.set_quirks(Quirks { lag: Lag::Ms(500), ..Quirks::default() });
    stub.set_clock(Some(1_000_500));
    write(&stub, "a", "2")?;
    stub.set_clock(Some(1_000_999));
    assert_eq!(read(&stub, "")?, ["1"]);
    stub.set_clock(Some(1_001_000));
    assert_eq!(read(&stub, "")?, ["1", "2"]);
    assert_eq!(count(&stub, "a"), 2, "the ledger never lags");

    stub.vendor().rows.rule = Rule::honest(Repeat::Replace);
    stub.set_quirks(Quirks { lag: Lag::Reads(1), ..Quirks::default() });
    write(&stub, "a", "3")?;
    assert_eq!((read(&stub, "")?, read(&stub, "")?), (vec!["1".into(), "2".into()], vec!["1".into(), "3".into()]));
    Ok(())
}

#[test]
fn texts_are_kept_as_the_vendor_keeps_them() -> anyhow::Result<()> {
    for (damage, kept) in [
        (Damage::CutTo(4), " <ä\n"),
        (Damage::HtmlEscaped, " &lt;ä\n&amp;\r\n\"&#39; "),
        (Damage::Trimmed, "<ä\n&\r\n\"'"),
        (Damage::LinesLf, " <ä\n&\n\"' "),
        (Damage::LinesCrlf, " <ä\r\n&\r\n\"' "),
    ] {
        let stub = Stub::start(Toy::appending())?;
        stub.set_quirks(Quirks { damage: vec![damage], ..Quirks::default() });
        write(&stub, "a", " <ä\n&\r\n\"' ")?;
        let kept = if damage == Damage::HtmlEscaped { kept.replace('"', "&quot;") } else { kept.to_owned() };
        assert_eq!(read(&stub, "")?, [kept], "{damage:?}");
    }
    Ok(())
}

#[test]
fn unknown_members_and_another_clock_are_shown() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_clock(Some(1_000_000));
    stub.set_quirks(Quirks { extra_members: true, skew_ms: -7, ..Quirks::default() });
    let Sight::Answer(_, _, body) = Client::connect(stub.addr())?.send("GET", "/rows", b"")? else { anyhow::bail!("") };
    let body: Value = serde_json::from_str(&body)?;
    assert_eq!(body["now"], 999_993);
    assert!(body["zz_new_member"].is_object() && body["rows"].is_array());
    Ok(())
}

#[test]
fn the_rate_is_limited_in_windows() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_clock(Some(1_000_000));
    stub.set_quirks(Quirks { limit: Limit::AsDocumented, ..Quirks::default() });
    stub.set_plan(Plan::on(Select::writes().nth(3), Fault::ResponseDropped));
    let statuses = |n| (0..n).map(|_| Ok(write(&stub, "a", "m")?.status())).collect::<anyhow::Result<Vec<_>>>();
    assert_eq!(statuses(2)?, [Some(201); 2]);
    stub.set_clock(Some(1_003_001));
    let Sight::Answer(429, head, _) = write(&stub, "a", "m")? else { anyhow::bail!("let through") };
    assert!(head.contains("Retry-After: 7"), "{head}");
    stub.set_clock(Some(1_010_000));
    assert_eq!(statuses(2)?, [None, Some(201)], "what is over the limit does not count for the plan");
    stub.set_quirks(Quirks {
        limit: Limit::Rate(Rate { requests: 1, per_ms: 10_000, tells: false }),
        ..Quirks::default()
    });
    let Sight::Answer(429, head, _) = write(&stub, "a", "m")? else { anyhow::bail!("let through") };
    assert!(!head.contains("Retry-After"), "{head}");
    assert_eq!(count(&stub, "a"), 4);
    Ok(())
}

#[test]
fn jobs_end_as_they_are_told_to() -> anyhow::Result<()> {
    let done = ["done", "done", "done"];
    for (fate, polls, rows) in [
        (JobFate::Done, done, 1),
        (JobFate::Polls(2), ["pending", "pending", "done"], 1),
        (JobFate::AfterMs(60_000), ["pending"; 3], 0),
        (JobFate::Stuck, ["pending"; 3], 0),
        (JobFate::Fails, ["failed"; 3], 0),
        (JobFate::LosesId, ["404"; 3], 1),
    ] {
        let stub = Stub::start(Toy::appending())?;
        stub.set_plan(Plan::on(Select::writes().what("jobs"), Fault::Job(fate)));
        assert_eq!(once(stub.addr(), "POST", "/jobs/a", b"m")?.status(), Some(202));
        for poll in polls {
            let Sight::Answer(status, _, text) = once(stub.addr(), "GET", "/jobs/1", b"")? else { anyhow::bail!("") };
            assert_eq!(if status == 404 { "404" } else { text.as_str() }, poll, "{fate:?}");
        }
        assert_eq!(count(&stub, "a"), rows, "{fate:?}");
    }
    let stub = Stub::start(Toy::appending())?;
    stub.set_clock(Some(0));
    stub.set_quirks(Quirks { job: JobFate::AfterMs(500), ..Quirks::default() });
    once(stub.addr(), "POST", "/jobs/a", b"m")?;
    stub.set_clock(Some(499));
    assert_eq!(count(&stub, "a"), 0);
    stub.set_clock(Some(500));
    assert_eq!(count(&stub, "a"), 1, "time alone does it");
    Ok(())
}

/// Which of these writes are refused.
fn refused(select: Select, items: &[&str]) -> anyhow::Result<Vec<usize>> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_plan(Plan::on(select, Fault::Refused { status: 503, retry_after: RetryAfter::Missing }));
    let mut hit = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if write(&stub, item, &format!("text of {item}"))?.status() == Some(503) {
            hit.push(at);
        }
        assert!(read(&stub, "").is_ok(), "reads pass");
    }
    Ok(hit)
}

#[test]
fn selections_choose_by_number_name_and_odds() -> anyhow::Result<()> {
    let items = ["a", "b", "a", "b", "a"];
    let writes = Select::writes;
    assert_eq!(refused(writes(), &items)?, [0, 1, 2, 3, 4]);
    assert_eq!(refused(writes().nth(2), &items)?, [1]);
    assert_eq!(refused(writes().first(2), &items)?, [0, 1]);
    assert_eq!(refused(writes().from(4), &items)?, [3, 4]);
    assert_eq!(refused(writes().path("/rows/b").nth(2), &items)?, [3]);
    assert_eq!(refused(writes().body("of a").nth(2), &items)?, [2]);
    assert_eq!(refused(writes().method("PUT"), &items)?, [0; 0]);
    assert_eq!(refused(writes().what("rows").nth(5), &items)?, [4]);
    assert_eq!(refused(Select::any().method("post").nth(1), &items)?, [0]);
    let many = vec!["a"; 60];
    let drawn: Vec<_> =
        [7, 7, 8].into_iter().map(|seed| refused(writes().odds(seed, 0.5), &many)).collect::<Result<_, _>>()?;
    assert_eq!(drawn[0], drawn[1], "the same seed hits the same");
    assert_ne!(drawn[0], drawn[2]);
    assert!((10..50).contains(&drawn[0].len()), "{drawn:?}");
    Ok(())
}

#[test]
fn several_faults_hit_one_request_and_each_selection_counts_for_itself() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    let plan = Plan::on(Select::writes().nth(2), Fault::ResponseDropped);
    stub.set_plan(plan.and(Select::writes().path("/rows/b").nth(1), Fault::Job(JobFate::Stuck)));
    write(&stub, "a", "1")?;
    assert_eq!(write(&stub, "b", "2")?, Sight::Ended(0));
    assert_eq!(stub.log()[1].faults, [Fault::ResponseDropped, Fault::Job(JobFate::Stuck)]);
    let traffic = stub.traffic();
    assert_eq!(traffic[0]["answer"]["body"]["id"], 1);
    assert_eq!((&traffic[1]["target"], &traffic[1]["answer"]), (&"/rows/b".into(), &Value::Null));
    let members: BTreeSet<_> = traffic[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, BTreeSet::from(["method", "target", "body", "answer"]), "no headers: they hold secrets");
    Ok(())
}
