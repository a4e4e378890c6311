//! Each window that no strategy closes, and each race, brought about on purpose: what it is called in the end, and whether
//! that goes once it has healed.

use std::sync::Arc;

use delivery::Clock as _;
use delivery::foreign::{
    CaseId, CycleId, Entry, Forwarded, Halt, KeyOnWrite, Listing, Load, Strategy, VerdictRule, Visible,
};
use domain::Status;
use domain::intent::{Flag, IntentState};

use crate::book::MemoryBook;
use crate::desk::{Desk, LONG_MS};
use crate::faults::{Fault, facts};
use crate::plain::{load, outcome};
use crate::product::{Product, Stored};
use crate::world::World;

const DAY_MS: u64 = 86_400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Window {
    W1,
    W2,
    W3,
    W4,
    W5,
    W6,
    W7,
    W8,
    W9,
    W10,
    W11,
    W12,
    W13,
    W14,
    R2,
    R3,
    R4,
    R10,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Told {
    /// It really came about.
    pub(crate) provoked: bool,
    /// The ledger has its name.
    pub(crate) named: bool,
    /// Once it had healed, the name was gone. None: it can't heal.
    pub(crate) healed: Option<bool>,
}

impl Window {
    #[rustfmt::skip]
    pub(crate) const ALL: [Window; 18] = [
        Window::W1, Window::W2, Window::W3, Window::W4, Window::W5, Window::W6, Window::W7, Window::W8, Window::W9,
        Window::W10, Window::W11, Window::W12, Window::W13, Window::W14, Window::R2, Window::R3, Window::R4, Window::R10,
    ];

    /// What it ends in.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Window::W1 | Window::W2 | Window::W11 | Window::R2 => "duplicate-detected",
            Window::W3 => "found",
            Window::W4 => "vendor-lost",
            Window::W5 => "orphan",
            Window::W6 => "ledger-restored",
            Window::W7 => "count-contradicts",
            Window::W8 => "partial",
            Window::W9 => "marker-mangled",
            Window::W10 => "vanished",
            Window::W12 => "at-most-once, parked",
            Window::W13 => "accepted-not-confirmed",
            Window::W14 => "suspicious-match, parked",
            Window::R3 => "cycle-doubled",
            Window::R4 => "stale",
            Window::R10 => "rows-ambiguous",
        }
    }

    pub(crate) async fn provoke(self, seed: u64) -> Told {
        let mut site = Site::new(seed);
        match self {
            Window::W1 => site.late().await,
            Window::W2 => site.lists_that_lag().await,
            Window::W3 => site.died_before_the_answer().await,
            Window::W4 => site.lost_by_the_vendor().await,
            Window::W5 => site.unknown_to_the_ledger().await,
            Window::W6 => site.an_older_ledger().await,
            Window::W7 => site.counted_otherwise().await,
            Window::W8 => site.in_part().await,
            Window::W9 => site.changed_marker().await,
            Window::W10 => site.taken_away().await,
            Window::W11 => site.two_senders(true).await,
            Window::W12 => site.unreadable().await,
            Window::W13 => site.never_shown().await,
            Window::W14 => site.older_than_the_push().await,
            Window::R2 => site.two_senders(false).await,
            Window::R3 => site.two_cycles().await,
            Window::R4 => site.an_old_attempt().await,
            Window::R10 => site.rows_of_others().await,
        }
    }
}

pub(crate) struct Site {
    pub(crate) world: Arc<World>,
    pub(crate) product: Product,
    pub(crate) book: MemoryBook,
    pub(crate) count: u64,
    pub(crate) sole: bool,
}

impl Site {
    pub(crate) fn new(seed: u64) -> Self {
        let world = Arc::new(World::new(seed));
        let product = Product::new(&world, facts(VerdictRule::Appends, KeyOnWrite::None));
        let book = MemoryBook::new(&world);
        let count = 2 + world.below(8);
        Self { world, product, book, count, sole: true }
    }

    pub(crate) fn desk(&self) -> Desk<'_> {
        Desk { world: &self.world, product: &self.product, book: &self.book, sole: self.sole }
    }

    pub(crate) fn load(&self, key: &str, attempt: u64, status: Status) -> Load {
        let outcomes = (0..self.count).map(|n| outcome(&format!("case{n}"), status)).collect();
        Load { at_ms: self.world.now(), ..load(key, Some(attempt), outcomes) }
    }

    /// The push that a window is about. The cycle's making comes before the faults of the first writes.
    pub(crate) async fn push(&self, faults: &[Fault]) -> Forwarded {
        *self.product.script.lock().unwrap() = [&[Fault::None], faults].concat();
        self.desk().forward(self.load("run:7", 1, Status::Passed), LONG_MS).await.unwrap().unwrap()
    }

    async fn has(&self, flag: Flag) -> bool {
        self.desk().sweep().await.contains(&flag)
    }

    fn doubled(&self) -> bool {
        let mut rows = self.product.recorded();
        let all = rows.len();
        rows.sort();
        rows.dedup();
        rows.len() < all
    }

    pub(crate) fn each_once(&self) -> bool {
        !self.doubled() && self.product.recorded().len() as u64 == self.count
    }

    /// What the ledger meant to write first, and where.
    pub(crate) fn first_rows(&self) -> Vec<(CycleId, Stored)> {
        let intent = self.book.intents().remove(0);
        let entries: Vec<Entry> = serde_json::from_slice(&intent.body).unwrap();
        let cycle = CycleId::new(intent.cycle_there.unwrap());
        let stored = |entry| Stored { id: 0, entry, mangled: false, at_ms: self.world.now(), foreign: false };
        entries.into_iter().map(|entry| (cycle.clone(), stored(entry))).collect()
    }

    fn parked(&self) -> bool {
        self.book.intents().iter().any(|intent| intent.state == IntentState::Parked)
    }

    async fn late(&mut self) -> Told {
        self.push(&[Fault::Late(62_000 + self.world.below(7_200_000))]).await;
        self.world.sleep(7_300_000).await;
        self.doubles().await
    }

    async fn doubles(&mut self) -> Told {
        let told = Told { provoked: self.doubled(), named: self.has(Flag::DuplicateDetected).await, healed: None };
        self.product.repair();
        Told { healed: Some(self.desk().sweep().await.is_empty()), ..told }
    }

    async fn lists_that_lag(&mut self) -> Told {
        self.product.lag_ms = 100_000 + self.world.below(300_000);
        self.push(&[Fault::AnswerLost]).await;
        self.world.sleep(500_000).await;
        self.doubles().await
    }

    async fn died_before_the_answer(&mut self) -> Told {
        *self.product.script.lock().unwrap() = vec![Fault::None, Fault::Dies];
        let load = self.load("run:7", 1, Status::Passed);
        let died = self.desk().forward(load.clone(), LONG_MS).await.is_none();
        let there = !self.product.recorded().is_empty();
        self.book.bury();
        let done = self.desk().forward(load, LONG_MS).await.unwrap().unwrap();
        let named = done.intents[0].state == IntentState::Found && done.all_flags().is_empty() && self.each_once();
        Told { provoked: died && there, named, healed: None }
    }

    async fn lost_by_the_vendor(&mut self) -> Told {
        let done = self.push(&[Fault::Lost]).await;
        let provoked = !self.each_once() && done.intents[0].state == IntentState::Acked;
        let named = done.all_flags() == [Flag::VendorLost] && self.has(Flag::VendorLost).await;
        // Its other half comes back.
        self.product.put(self.first_rows());
        Told { provoked, named, healed: Some(self.desk().sweep().await.is_empty()) }
    }

    async fn unknown_to_the_ledger(&mut self) -> Told {
        let before = self.book.backup();
        self.push(&[]).await;
        let lost = self.product.rows_there();
        self.book.restore(before);
        self.desk().forward(self.load("run:7:job:b", 1, Status::Failed), LONG_MS).await.unwrap().unwrap();
        let flags = self.desk().sweep().await;
        let told = Told { provoked: !lost.is_empty(), named: flags == [Flag::Orphan], healed: None };
        let rows = self.product.rows_there();
        self.product.forget_rows();
        let ours = |row: &Stored| lost.iter().all(|(_, gone)| gone.entry.marker != row.entry.marker);
        self.product.put(rows.into_iter().filter(|(_, row)| ours(row)));
        Told { healed: Some(self.desk().sweep().await.is_empty()), ..told }
    }

    async fn an_older_ledger(&mut self) -> Told {
        let before = self.book.backup();
        self.push(&[]).await;
        self.book.restore(before);
        let done = self.push(&[]).await;
        let named = done.all_flags() == [Flag::LedgerRestored] && self.each_once();
        Told { provoked: done.intents.iter().all(|intent| intent.sends == 0), named, healed: None }
    }

    async fn counted_otherwise(&mut self) -> Told {
        self.product.listing = Listing::Counts;
        self.product.facts.strategies = &[Strategy::Container];
        self.push(&[]).await;
        let mut rows = self.first_rows();
        rows.truncate(1);
        for (_, row) in &mut rows {
            row.foreign = true;
            row.entry.case = CaseId::new("theirs");
        }
        self.product.put(rows);
        let named = self.has(Flag::CountContradicts).await;
        self.product.take_away("theirs");
        Told { provoked: true, named, healed: Some(self.desk().sweep().await.is_empty()) }
    }

    async fn in_part(&mut self) -> Told {
        if self.world.below(2) == 0 {
            let done = self.push(&[Fault::Part]).await;
            let said = self.book.ever().contains(&Flag::Partial);
            return Told { provoked: true, named: said, healed: Some(done.all_flags().is_empty() && self.each_once()) };
        }
        self.push(&[]).await;
        let gone = self.product.take_away("case1");
        let named = self.desk().sweep().await == [Flag::Partial, Flag::Vanished];
        self.product.put(gone);
        Told { provoked: true, named, healed: Some(self.desk().sweep().await.is_empty()) }
    }

    async fn changed_marker(&mut self) -> Told {
        let done = self.push(&[Fault::Mangled]).await;
        let named = done.all_flags() == [Flag::MarkerMangled] && self.has(Flag::MarkerMangled).await;
        let rows = self.product.rows_there();
        let provoked = rows.iter().any(|(_, row)| row.mangled);
        self.product.forget_rows();
        self.product.put(rows.into_iter().map(|(cycle, row)| (cycle, Stored { mangled: false, ..row })));
        Told { provoked, named, healed: Some(self.desk().sweep().await.is_empty()) }
    }

    async fn taken_away(&mut self) -> Told {
        self.push(&[]).await;
        let rows = self.product.rows_there();
        self.product.forget_rows();
        let named = self.desk().sweep().await == [Flag::Vanished];
        self.product.put(rows);
        Told { provoked: true, named, healed: Some(self.desk().sweep().await.is_empty()) }
    }

    /// One waits in its request; the other one takes over meanwhile, with the same ledger (a lease that was split) or another.
    async fn two_senders(&mut self, same_ledger: bool) -> Told {
        *self.product.script.lock().unwrap() = vec![Fault::None, Fault::Held];
        let other = if same_ledger { self.book.clone() } else { MemoryBook::new(&self.world) };
        let load = self.load("run:7", 1, Status::Passed);
        let second = async {
            other.bury();
            let desk = Desk { book: &other, ..self.desk() };
            let done = desk.alive(load.clone(), LONG_MS).await;
            self.product.release();
            done
        };
        let (first, second) = tokio::join!(self.desk().alive(load.clone(), LONG_MS), second);
        let ended = match first {
            Err(Halt::Book(error)) => same_ledger && error == delivery::foreign::BookError::Fenced,
            Ok(done) => !same_ledger && done.all_flags() == [Flag::DuplicateDetected],
            Err(other) => panic!("{other:?}"),
        };
        let told = self.doubles().await;
        Told { named: told.named && ended && second.is_ok(), ..told }
    }

    async fn unreadable(&mut self) -> Told {
        self.product.listing = Listing::Nothing;
        self.product.facts.strategies = &[Strategy::AtMostOnce];
        let fault = [Fault::AnswerLost, Fault::RequestLost, Fault::Late(9_000_000), Fault::Part, Fault::Dies];
        let fault = fault[self.world.below(5) as usize];
        *self.product.script.lock().unwrap() = vec![Fault::None, fault];
        let load = self.load("run:7", 1, Status::Passed);
        if self.desk().forward(load.clone(), LONG_MS).await.is_none() {
            self.book.bury();
            self.desk().forward(load.clone(), LONG_MS).await.unwrap().unwrap();
        }
        let sent = self.product.calls.lock().unwrap().1;
        // Again, and as another attempt that says the same of all.
        self.desk().forward(load, LONG_MS).await.unwrap().unwrap();
        let second = self.load("run:7", 2, Status::Passed);
        self.desk().forward(second, LONG_MS).await.unwrap().unwrap();
        self.world.sleep(10_000_000).await;
        self.desk().sweep().await;
        let never_again = sent == self.product.calls.lock().unwrap().1 && !self.doubled();
        let labelled = self.book.intents().iter().all(|intent| intent.flags.contains(&Flag::AtMostOnce));
        Told { provoked: true, named: never_again && labelled && self.parked(), healed: None }
    }

    async fn never_shown(&mut self) -> Told {
        self.product.facts.visible = Visible::Later(5_000);
        if self.world.below(2) == 0 {
            self.product.facts.key_on_write = KeyOnWrite::Collapses;
            self.product.facts.strategies = &[Strategy::Idempotent];
        }
        if self.world.below(2) == 0 {
            // Once: it is sent again, and seen.
            let done = self.push(&[Fault::Lost]).await;
            let named = self.book.ever().contains(&Flag::AcceptedNotConfirmed);
            return Told { provoked: true, named, healed: Some(done.all_flags().is_empty() && self.each_once()) };
        }
        let done = self.push(&[Fault::Lost; 99]).await;
        let named = done.all_flags() == [Flag::AcceptedNotConfirmed] && self.parked();
        Told { provoked: self.product.recorded().is_empty(), named, healed: None }
    }

    async fn older_than_the_push(&mut self) -> Told {
        // Where our ids collapse, nothing is read before a sweep.
        let keyed = self.world.below(2) == 0;
        if keyed {
            self.product.facts = facts(VerdictRule::Appends, KeyOnWrite::Collapses);
        }
        let before = self.book.backup();
        self.push(&[]).await;
        self.book.restore(before);
        let rows = self.product.rows_there();
        let older_ms = 2 * DAY_MS + self.world.below(400 * DAY_MS);
        self.product.forget_rows();
        self.product.put(rows.into_iter().map(|(cycle, row)| (cycle, Stored { at_ms: row.at_ms - older_ms, ..row })));
        self.push(&[]).await;
        let named = self.desk().sweep().await == [Flag::SuspiciousMatch] && (keyed || self.parked());
        Told { provoked: self.product.recorded().len() as u64 == self.count, named, healed: None }
    }

    async fn two_cycles(&mut self) -> Told {
        self.push(&[]).await;
        // Another machine's search doesn't show the first one's cycle yet.
        *self.product.blind.lock().unwrap() = 1;
        let other = MemoryBook::new(&self.world);
        let desk = Desk { book: &other, ..self.desk() };
        let done = desk.forward(self.load("run:7:job:b", 1, Status::Passed), LONG_MS).await.unwrap().unwrap();
        let named = done.all_flags() == [Flag::CycleDoubled] && other.flags() == [Flag::CycleDoubled];
        Told { provoked: self.product.cycles() == 2, named, healed: None }
    }

    async fn an_old_attempt(&mut self) -> Told {
        let second = self.load("run:7", 2, Status::Passed);
        self.desk().forward(second, LONG_MS).await.unwrap().unwrap();
        let other = MemoryBook::new(&self.world);
        let desk = Desk { book: &other, sole: false, ..self.desk() };
        let done = desk.forward(self.load("run:7", 1, Status::Failed), LONG_MS).await.unwrap().unwrap();
        Told { provoked: true, named: done.all_flags() == [Flag::Stale] && self.each_once(), healed: None }
    }

    async fn rows_of_others(&mut self) -> Told {
        self.product.facts = facts(VerdictRule::Replaces, KeyOnWrite::None);
        self.push(&[]).await;
        let rows: Vec<_> = self
            .first_rows()
            .into_iter()
            .take(1)
            .map(|(cycle, row)| (cycle, Stored { foreign: true, ..row }))
            .collect();
        self.product.put([rows.clone(), rows].concat());
        let told = Told { provoked: true, named: self.desk().sweep().await == [Flag::RowsAmbiguous], healed: None };
        let ours = self.product.rows_there().into_iter().filter(|(_, row)| !row.foreign).collect::<Vec<_>>();
        self.product.forget_rows();
        self.product.put(ours);
        Told { healed: Some(self.desk().sweep().await.is_empty()), ..told }
    }
}
