//! `kill -9` of the server at every point between two steps of forwarding. It starts again, or another one over the same
//! store goes on: no outcome twice, none lost, no intent stuck.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proof::kill::{Histogram, kill_nowhere};

use crate::oracle::judge;
use crate::points::{Hit, Passed};
use crate::world::{Product, World};

/// Worlds at a time: they wait more than they work.
const WORLDS: usize = 10;

/// Rounds over all points, every pass of each; without the variable one over those that matter most.
pub(crate) fn wanted() -> Option<u64> {
    std::env::var_os("TALLYONCE_KILLS").and_then(|n| n.to_str()?.parse().ok())
}

/// Between two of these points nothing durable or outside changes but by another of them.
fn is_step(point: &str) -> bool {
    let starts = ["server:forward:", "forward:call:", "store:forwards:", "store:ledger:"];
    starts.iter().any(|start| point.starts_with(start))
        || ["store:record:insert-waiting", "store:txn:in-commit", "store:txn:commit-after"].contains(&point)
}

/// Reads leave nothing, and how often a worker looks is a matter of time.
fn is_write(point: &str) -> bool {
    !point.starts_with("store:read:")
}

/// Who goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Itself,
    Another,
}

/// One server killed at one point; gives whether it was.
fn killed(product: Product, hit: &Hit, next: Next) -> Result<bool, String> {
    let world = World::new(product);
    let mut server = world.serve(&[hit.kill()]);
    let other = (next == Next::Another).then(|| world.serve(&[]));
    let client = world.push(0, &server.url()).start().unwrap();
    let dead = server.wait_exit(Duration::from_secs(12)).unwrap();
    let killed = dead.was_killed();
    let url = if let Some(other) = &other {
        // Its client is told another address, as a load balancer would.
        client.kill9();
        other.url()
    } else {
        server.restart_with(&[kill_nowhere()]).unwrap();
        server.url()
    };
    let settled = world.push(0, &url).args(["--wait-forward"]).output().unwrap();
    drop(client);
    if settled.code != Some(0) {
        return Err(format!("not settled: {settled}\n{:?}", crate::oracle::tables(&world)));
    }
    judge(&world, &[0]).map(|()| killed)
}

fn at(hits: &[(Hit, Product, Next)]) -> (Histogram, Vec<String>) {
    let (next, all) = (AtomicUsize::new(0), Mutex::new((Histogram::new(), Vec::new())));
    std::thread::scope(|scope| {
        for _ in 0..WORLDS.min(hits.len()) {
            scope.spawn(|| {
                while let Some((hit, product, who)) = hits.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = killed(*product, hit, *who);
                    let mut all = all.lock().unwrap();
                    match outcome {
                        Ok(killed) => {
                            let end = if killed { proof::kill::End::Signal(9) } else { proof::kill::End::TimedOut };
                            all.0.add(&hit.point, end, &format!("{who:?} goes on"));
                        }
                        Err(why) => all.1.push(format!("{product:?}, {}, {who:?} goes on: {why}", hit.text())),
                    }
                }
            });
        }
    });
    all.into_inner().unwrap()
}

#[test]
fn a_server_killed_between_any_two_steps_forwards_every_outcome_once() {
    let mut hits = Vec::new();
    for product in [Product::Appends, Product::Replaces] {
        let passed = Passed::watch(product);
        let of_product = match wanted() {
            None => passed.hits(is_step),
            Some(rounds) => (0..rounds).flat_map(|_| passed.hits(is_write)).collect(),
        };
        assert!(of_product.len() > 30, "{} points of {product:?}: {:#?}", of_product.len(), passed.points);
        for (number, hit) in of_product.into_iter().enumerate() {
            let both = [Next::Itself, Next::Another];
            // In the short form each point has one of the two to go on, and the replacing product every third point.
            let chosen: &[Next] = match (wanted(), product) {
                (Some(_), _) => &both,
                (None, Product::Appends) => &both[number % 2..=number % 2],
                (None, Product::Replaces) if number % 3 == 0 => &both[number / 3 % 2..=number / 3 % 2],
                (None, Product::Replaces) => &[],
            };
            hits.extend(chosen.iter().map(|next| (hit.clone(), product, *next)));
        }
    }
    let (seen, wrong) = at(&hits);
    println!("{seen}\n{} cases", hits.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), hits.len(), wrong.join("\n"));
    // Passes depend on time a little: another server may take the work, or a lease is kept once more.
    let killed = seen.ended(proof::kill::End::Signal(9));
    assert!(killed * 10 >= hits.len() as u64 * 8, "{killed} of {} were killed:\n{seen}", hits.len());
}
