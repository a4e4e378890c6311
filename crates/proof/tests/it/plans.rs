//! Plans decide by seed, number and list, and decide again alike.

use std::collections::BTreeMap;
use std::time::Duration;

use proof::proxy::{Event, Fault, FaultProxy, Plan};

use crate::client::once;
use crate::upstream::Upstream;

/// The log of `writes` writes, each on a connection of its own.
fn log_of(plan: Plan, writes: usize) -> anyhow::Result<Vec<Event>> {
    let upstream = Upstream::start()?;
    let proxy = FaultProxy::start_blocking(upstream.addr, plan)?;
    for _ in 0..writes {
        let _sight = once(proxy.addr(), "POST", "/a", b"0123456789")?;
    }
    Ok(proxy.log())
}

fn faults_of(plan: Plan, writes: usize) -> anyhow::Result<Vec<Option<Fault>>> {
    Ok(log_of(plan, writes)?.into_iter().map(|event| event.fault).collect())
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_another() -> anyhow::Result<()> {
    let plan = |seed| Plan::lossy(seed, 0.6, Duration::from_millis(1));
    let one = log_of(plan(7), 60)?;
    assert_eq!(one, log_of(plan(7), 60)?);
    assert_ne!(one, log_of(plan(8), 60)?);
    Ok(())
}

#[test]
fn seeded_odds_are_met() -> anyhow::Result<()> {
    let odds = [(Fault::RequestDropped, 0.3), (Fault::UnavailableWithRetryAfter { seconds: 0 }, 0.2)];
    let mut count = BTreeMap::new();
    for fault in faults_of(Plan::seeded(1, odds), 400)? {
        *count.entry(fault.map_or("none", Fault::name)).or_insert(0) += 1;
    }
    assert!((90..150).contains(&count["request-dropped"]), "{count:?}");
    assert!((55..105).contains(&count["503-retry-after"]), "{count:?}");
    assert!((160..240).contains(&count["none"]), "{count:?}");
    Ok(())
}

#[test]
fn first_list_and_limit() -> anyhow::Result<()> {
    let (drop, cut) = (Some(Fault::RequestDropped), Some(Fault::CutMidRequest));
    assert_eq!(faults_of(Plan::first(2, Fault::RequestDropped), 4)?, [drop, drop, None, None]);
    assert_eq!(faults_of(Plan::nth(3, Fault::CutMidRequest), 4)?, [None, None, cut, None]);
    assert_eq!(faults_of(Plan::list([None, drop, cut]), 4)?, [None, drop, cut, None]);
    assert_eq!(faults_of(Plan::seeded(1, [(Fault::RequestDropped, 1.0)]).at_most(1), 3)?, [drop, None, None]);
    let reset = Some(Fault::ResetOnConnect);
    assert_eq!(faults_of(Plan::list([drop, reset]), 3)?, [drop, reset, None]);
    assert_eq!(faults_of(Plan::first(2, Fault::ResetOnConnect), 3)?, [reset, reset, None]);
    Ok(())
}

#[test]
fn filters_count_only_what_they_mean() -> anyhow::Result<()> {
    let upstream = Upstream::start()?;
    let plan = Plan::nth(2, Fault::RequestDropped).only_method("put").only_path("/chunks/");
    let proxy = FaultProxy::start_blocking(upstream.addr, plan)?;
    for (method, path) in
        [("POST", "/chunks/1"), ("PUT", "/chunks/1"), ("PUT", "/other"), ("GET", "/chunks/2"), ("PUT", "/chunks/3")]
    {
        let _sight = once(proxy.addr(), method, path, b"x")?;
    }
    let broken: Vec<u32> = proxy.log().iter().filter(|e| e.fault.is_some()).map(|e| e.request_no).collect();
    assert_eq!(broken, [5]);
    Ok(())
}
