//! What a forwarder keeps, step by step, and processes killed at every point of it: what is kept then is what was kept
//! before the step or after it, and never between.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use domain::intent::{Intent, IntentState};
use rusqlite::Connection;
use store::conformance::build::{self, intent, write};
use store::{FAIL_POINTS, Store, StoreError};

/// Where a child is to die, on which pass, and its file: `POINT@PASS@PATH`.
const KILL: &str = "TALLYONCE_STORE_TEST_KILL";

/// One call, by the forwarder that has the first turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Turn,
    Plan(&'static [u32]),
    Advance(u32, IntentState, IntentState),
    KeepCycle(Option<&'static str>),
}

/// Everything that writes into a ledger, at least once; more than one row where a call writes more.
pub(crate) const STEPS: [Step; 8] = [
    Step::Turn,
    Step::Plan(&[0, 1, 2]),
    Step::KeepCycle(Some("7")),
    Step::Advance(1, IntentState::Planned, IntentState::Sending),
    Step::Advance(1, IntentState::Sending, IntentState::Acked),
    Step::KeepCycle(Some("8")),
    Step::Plan(&[2, 3, 4]),
    Step::KeepCycle(None),
];

impl Step {
    pub(crate) async fn take(self, store: Arc<dyn Store>) -> Result<String, StoreError> {
        Ok(match self {
            Step::Turn => format!("{:?}", store.next_turn("there").await?),
            Step::Plan(numbers) => {
                let intents = numbers.iter().copied().map(intent).collect();
                format!("{:?}", store.plan_intents("there", 1, intents).await?)
            }
            Step::Advance(number, from, state) => {
                let step = Intent { state, sends: 1, changed_ms: build::AT_MS + 1, ..intent(number) };
                format!("{:?}", store.advance_intent(1, from, step).await?)
            }
            Step::KeepCycle(cycle) => {
                let cycle = cycle.map(str::to_owned);
                format!("{:?}", store.keep_cycle_there("there", 1, write(), cycle).await?)
            }
        })
    }
}

fn open(path: &Path) -> Arc<dyn Store> {
    store::open(&format!("sqlite:{}", path.display())).unwrap()
}

fn run<F: Future<Output = ()>>(test: F) {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test);
}

/// Every row of the ledger's tables.
fn rows(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut all = Vec::new();
    for table in ["turn", "intent", "cycle_there"] {
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

async fn walk(path: &Path, mut after: impl FnMut(usize)) {
    let store = open(path);
    for (step, number) in STEPS.iter().zip(1..) {
        step.take(Arc::clone(&store)).await.unwrap();
        after(number);
    }
}

/// The part that runs in processes of its own; by itself it does nothing.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test hands a path to its own child processes")]
fn killed_process() {
    let Ok(kill) = std::env::var(KILL) else { return };
    let [point, pass, path] = kill.splitn(3, '@').collect::<Vec<_>>()[..] else { panic!("{kill}") };
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
    run(walk(path, |number| std::fs::write(heard(path), number.to_string()).unwrap()));
    panic!("nobody was killed at {point}");
}

/// How often an undisturbed walk passes each point, and what is kept before each step and after the last.
fn undisturbed() -> (BTreeMap<&'static str, u32>, Vec<Vec<String>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.db");
    drop(open(&path));
    let passes = Arc::new(Mutex::new(BTreeMap::new()));
    for point in FAIL_POINTS {
        let passes = Arc::clone(&passes);
        fail::cfg_callback(*point, move || *passes.lock().unwrap().entry(*point).or_default() += 1).unwrap();
    }
    let mut kept = vec![rows(&path)];
    run(walk(&path, |_| kept.push(rows(&path))));
    for point in FAIL_POINTS {
        fail::remove(point);
    }
    let passes = passes.lock().unwrap().clone();
    (passes, kept)
}

#[test]
fn a_process_killed_at_any_point_leaves_the_step_before_or_the_step_after() {
    let _alone = crate::ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (passes, kept) = undisturbed();
    let of_ledger = passes.keys().filter(|point| point.starts_with("store:ledger:")).count();
    assert_eq!(of_ledger, FAIL_POINTS.iter().filter(|point| point.starts_with("store:ledger:")).count());
    let (mut before, mut after) = (0, 0);
    for (point, pass) in passes.iter().flat_map(|(point, times)| (1..=*times).map(move |pass| (*point, pass))) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db");
        drop(open(&path));
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["ledger::killed_process", "--exact", "--nocapture"])
            .env(KILL, format!("{point}@{pass}@{}", path.display()))
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
    assert!(before > after && after >= STEPS.len(), "{before} before, {after} after");
}
