//! Thousands of pushes with faults, deaths and re-executions at random. In the end every outcome stands there once, or the
//! ledger has a name for why not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use delivery::Clock as _;
use delivery::foreign::{CaseId, Entry, Forwarded, Halt, KeyOnWrite, Strategy, VerdictRule};
use domain::Status;
use domain::intent::{Flag, Intent, IntentState};

use crate::book::MemoryBook;
use crate::desk::{forward, sweep};
use crate::faults::{Fault, facts};
use crate::plain::{load, outcome};
use crate::product::{Product, Stored};
use crate::windows::Window;
use crate::world::World;

/// Pushes; `TALLYONCE_FORWARDS` makes it another number.
fn pushes() -> u64 {
    std::env::var_os("TALLYONCE_FORWARDS").and_then(|n| n.to_str()?.parse().ok()).unwrap_or(20_000)
}

/// How often a window was met, and what was said of it.
#[derive(Debug, Default)]
struct Counts {
    provoked: u64,
    flagged: u64,
    healed: u64,
}

#[derive(Debug, Default)]
struct Tally {
    pushes: u64,
    deaths: u64,
    attempts: u64,
    lost: u64,
    doubled: u64,
    flags: BTreeMap<Flag, u64>,
    states: BTreeMap<IntentState, u64>,
    faults: BTreeMap<Fault, u64>,
}

async fn one(seed: u64, tally: &mut Tally) {
    let world = Arc::new(World::new(seed));
    let verdict = [VerdictRule::Appends, VerdictRule::Replaces][world.below(2) as usize];
    let key = [KeyOnWrite::None, KeyOnWrite::None, KeyOnWrite::Collapses][world.below(3) as usize];
    let product = Product::new(&world, facts(verdict, key));
    *product.storm.lock().unwrap() = 2 + world.below(4);
    let mut book = MemoryBook::new(&world);
    let count = 1 + world.below(9);
    let mut outcomes: Vec<_> = (0..count)
        .map(|n| outcome(&format!("case{n}"), if world.below(3) == 0 { Status::Failed } else { Status::Passed }))
        .collect();
    let (mut ended, mut attempt) = (None, 1);
    for life in 0..40_u64 {
        // Late in its life the world is calm, so that everything can end.
        if life > 25 {
            *product.storm.lock().unwrap() = 0;
        }
        let dies = life < 20 && world.below(2) == 0;
        world.light(if dies { world.below(30) as i64 } else { -1 });
        let deadline_ms = if world.below(4) == 0 { 20_000 } else { 3_600_000 };
        match forward(&world, &product, &book, load("run:7", Some(attempt), outcomes.clone()), deadline_ms).await {
            Some(Ok(done)) => {
                ended = Some(done);
                break;
            }
            Some(Err(Halt::Over(_))) => {}
            Some(Err(other)) => panic!("seed {seed}: {other:?}"),
            None => {
                tally.deaths += 1;
                book.bury();
                // A CI runner may take its ledger with it.
                if world.below(4) == 0 {
                    world.sleep(61_000).await;
                    book = MemoryBook::new(&world);
                }
            }
        }
        // Somebody runs the job again: most of it says what it said before.
        if attempt < 3 && world.below(4) == 0 {
            attempt += 1;
            tally.attempts += 1;
            let again = world.below(2 * count);
            if let Some(other) = outcomes.get_mut(again as usize) {
                other.status = if other.status == Status::Failed { Status::Passed } else { Status::Failed };
            }
        }
    }
    let done = ended.unwrap_or_else(|| panic!("seed {seed}: it never ends: {:?}", book.intents()));
    world.sleep(2 * 7_200_000).await;
    sweep(&world, &product, &book).await;
    tally.pushes += 1;
    judge(seed, &product, &book, &done, tally);
    for (fault, met) in product.met.lock().unwrap().iter() {
        *tally.faults.entry(*fault).or_default() += met;
    }
    assert!(done.cycle.is_some());
}

/// The same with a container for each try.
async fn contained(seed: u64, deaths: &mut u64) {
    let world = Arc::new(World::new(seed));
    let mut facts = facts(VerdictRule::Appends, KeyOnWrite::None);
    facts.strategies = &[Strategy::Container];
    let product = Product::new(&world, facts);
    *product.storm.lock().unwrap() = 2 + world.below(6);
    let mut book = MemoryBook::new(&world);
    let count = 1 + world.below(9);
    let outcomes: Vec<_> = (0..count).map(|n| outcome(&format!("case{n}"), Status::Passed)).collect();
    let mut ended = false;
    for life in 0..60_u64 {
        if life > 25 {
            *product.storm.lock().unwrap() = 0;
        }
        world.light(if life < 20 && world.below(2) == 0 { world.below(40) as i64 } else { -1 });
        match forward(&world, &product, &book, load("run:7", Some(1), outcomes.clone()), 3_600_000).await {
            Some(Ok(done)) if done.is_settled() => {
                ended = true;
                break;
            }
            // So many containers were given up that a person is asked: said, and not counted.
            Some(Ok(_)) => return,
            Some(Err(Halt::Over(_))) => {}
            Some(Err(other)) => panic!("seed {seed}: {other:?}"),
            None => {
                *deaths += 1;
                book.bury();
                if world.below(4) == 0 {
                    world.sleep(61_000).await;
                    book = MemoryBook::new(&world);
                }
            }
        }
    }
    assert!(ended, "seed {seed}: it never ends");
    world.sleep(2 * 7_200_000).await;
    let (containers, mut rows) = product.published();
    if containers != 1 {
        println!("{:?} {:?}", book.intents(), product);
    }
    let recorded = rows.len() as u64;
    rows.sort();
    rows.dedup();
    assert_eq!((containers, recorded, rows.len() as u64), (1, count, count), "seed {seed}");
}

#[test]
fn one_container_counts_and_holds_every_outcome_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut deaths = 0;
    for seed in 0..pushes() / 4 {
        runtime.block_on(contained(seed, &mut deaths));
    }
    assert!(deaths > pushes() / 16, "{deaths}");
}

fn judge(seed: u64, product: &Product, book: &MemoryBook, done: &Forwarded, tally: &mut Tally) {
    let mut rows: BTreeMap<CaseId, Vec<Stored>> = BTreeMap::new();
    for (_, row) in product.rows_there() {
        rows.entry(row.entry.case.clone()).or_default().push(row);
    }
    let mut flags: BTreeMap<CaseId, BTreeSet<Flag>> = BTreeMap::new();
    for intent in book.intents() {
        assert!(intent.state.is_settled(), "seed {seed}: stuck in {}", intent.state);
        *tally.states.entry(intent.state).or_default() += 1;
        for flag in &intent.flags {
            *tally.flags.entry(*flag).or_default() += 1;
        }
        for entry in entries(&intent) {
            flags.entry(entry.case).or_default().extend(&intent.flags);
        }
    }
    assert_eq!(product.cycles(), 1, "seed {seed}");
    // By case: what is said of one excuses no other.
    for entry in done.intents.iter().flat_map(entries) {
        let rows = rows.remove(&entry.case).unwrap_or_default();
        let said = |flag| flags[&entry.case].contains(&flag);
        let mangled = rows.iter().any(|row| row.mangled);
        assert!(!mangled || said(Flag::MarkerMangled), "seed {seed}: {} is changed in silence", entry.case);
        let mut whole: Vec<&Stored> = rows.iter().filter(|row| !row.mangled).collect();
        whole.sort_by_key(|row| (row.entry.marker.ordinal, row.at_ms));
        let doubled = whole.windows(2).any(|pair| pair[0].entry.marker.content == pair[1].entry.marker.content);
        tally.doubled += u64::from(doubled);
        assert!(!doubled || said(Flag::DuplicateDetected), "seed {seed}: doubled in silence: {rows:?}");
        if whole.iter().any(|row| row.entry.marker.content == entry.marker.content) {
            continue;
        }
        tally.lost += 1;
        // It stands in a changed row, or that of another attempt took its only place: nothing else is an excuse.
        let replaced = product.facts.verdict != VerdictRule::Appends && !whole.is_empty();
        let named = said(Flag::Vanished) || said(Flag::VendorLost) || said(Flag::Stale);
        assert!(mangled || (replaced && named), "seed {seed}: lost in silence: {} of {rows:?}", entry.case);
    }
    assert!(rows.is_empty(), "seed {seed}: nobody pushed {rows:?}");
}

fn entries(intent: &Intent) -> Vec<Entry> {
    serde_json::from_slice(&intent.body).unwrap()
}

#[test]
fn every_window_ends_in_a_name() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut tally = Tally::default();
    for seed in 0..pushes() / 2 {
        runtime.block_on(one(seed, &mut tally));
    }
    println!("{tally:#?}");
    // Each window was met, or this shows nothing.
    for flag in [Flag::DuplicateDetected, Flag::MarkerMangled] {
        assert!(tally.flags.contains_key(&flag), "{flag} never met");
    }
    assert!(tally.faults.len() == 9 && tally.deaths > pushes() / 8, "{tally:#?}");
    assert!(tally.attempts > pushes() / 64 && tally.doubled > 0 && tally.lost > 0, "{tally:#?}");
    let mut table: BTreeMap<Window, Counts> = BTreeMap::new();
    for seed in 0..pushes() / 2 {
        let window = Window::ALL[(seed % Window::ALL.len() as u64) as usize];
        let told = runtime.block_on(window.provoke(seed));
        let counts = table.entry(window).or_default();
        counts.provoked += u64::from(told.provoked);
        counts.flagged += u64::from(told.provoked && told.named);
        counts.healed += u64::from(told.healed == Some(true));
        assert!(!told.provoked || told.named, "seed {seed}: {window:?} ended without its name");
        assert!(told.healed != Some(false), "seed {seed}: {window:?} stays though it has healed");
    }
    assert_eq!(table.len(), Window::ALL.len(), "too few pushes for each window to come about");
    println!("| window | ends in | provoked | flagged | gone once it had healed |\n|---|---|---|---|---|");
    for (window, Counts { provoked, flagged, healed }) in &table {
        println!("| {window:?} | {} | {provoked} | {flagged} | {healed} |", window.name());
        assert!(*provoked * 200 >= pushes(), "{window:?} met {provoked} times");
    }
}
