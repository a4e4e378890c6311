//! Every point that a server passes from a recorded push to its end at the target, found by watching one that nobody
//! disturbs. Must not list what it finds elsewhere by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proof::stubs::Kind;

use crate::oracle::tables;
use crate::world::{Product, World};

/// A point and which of its passes, from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hit {
    pub(crate) point: String,
    pub(crate) nth: u32,
}

impl Hit {
    pub(crate) fn text(&self) -> String {
        format!("{}@{}", self.point, self.nth)
    }

    /// The variable that kills there.
    pub(crate) fn kill(&self) -> (String, String) {
        ("TALLYONCE_KILL_AT".to_owned(), self.text())
    }
}

/// What the sources name on this path beside the store's own list.
fn in_the_sources() -> Vec<String> {
    let mut all: Vec<String> = store::FAIL_POINTS.iter().map(|point| (*point).to_owned()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["server/src/forward", "delivery/src/foreign"] {
        let mut open = vec![root.join(folder)];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let points = text.split("fail_point!(\"").skip(1).filter_map(|rest| rest.split('"').next());
                all.extend(points.map(str::to_owned));
            }
        }
    }
    assert!(all.len() > store::FAIL_POINTS.len() + 4, "the scan finds no point of forwarding");
    all
}

/// What an undisturbed server passed, in order, and the number of its call that writes outcomes.
pub(crate) struct Passed {
    pub(crate) points: Vec<String>,
    pub(crate) write_call: u32,
}

impl Passed {
    /// Watches one push.
    pub(crate) fn watch(product: Product) -> Self {
        let world = World::new(product);
        let trace = world.path("trace");
        let armed = format!("{}={}", trace.display(), in_the_sources().join(","));
        let mut server = world.serve(&[("TALLYONCE_TRACE_AT".to_owned(), armed)]);
        world.settle(0, &server.url());
        let stopped = server.stop(Duration::from_secs(30)).unwrap();
        assert_eq!(stopped.code, Some(0), "{stopped}");
        assert_eq!(tables(&world).turn, 1, "one worker, and one turn for all of it");
        let log = world.stub.log();
        let is_write = |event: &&proof::stubs::Event| matches!(&event.kind, Kind::Write(what) if what.contains("results") || what.contains("Execution.update"));
        let write_call = log.iter().find(is_write).unwrap().no;
        let text = std::fs::read_to_string(&trace).unwrap();
        Self { points: text.lines().map(str::to_owned).collect(), write_call }
    }

    /// Every pass of every point for which `wanted` holds.
    pub(crate) fn hits(&self, wanted: impl Fn(&str) -> bool) -> Vec<Hit> {
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut hits = Vec::new();
        for point in &self.points {
            let nth = counts.entry(point).or_default();
            *nth += 1;
            if wanted(point) {
                hits.push(Hit { point: point.clone(), nth: *nth });
            }
        }
        hits
    }
}
