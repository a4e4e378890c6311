//! Processes killed at every point of a walk: what is kept then is what was kept before the step or after it, and never
//! between.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use store::{FAIL_POINTS, Store};

use crate::{forwards, ledger};

/// Where a child is to die, on which pass, on which walk, and its file: `POINT@PASS@WALK@PATH`.
const KILL: &str = "TALLYONCE_STORE_TEST_KILL";

/// A walk: how many steps it has, and one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    Ledger,
    Forwards,
}

impl Walk {
    fn word(self) -> &'static str {
        match self {
            Walk::Ledger => "ledger",
            Walk::Forwards => "forwards",
        }
    }

    fn len(self) -> usize {
        match self {
            Walk::Ledger => ledger::STEPS.len(),
            Walk::Forwards => forwards::STEPS.len(),
        }
    }

    async fn take(self, at: usize, store: Arc<dyn Store>) {
        match self {
            Walk::Ledger => ledger::STEPS[at].take(store).await.unwrap(),
            Walk::Forwards => forwards::STEPS[at].take(store).await.unwrap(),
        };
    }
}

fn open(path: &Path) -> Arc<dyn Store> {
    let store = store::open(&format!("sqlite:{}", path.display())).unwrap();
    store.set_forward_rules(forwards::rules());
    store
}

fn run<F: Future<Output = ()>>(test: F) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// Every row of what is recorded and of what is to be forwarded.
fn rows(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for table in ["turn", "intent", "cycle_there", "target_place", "waiting", "push", "revision", "tombstone"] {
        let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let columns = statement.column_count();
        let text = |row: &rusqlite::Row<'_>| {
            let values: Vec<_> = (0..columns).map(|at| format!("{:?}", row.get_ref(at).unwrap())).collect();
            Ok(format!("{table} {}", values.join(" ")))
        };
        all.extend(statement.query_map([], text).unwrap().map(Result::unwrap));
    }
    all
}

/// Which steps a child has heard of, as a file beside its store.
fn heard(path: &Path) -> PathBuf {
    path.with_extension("heard")
}

async fn walk(walk: Walk, path: &Path, mut after: impl FnMut(usize)) {
    let store = open(path);
    for at in 0..walk.len() {
        walk.take(at, Arc::clone(&store)).await;
        after(at + 1);
    }
}

/// The part that runs in processes of its own; by itself it does nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test hands a path to its own child processes")]
fn killed_process() {
    let Ok(kill) = std::env::var(KILL) else { return };
    let [point, pass, word, path] = kill.splitn(4, '@').collect::<Vec<_>>()[..] else { panic!("{kill}") };
    let left = Mutex::new(pass.parse::<u32>().unwrap());
    let die = move || {
        let mut left = left.lock().unwrap();
        *left -= 1;
        if *left == 0 {
            std::process::abort();
        }
    };
    fail::cfg_callback(point, die).unwrap();
    let path = Path::new(path);
    let of = [Walk::Ledger, Walk::Forwards].into_iter().find(|walk| walk.word() == word).unwrap();
    run(walk(of, path, |number| std::fs::write(heard(path), number.to_string()).unwrap()));
    panic!("nobody was killed at {point}");
}

/// How often an undisturbed walk passes each point, and what is kept before each step and after the last.
fn undisturbed(of: Walk) -> (BTreeMap<&'static str, u32>, Vec<Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    drop(open(&path));
    let passes = Arc::new(Mutex::new(BTreeMap::new()));
    for point in FAIL_POINTS {
        let passes = Arc::clone(&passes);
        fail::cfg_callback(*point, move || *passes.lock().unwrap().entry(*point).or_default() += 1).unwrap();
    }
    let mut kept = vec![rows(&path)];
    run(walk(of, &path, |_| kept.push(rows(&path))));
    for point in FAIL_POINTS {
        fail::remove(point);
    }
    let passes = passes.lock().unwrap().clone();
    (passes, kept)
}

/// Every point that a walk passes, on every pass.
fn killed_at_every_point(of: Walk, points: &str) {
    let _alone = crate::ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (passes, kept) = undisturbed(of);
    let reached = passes.keys().filter(|point| point.starts_with(points)).count();
    assert_eq!(reached, FAIL_POINTS.iter().filter(|point| point.starts_with(points)).count());
    let (mut before, mut after) = (0, 0);
    for (point, pass) in passes.iter().flat_map(|(point, times)| (1..=*times).map(move |pass| (*point, pass))) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        drop(open(&path));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["kills::killed_process", "--exact", "--nocapture"])
            .env(KILL, format!("{point}@{pass}@{}@{}", of.word(), path.display()))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.code().is_none(), "{point}, pass {pass}, was not killed: {said}");
        let heard = std::fs::read_to_string(heard(&path)).map_or(0, |number| number.parse::<usize>().unwrap());
        let found = rows(&path);
        let (is_old, is_new) = (found == kept[heard], found == kept[heard + 1]);
        assert!(is_old || is_new, "{point}, pass {pass}, after step {heard}: {found:#?}");
        before += usize::from(is_old);
        after += usize::from(is_new);
        run(async { assert_eq!(open(&path).check().await.unwrap(), []) });
    }
    // A commit that nobody heard of is the only way to the new state.
    assert!(before > after && after >= of.len(), "{before} before, {after} after");
}

#[test]
fn a_forwarder_killed_at_any_point_leaves_the_step_before_or_the_step_after() {
    killed_at_every_point(Walk::Ledger, "store:ledger:");
}

/// A push and what it waits for are there together, or neither is.
#[test]
fn a_server_killed_at_any_point_leaves_the_step_before_or_the_step_after() {
    killed_at_every_point(Walk::Forwards, "store:forwards:");
}
