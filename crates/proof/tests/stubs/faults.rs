//! Each fault does what its documentation says, seen by the client, in the ledger and in the log.

use std::time::Duration;

use proof::stubs::{Fault, Plan, Repeat, RetryAfter, Rule, Select, Stub, When};
use serde_json::{Value, json};

use crate::client::{Client, Sight, once};
use crate::toy::{Toy, count, read, write};

const PATIENCE: Duration = Duration::from_secs(20);

/// The first write gets `fault`; what the client saw of it.
fn first(fault: Fault) -> anyhow::Result<(Stub<Toy>, Sight)> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_plan(Plan::on(Select::writes().nth(1), fault));
    let sight = write(&stub, "a", "m1")?;
    Ok((stub, sight))
}

#[test]
fn without_a_fault_all_ways_to_send_a_body_arrive() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    let mut client = Client::connect(stub.addr())?;
    assert_eq!(client.send("POST", "/rows/a%20b", b"m1")?.status(), Some(201));
    let chunked =
        b"POST /rows/c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nm2\r\n1\r\n!\r\n0\r\n\r\n";
    assert_eq!(client.send_raw(chunked)?.status(), Some(201));
    client.write(b"POST /rows/d HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")?;
    assert_eq!(client.read(|got| got.ends_with(b"\r\n\r\n"))?.status(), Some(100));
    assert_eq!(client.send_raw(b"m3")?.status(), Some(201));
    client.write(b"HEAD /rows HTTP/1.1\r\nHost: x\r\n\r\n")?;
    assert_eq!(client.read(|got| got.ends_with(b"\r\n\r\n"))?.status(), Some(200));
    client.write(b"POST /bulk HTTP/1.1\r\nContent-Length: 21\r\n\r\n{\"rows\":[[\"e\",\"m4\"]]}")?;
    assert_eq!(client.read(|got| got.ends_with(b"\r\n\r\n"))?.status(), Some(204), "and the connection is in step");
    let ledger = stub.ledger();
    for (item, marker) in [("a b", "m1"), ("c", "m2!"), ("d", "m3"), ("e", "m4")] {
        assert_eq!(ledger.rows(item)[0].marker, marker);
    }
    assert_eq!(ledger.count(), 4);
    assert_eq!(stub.lost(["a b", "x"]), ["x"]);
    Ok(())
}

#[test]
fn what_comes_after_the_write_hides_it() -> anyhow::Result<()> {
    let stall = |then_answer| Fault::Stall { hold: When::After(Duration::from_millis(5)), then_answer };
    for (fault, seen) in [
        (Fault::ResponseDropped, None),
        (Fault::ErrorAfterWrite(500), Some(500)),
        (Fault::Page { status: 504, applied: true }, Some(504)),
        (Fault::Page { status: 200, applied: true }, Some(200)),
        (stall(true), Some(201)),
        (stall(false), None),
    ] {
        let (stub, sight) = first(fault.clone())?;
        assert_eq!(sight.status(), seen, "{fault:?}");
        assert_eq!(count(&stub, "a"), 1, "{fault:?}");
        let event = &stub.log()[0];
        assert_eq!((event.applied, event.status()), (Some(201), seen), "{fault:?}");
        assert_eq!(write(&stub, "a", "m1")?.status(), Some(201), "only the first");
        assert_eq!(stub.doubled()["a"], 1, "a blind repeat doubles: {fault:?}");
    }
    let (stub, sight) = first(Fault::ResponseTruncated)?;
    assert!(matches!(sight, Sight::Ended(bytes) if bytes > 20), "{sight:?}");
    assert_eq!((count(&stub, "a"), stub.log()[0].status()), (1, None));
    Ok(())
}

#[test]
fn what_comes_instead_of_the_write_prevents_it() -> anyhow::Result<()> {
    let refused = |status| Fault::Refused { status, retry_after: RetryAfter::Missing };
    for (fault, seen) in [
        (Fault::RequestDropped, None),
        (refused(500), Some(500)),
        (refused(409), Some(409)),
        (Fault::Page { status: 502, applied: false }, Some(502)),
    ] {
        let (stub, sight) = first(fault.clone())?;
        assert_eq!(sight.status(), seen, "{fault:?}");
        assert_eq!((count(&stub, "a"), stub.log()[0].applied), (0, None), "{fault:?}");
        assert_eq!(stub.lost(["a"]), ["a"]);
    }
    Ok(())
}

#[test]
fn a_refusal_says_when_to_come_again_in_each_way_that_is_seen() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_clock(Some(784_111_777_000));
    for (retry_after, line) in [
        (RetryAfter::Missing, None),
        (RetryAfter::Seconds(17), Some("Retry-After: 17")),
        (RetryAfter::Seconds(0), Some("Retry-After: 0")),
        (RetryAfter::Date(3), Some("Retry-After: Sun, 06 Nov 1994 08:49:40 GMT")),
    ] {
        stub.set_plan(Plan::on(Select::writes().first(2), Fault::Refused { status: 429, retry_after }));
        for _ in 0..2 {
            let Sight::Answer(429, head, body) = write(&stub, "a", "m1")? else { anyhow::bail!("not refused") };
            assert_eq!(head.lines().find(|line| line.starts_with("Retry-After")), line);
            assert!(serde_json::from_str::<Value>(&body)?["error"].is_string(), "in the vendor's own shape");
        }
        assert_eq!(write(&stub, "a", "m1")?.status(), Some(201), "then accepted");
    }
    assert_eq!(count(&stub, "a"), 4);
    Ok(())
}

#[test]
fn a_late_write_comes_when_it_is_told_to() -> anyhow::Result<()> {
    let (stub, sight) = first(Fault::DeliveredLate(When::Requests(2)))?;
    assert_eq!(sight, Sight::Ended(0));
    assert!(read(&stub, "")?.is_empty(), "the first request after it reads: absent");
    assert_eq!(count(&stub, "a"), 0);
    assert!(read(&stub, "")?.is_empty(), "the second as well: it comes behind that");
    assert_eq!(count(&stub, "a"), 1, "and before that one is answered");
    assert_eq!((stub.log()[0].applied, stub.log()[0].status()), (Some(201), None));

    let (stub, _) = first(Fault::DeliveredLate(When::Told))?;
    assert!(read(&stub, "")?.is_empty());
    stub.release();
    stub.wait_for(PATIENCE, |log| log[0].applied.is_some()).unwrap();
    assert_eq!(count(&stub, "a"), 1);

    let (stub, _) = first(Fault::DeliveredLate(When::After(Duration::from_millis(5))))?;
    stub.wait_for(PATIENCE, |log| log[0].applied.is_some()).unwrap();
    assert_eq!(count(&stub, "a"), 1);
    Ok(())
}

#[test]
fn a_write_takes_effect_after_its_client_has_given_up() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_plan(Plan::on(Select::writes().nth(1), Fault::Held(When::ClientGone)));
    let mut waiting = Client::connect(stub.addr())?;
    waiting.write(b"POST /rows/a HTTP/1.1\r\nContent-Length: 2\r\n\r\nm1")?;
    stub.wait_for(PATIENCE, |log| log.len() == 1).unwrap();
    assert!(read(&stub, "")?.is_empty(), "read-back says absent");
    drop(waiting);
    stub.wait_for(PATIENCE, |log| log[0].applied.is_some()).unwrap();
    assert_eq!((count(&stub, "a"), stub.log()[0].status()), (1, None));

    stub.set_plan(Plan::on(Select::writes(), Fault::Stall { hold: When::ClientGone, then_answer: true }));
    let mut waiting = Client::connect(stub.addr())?;
    waiting.write(b"POST /rows/b HTTP/1.1\r\nContent-Length: 2\r\n\r\nm1")?;
    let log = stub.wait_for(PATIENCE, |log| log.get(2).is_some_and(|third| third.applied.is_some())).unwrap();
    assert_eq!((count(&stub, "b"), log[2].status()), (1, None), "applied, and no answer yet");
    Ok(())
}

#[test]
fn a_held_request_and_a_held_answer_go_on_when_told() -> anyhow::Result<()> {
    for fault in [Fault::Held(When::Told), Fault::Stall { hold: When::Told, then_answer: true }] {
        let before = matches!(fault, Fault::Held(_));
        let stub = Stub::start(Toy::appending())?;
        stub.set_plan(Plan::on(Select::writes().nth(1), fault));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| write(&stub, "a", "m1"));
            stub.wait_for(PATIENCE, |log| log.first().is_some_and(|first| before || first.applied.is_some())).unwrap();
            assert_eq!(count(&stub, "a"), usize::from(!before));
            stub.release();
            assert_eq!(waiting.join().unwrap()?.status(), Some(201));
            anyhow::Ok(())
        })?;
        assert_eq!(count(&stub, "a"), 1);
    }
    Ok(())
}

/// Two at once to `path`; their statuses in order.
fn two(stub: &Stub<Toy>, path: &str) -> anyhow::Result<Vec<Option<u16>>> {
    std::thread::scope(|scope| {
        let both = [(); 2].map(|()| scope.spawn(|| once(stub.addr(), "POST", path, b"m1")));
        let seen = both.map(|one| one.join().unwrap().map(|sight| sight.status()));
        let mut seen = seen.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        seen.sort_unstable();
        Ok(seen)
    })
}

#[test]
fn two_writers_race_only_where_the_vendor_checks_and_then_inserts() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    let meet = Fault::Meet { point: "door".to_owned(), size: 2 };
    stub.set_plan(Plan::on(Select::writes(), meet.clone()));
    stub.vendor().rows.rule = Rule::honest(Repeat::Refuse);
    assert_eq!(two(&stub, "/rows/a")?, [Some(201), Some(409)], "one transaction each");
    assert_eq!(count(&stub, "a"), 1);

    stub.set_plan(Plan::pass());
    stub.meet("once", 2);
    assert_eq!(two(&stub, "/once/b")?, [Some(201), Some(201)], "both looked before either inserted");
    assert_eq!(stub.doubled()["b"], 1);
    assert_eq!(once(stub.addr(), "POST", "/once/b", b"")?.status(), Some(200), "one after the other: found");
    Ok(())
}

#[test]
fn a_bulk_is_applied_in_part() -> anyhow::Result<()> {
    let stub = Stub::start(Toy::appending())?;
    stub.set_plan(Plan::on(Select::writes(), Fault::AppliedInPart { first: 2 }));
    let bulk = json!({ "rows": [["a", "m"], ["b", "m"], ["c", "m"]] }).to_string();
    assert_eq!(once(stub.addr(), "POST", "/bulk", bulk.as_bytes())?.status(), Some(500));
    assert_eq!(stub.lost(["a", "b", "c"]), ["c"]);
    assert_eq!(stub.log()[0].request.body, bulk.as_bytes(), "the log has it as it was sent");
    assert_eq!(write(&stub, "d", "m")?.status(), Some(500));
    assert_eq!(count(&stub, "d"), 0, "a single one is refused");
    Ok(())
}
