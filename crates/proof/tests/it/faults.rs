//! Each fault does what its documentation says, counted at the upstream and at the client.

use std::time::Duration;

use proof::proxy::{Fault, FaultProxy, Plan};

use crate::client::{Client, Sight, is_whole, once};
use crate::upstream::Upstream;

const BODY: &[u8] = b"0123456789abcdef";
const SHORT: Duration = Duration::from_millis(30);
const LONG: Duration = Duration::from_hours(1);

fn pair(plan: Plan) -> anyhow::Result<(Upstream, FaultProxy)> {
    let upstream = Upstream::start()?;
    let proxy = FaultProxy::start_blocking(upstream.addr, plan)?;
    Ok((upstream, proxy))
}

/// The first write gets `fault`; what the client saw of it.
fn first(fault: Fault) -> anyhow::Result<(Upstream, FaultProxy, Sight)> {
    let (upstream, proxy) = pair(Plan::nth(1, fault))?;
    let sight = once(proxy.addr(), "POST", "/a", BODY)?;
    Ok((upstream, proxy, sight))
}

/// The statuses in the log.
fn statuses(proxy: &FaultProxy) -> Vec<Option<u16>> {
    proxy.log().iter().map(|event| event.upstream_status).collect()
}

#[test]
fn without_a_fault_everything_passes_unchanged() -> anyhow::Result<()> {
    let (upstream, proxy) = pair(Plan::pass())?;
    let mut client = Client::connect(proxy.addr())?;
    assert_eq!(client.send("POST", "/a?b=c", BODY)?.status(), Some(201));
    assert_eq!(client.send("GET", "/a", b"")?.status(), Some(201));
    let chunked = b"PUT /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n";
    assert_eq!(client.send_raw(chunked)?.status(), Some(201));
    let Sight::Answer(201, head, body) = client.send("GET", "/chunked", b"")? else { anyhow::bail!("chunked") };
    assert!(head.contains("chunked") && body.ends_with("echo 0\r\n0\r\n\r\n"), "{head} {body}");
    let seen = upstream.seen();
    assert!(seen.iter().all(|seen| seen.whole));
    assert_eq!(seen[0].line, "POST /a?b=c HTTP/1.1");
    assert_eq!(seen[0].body, BODY);
    assert_eq!(seen[2].body, b"3;x=y\r\nabc\r\n0\r\n\r\n");
    let log = proxy.log();
    assert_eq!(log[0].key.as_deref(), Some("k1"));
    assert_eq!((log[0].request_no, log[0].method.as_str(), log[0].path.as_str()), (1, "POST", "/a?b=c"));
    assert_eq!(statuses(&proxy), [Some(201); 4]);
    assert_eq!(proxy.faults(), 0);
    Ok(())
}

#[test]
fn the_upstream_is_told_its_own_host_where_one_is_set() -> anyhow::Result<()> {
    let (upstream, proxy) = pair(Plan::pass())?;
    once(proxy.addr(), "POST", "/a", BODY)?;
    proxy.set_host("tally.example.com:8443");
    once(proxy.addr(), "POST", "/a", BODY)?;
    let seen = upstream.wait_seen(2)?;
    let hosts = |head: &str| head.lines().filter(|line| line.starts_with("Host:")).map(str::to_owned).collect();
    let told: Vec<Vec<String>> = seen.iter().map(|seen| hosts(&seen.head)).collect();
    assert_eq!(told, [vec!["Host: x"], vec!["Host: tally.example.com:8443"]]);
    assert_eq!(seen[0].body, seen[1].body);
    Ok(())
}

#[test]
fn answers_without_length_or_body_and_early_refusals_pass() -> anyhow::Result<()> {
    let (_upstream, proxy) = pair(Plan::pass())?;
    assert!(matches!(once(proxy.addr(), "POST", "/close", b"")?, Sight::Ended(count) if count > 6));
    let mut client = Client::connect(proxy.addr())?;
    client.write(b"HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n")?;
    assert_eq!(client.read(|got| got.ends_with(b"\r\n\r\n"))?.status(), Some(201));
    assert_eq!(client.send("GET", "/y", b"")?.status(), Some(201), "the connection is still in step");
    // Larger than what the sockets between hold: the answer comes while the body is still being sent.
    let large = vec![b'x'; 16 << 20];
    assert_eq!(once(proxy.addr(), "POST", "/refuse", &large)?.status(), Some(413));
    Ok(())
}

#[test]
fn an_endless_answer_is_passed_on_as_it_comes() -> anyhow::Result<()> {
    let (_upstream, proxy) = pair(Plan::pass())?;
    let mut client = Client::connect(proxy.addr())?;
    client.write(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let sight = client.read(|got| got.ends_with(b"echo 0\r\n"))?;
    assert_eq!(sight.status(), Some(201));
    Ok(())
}

#[test]
fn expect_continue_is_answered_and_not_forwarded() -> anyhow::Result<()> {
    let (upstream, proxy) = pair(Plan::pass())?;
    let mut client = Client::connect(proxy.addr())?;
    client.write(b"POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")?;
    assert_eq!(client.read(|got| got.ends_with(b"\r\n\r\n"))?.status(), Some(100));
    assert_eq!(client.send_raw(b"abc")?.status(), Some(201));
    assert_eq!(upstream.seen()[0].body, b"abc");
    assert!(!upstream.seen()[0].head.contains("Expect"), "the proxy has answered it");
    Ok(())
}

#[test]
fn response_dropped() -> anyhow::Result<()> {
    let (upstream, proxy, sight) = first(Fault::ResponseDropped)?;
    assert_eq!(sight, Sight::Ended(0));
    assert_eq!(upstream.seen()[0].body, BODY);
    assert_eq!(statuses(&proxy), [Some(201)]);
    Ok(())
}

#[test]
fn request_dropped() -> anyhow::Result<()> {
    let (upstream, proxy, sight) = first(Fault::RequestDropped)?;
    assert_eq!(sight, Sight::Ended(0));
    assert_eq!(upstream.seen(), []);
    assert_eq!(statuses(&proxy), [None]);
    Ok(())
}

#[test]
fn cut_mid_request() -> anyhow::Result<()> {
    let (upstream, proxy, sight) = first(Fault::CutMidRequest)?;
    assert_eq!(sight, Sight::Reset(0));
    let seen = upstream.wait_seen(1)?;
    assert_eq!((seen[0].whole, seen[0].body.as_slice()), (false, &BODY[..8]));
    assert_eq!(statuses(&proxy), [None]);
    proxy.set_plan(Plan::nth(1, Fault::CutMidRequest));
    assert_eq!(once(proxy.addr(), "DELETE", "/a", b"")?, Sight::Reset(0));
    assert_eq!(upstream.wait_seen(2)?[1].line, "cut head");
    Ok(())
}

#[test]
fn gateway_pages_instead_of_the_answer() -> anyhow::Result<()> {
    for (fault, status, arrivals) in [
        (Fault::GatewayTimeoutAfterWrite, 504, 1),
        (Fault::BadGateway502 { forwarded: true }, 502, 1),
        (Fault::BadGateway502 { forwarded: false }, 502, 0),
    ] {
        let (upstream, proxy) = pair(Plan::nth(1, fault))?;
        let mut client = Client::connect(proxy.addr())?;
        let Sight::Answer(got, head, page) = client.send("POST", "/a", BODY)? else { anyhow::bail!("{fault}") };
        assert_eq!(got, status);
        assert!(head.contains("text/html") && page.contains("<html>"), "{head}{page}");
        assert_eq!(upstream.seen().len(), arrivals, "{fault}");
        assert_eq!(client.send("POST", "/a", BODY)?.status(), Some(201), "the connection stays open");
    }
    Ok(())
}

#[test]
fn unavailable_is_an_honest_refusal() -> anyhow::Result<()> {
    let (upstream, _proxy, sight) = first(Fault::UnavailableWithRetryAfter { seconds: 7 })?;
    let Sight::Answer(503, head, body) = sight else { anyhow::bail!("{sight:?}") };
    assert!(head.contains("Retry-After: 7") && head.contains("application/problem+json"), "{head}");
    let problem: serde_json::Value = serde_json::from_str(&body)?;
    assert_eq!(problem["written"], "no");
    assert_eq!(upstream.seen(), []);
    Ok(())
}

#[test]
fn stalls_end_late_closed_or_with_the_client() -> anyhow::Result<()> {
    let (upstream, _proxy, sight) = first(Fault::Stall { hold: SHORT, then_answer: true })?;
    assert_eq!((sight.status(), upstream.seen().len()), (Some(201), 1));
    let (upstream, _proxy, sight) = first(Fault::Stall { hold: SHORT, then_answer: false })?;
    assert_eq!((sight, upstream.seen().len()), (Sight::Ended(0), 1));

    let (_upstream, proxy) = pair(Plan::nth(1, Fault::Stall { hold: LONG, then_answer: true }))?;
    let mut client = Client::connect(proxy.addr())?;
    client.write(b"POST /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx")?;
    let held = proxy.wait_for(Duration::from_secs(10), |log| log.iter().any(|event| event.upstream_status.is_some()));
    assert!(held.is_some(), "the answer is there and held");
    drop(client);
    assert_eq!(once(proxy.addr(), "POST", "/b", BODY)?.status(), Some(201));
    Ok(())
}

#[test]
fn duplicate_delivery() -> anyhow::Result<()> {
    for concurrent in [false, true] {
        let (upstream, proxy, sight) = first(Fault::DuplicateDelivery { concurrent })?;
        let Sight::Answer(201, head, _) = sight else { anyhow::bail!("{sight:?}") };
        let seen = upstream.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0], seen[1]);
        assert_eq!(seen[0].body, BODY);
        assert!(concurrent || head.contains("N: 1"), "{head}");
        assert_eq!((proxy.log()[0].upstream_status, proxy.log()[0].duplicate_status), (Some(201), Some(201)));
    }
    Ok(())
}

#[test]
fn delivered_late_comes_after_the_next_write() -> anyhow::Result<()> {
    let (upstream, proxy, sight) = first(Fault::DeliveredLate)?;
    assert_eq!(sight, Sight::Ended(0));
    assert_eq!(once(proxy.addr(), "GET", "/read", b"")?.status(), Some(201));
    assert_eq!(once(proxy.addr(), "POST", "/next", BODY)?.status(), Some(201));
    let lines: Vec<String> = upstream.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(lines, ["GET /read HTTP/1.1", "POST /next HTTP/1.1", "POST /a HTTP/1.1"]);
    assert_eq!(statuses(&proxy), [Some(201); 3]);
    Ok(())
}

#[test]
fn response_truncated() -> anyhow::Result<()> {
    let (upstream, _proxy, sight) = first(Fault::ResponseTruncated)?;
    let whole = format!("HTTP/1.1 201 Created\r\nN: 1\r\nContent-Length: 7\r\n\r\necho {}", BODY.len());
    assert_eq!(sight, Sight::Ended(whole.len() / 2));
    assert_eq!(upstream.seen().len(), 1);
    Ok(())
}

#[test]
fn reset_on_connect_hits_connections_and_open_ones() -> anyhow::Result<()> {
    let (upstream, proxy) = pair(Plan::nth(1, Fault::ResetOnConnect))?;
    let mut client = Client::connect(proxy.addr())?;
    assert_eq!(client.read(is_whole)?, Sight::Reset(0), "before anything was sent");
    assert_eq!((proxy.log()[0].method.as_str(), proxy.faults()), ("", 1));
    let mut client = Client::connect(proxy.addr())?;
    assert_eq!(client.send("POST", "/a", BODY)?.status(), Some(201));
    proxy.set_plan(Plan::nth(1, Fault::ResetOnConnect));
    assert_eq!(client.send("POST", "/b", BODY)?, Sight::Reset(0));
    assert_eq!(upstream.seen().len(), 1);
    Ok(())
}

#[test]
fn every_fault_lets_as_many_requests_through_as_it_says() -> anyhow::Result<()> {
    for fault in Fault::all(SHORT) {
        let (upstream, proxy) = pair(Plan::nth(1, fault))?;
        let _broken = Client::connect(proxy.addr())?.send("PUT", "/a", BODY)?;
        assert_eq!(once(proxy.addr(), "PUT", "/b", BODY)?.status(), Some(201), "{fault}: the next passes");
        let whole = upstream.seen().into_iter().filter(|seen| seen.whole && seen.line.contains("/a")).count();
        assert_eq!(whole, fault.arrivals() as usize, "{fault}");
        assert_eq!(proxy.faults(), 1, "{fault}");
    }
    Ok(())
}

#[test]
fn a_dead_upstream_and_garbage_end_the_connection() -> anyhow::Result<()> {
    let (upstream, proxy) = pair(Plan::pass())?;
    drop(upstream);
    assert_eq!(once(proxy.addr(), "POST", "/a", BODY)?, Sight::Reset(0));
    let revived = Upstream::start()?;
    proxy.set_upstream(revived.addr);
    assert_eq!(once(proxy.addr(), "POST", "/a", BODY)?.status(), Some(201));
    let garbage = b"POST /a HTTP/1.1\r\nContent-Length: many\r\n\r\n";
    assert_eq!(Client::connect(proxy.addr())?.send_raw(garbage)?, Sight::Reset(0));
    assert_eq!(revived.seen().len(), 1);
    Ok(())
}

#[tokio::test]
async fn it_starts_inside_a_runtime_and_stops() -> anyhow::Result<()> {
    let upstream = tokio::task::spawn_blocking(Upstream::start).await??;
    let proxy = FaultProxy::start(upstream.addr, Plan::pass()).await?;
    let addr = proxy.addr();
    assert_eq!(proxy.url(), format!("http://{addr}"));
    let sight = tokio::task::spawn_blocking(move || once(addr, "POST", "/a", BODY)).await??;
    assert_eq!(sight.status(), Some(201));
    proxy.stop();
    tokio::task::spawn_blocking(move || drop(upstream)).await?;
    Ok(())
}
