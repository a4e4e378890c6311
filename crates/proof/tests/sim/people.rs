//! What else happens in a world beside deliveries: readers look, the server dies, its clock jumps, staging is collected
//! or cancelled, somebody promotes, closes or deletes. Must not deliver reports.

use std::sync::Arc;

use bytes::Bytes;
use delivery::Clock as _;
use domain::{CycleName, Epoch, ProjectId, PushId};
use http::{HeaderValue, Method};
use store::{Lifetime, Now, RecordedAt, Store as _};

use crate::faults::{Class, Kind, Plan};
use crate::server::{Message, Served};
use crate::sim::{Sim, lock, note, sleep};

/// In which faults and people act, in milliseconds from the beginning.
const BUSY_MS: u64 = 150_000;
const HOUR_MS: i64 = 3_600_000;

/// Starts everybody. They end by themselves.
pub(crate) fn start(sim: &Arc<Sim>) {
    spawn(sim, 3, |sim| async move {
        sim.look("in between").await;
        sim.all_receipts_hold().await;
    });
    let crashes = sim.below(3);
    spawn(sim, crashes, |sim| async move {
        let down_ms = sim.below(25_000);
        sim.crash(down_ms);
    });
    let jumps = sim.below(3);
    spawn(sim, jumps, |sim| async move { sim.clock_jumps() });
    let collections = sim.below(5);
    spawn(sim, collections, |sim| async move { sim.collected().await });
    let promotions = sim.below(6) / 4;
    spawn(sim, promotions, |sim| async move { sim.promotes().await });
    let cancels = sim.below(6) / 4;
    spawn(sim, cancels, |sim| async move { sim.cancels().await });
    let closes = sim.below(6) / 5;
    spawn(sim, closes, |sim| async move { sim.closes().await });
    let drops = sim.below(12) / 11;
    spawn(sim, drops, |sim| async move { sim.deletes().await });
}

fn spawn<F: Future<Output = ()> + Send + 'static>(sim: &Arc<Sim>, times: u64, act: impl Fn(Arc<Sim>) -> F) {
    for _ in 0..times {
        let at_ms = sim.below(BUSY_MS);
        let (own, acting) = (Arc::clone(sim), act(Arc::clone(sim)));
        tokio::spawn(async move {
            sleep(at_ms).await;
            if !own.is_calm() {
                Box::pin(acting).await;
            }
        });
    }
}

impl Sim {
    /// What the server's clock reads.
    pub(crate) fn server_now(self: &Arc<Self>) -> Now {
        let clock = self.server_clock();
        Now { at: RecordedAt(clock.utc_rfc3339()), ms: clock.unix_ms() }
    }

    fn clock_jumps(&self) {
        let far = [HOUR_MS / 60, HOUR_MS, 24 * HOUR_MS, 365 * 24 * HOUR_MS][self.below(4) as usize];
        self.jump(if self.below(2) == 0 { far } else { -far });
        let on_the_way: Vec<usize> = {
            let history = self.history();
            let open = history.offers.iter().enumerate().filter(|(_, o)| o.begun && !o.is_settled() && !o.evicted);
            open.map(|(at, _)| at).collect()
        };
        for runner in on_the_way {
            self.hit(Some(runner), Class::ClockJump);
        }
    }

    /// One round of the collector, hastier than in production.
    async fn collected(self: &Arc<Self>) {
        let (idle_ms, second_look_ms) = (self.below(120_000), self.below(30_000));
        let lifetime = Lifetime { idle_ms, second_look_ms, blocks_max: 3 };
        for _ in 0..3 {
            let done = self.durable.collect(lifetime, self.server_now()).await.expect("the memory engine collects");
            note!(self, "collected: {done:?}");
            sleep(self.below(40_000)).await;
        }
    }

    /// A push that was offered, by chance.
    fn some_push(&self) -> Option<(ProjectId, PushId)> {
        let count = self.history().offers.len() as u64;
        let at = self.below(count) as usize;
        self.history().offers.get(at).map(|offer| (offer.project.clone(), offer.push))
    }

    /// A request by hand, without faults; nothing if there is no server.
    async fn by_hand(self: &Arc<Self>, method: Method, path: &str, key: Option<&str>) -> Option<(u16, Bytes)> {
        let mut request = http::Request::new(Bytes::new());
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("a path");
        if let Some(key) = key {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_str(key).expect("a key"));
        }
        let message = Message {
            id: self.number(),
            runner: None,
            process: 0,
            kind: Kind::Other,
            push: None,
            plan: Plan::default(),
        };
        note!(self, "by hand: {path}");
        match Box::pin(self.serve(message, request, false)).await {
            Served::Answer(whole) => {
                note!(self, "by hand: {} {}", whole.status, String::from_utf8_lossy(&whole.body));
                Some((whole.status, whole.body))
            }
            Served::Down | Served::Died => None,
        }
    }

    /// Somebody decides, twice with one key: the answer must be one.
    async fn promotes(self: &Arc<Self>) {
        let Some((project, push)) = self.some_push() else { return };
        let path = format!("/api/v1/projects/{project}/pushes/{push}/promote");
        let key = format!("promote-{}", self.number());
        let first = self.by_hand(Method::POST, &path, Some(&key)).await;
        let second = self.by_hand(Method::POST, &path, Some(&key)).await;
        let gone = self.history().dropped.contains(&push);
        if let (Some((201, first)), Some((status, second))) = (first, second)
            && (first != second || status != 201)
            && !gone
        {
            self.violation(format_args!("a repeated promotion of {push} is answered otherwise"));
        }
    }

    /// Somebody cancels what is being staged.
    async fn cancels(self: &Arc<Self>) {
        let Some((project, push)) = self.some_push() else { return };
        let now = self.server_now();
        let staged = self.durable.staging(&project, push, now).await.expect("the memory engine reads");
        let epoch = staged.map_or(Epoch(1), |staged| staged.epoch);
        let path = format!("/api/v1/projects/{project}/pushes/{push}/epochs/{}", epoch.0);
        let _ = self.by_hand(Method::DELETE, &path, None).await;
        let _ = self.by_hand(Method::DELETE, &path, None).await;
    }

    async fn closes(self: &Arc<Self>) {
        let run = 1 + self.below(2);
        let path = format!("/api/v1/projects/shop/rounds/run%3A{run}/close?cycle=main");
        let _ = self.by_hand(Method::POST, &path, None).await;
    }

    /// A round is deleted, with every key in it.
    async fn deletes(self: &Arc<Self>) {
        let (project, cycle) =
            (ProjectId::parse("shop").expect("a project"), CycleName::parse("main").expect("a cycle"));
        let round = format!("run:{}", 1 + self.below(2));
        // What is known there right now is deleted; no await lies between asking and deleting.
        let mut gone = Vec::new();
        for (offered, push) in self.pushes_of(&project, &round) {
            let recorded = self.durable.push(&offered, push).await.is_ok_and(|found| found.is_ok());
            let staged = self.durable.staging(&offered, push, self.server_now()).await.ok().flatten().is_some();
            if recorded || staged {
                gone.push(push);
            }
        }
        let dropped = self.durable.drop_round(&project, &cycle, &round).await.expect("the memory engine deletes");
        note!(self, "{round} is deleted: {dropped:?}");
        if dropped.is_ok() {
            lock(&self.history).dropped.extend(gone);
        }
    }

    fn pushes_of(&self, project: &ProjectId, round: &str) -> Vec<(ProjectId, PushId)> {
        let history = self.history();
        let own =
            history.offers.iter().filter(|o| o.project == *project && o.key.as_str().starts_with(&format!("{round}:")));
        let mut own: Vec<(ProjectId, PushId)> = own.map(|offer| (offer.project.clone(), offer.push)).collect();
        own.sort_unstable_by_key(|(_, push)| *push);
        own.dedup();
        own
    }
}
