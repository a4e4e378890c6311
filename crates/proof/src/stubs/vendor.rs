//! What a vendor stub implements, and what it is given. Must not know sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::json;

use crate::stubs::fault::{Admin, Fault, JobFate};
use crate::stubs::message::{Answer, Request};
use crate::stubs::quirks::{Quirks, Rate};

/// The behaviour of one vendor: requests, changes of state, answers. The state is the implementing type itself;
/// the kernel holds it behind one lock, so that each [`Vendor::handle`] is one transaction.
pub trait Vendor: Send + Sized + 'static {
    /// Handles one request. Authentication is part of it. Faults are not: the kernel has done or will do them.
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self>;

    /// What a request is, for plans and for the log. It must not look at anything but the request.
    fn classify(&self, request: &Request) -> Kind;

    /// Everything that stands recorded now, deleted rows left out.
    fn ledger(&self) -> Ledger;

    /// The vendor's error shape, for refusals that the kernel makes.
    fn problem(&self, status: u16, text: &str) -> Answer {
        Answer::json(status, &json!({ "error": text }))
    }

    /// The same bulk write with only its first `count` outcomes ([`Request::with_first`]); `None` if it is no bulk.
    fn part(&self, _request: &Request, _count: usize) -> Option<Request> {
        None
    }

    /// A real server that answers each request instead of [`Vendor::handle`], several at once if they come so.
    fn upstream(&self) -> Option<SocketAddr> {
        None
    }

    /// Lets time pass: jobs that are due are done. Called before each request and before each look at the ledger.
    fn settle(&mut self, _now: Stamp) {}

    /// An administrator's act; `false` if there is no such thing here.
    fn admin(&mut self, _act: &Admin) -> bool {
        false
    }

    /// The rate that the vendor documents.
    fn rate(&self) -> Option<Rate> {
        None
    }
}

/// How a request is handled: at once, or in two transactions with a gap between them.
pub enum Turn<V> {
    /// Done, with this answer.
    Done(Answer),
    /// The vendor lets go of its lock here, although it has looked at something: the race of a check and an insert.
    Gap {
        /// A name for [`meet`](crate::stubs::Door::meet).
        point: &'static str,
        /// What follows.
        then: Next<V>,
    },
}

/// The transaction after a gap.
pub type Next<V> = Box<dyn FnOnce(&mut V, &Call<'_>) -> Turn<V> + Send>;

impl<V> Turn<V> {
    /// A gap of this name, and what follows it.
    pub fn gap(point: &'static str, then: impl FnOnce(&mut V, &Call<'_>) -> Turn<V> + Send + 'static) -> Self {
        Turn::Gap { point, then: Box::new(then) }
    }
}

impl<V> From<Answer> for Turn<V> {
    fn from(answer: Answer) -> Self {
        Turn::Done(answer)
    }
}

impl<V> std::fmt::Debug for Turn<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Turn::Done(answer) => f.debug_tuple("Done").field(answer).finish(),
            Turn::Gap { point, .. } => f.debug_struct("Gap").field("point", point).finish_non_exhaustive(),
        }
    }
}

/// What a request is. The name is the vendor's word for the call, for [`Select::what`](crate::stubs::Select::what).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Changes nothing.
    Read(String),
    /// Changes something that is recorded.
    Write(String),
    /// Logs in, fetches a token.
    Auth,
}

impl Kind {
    /// The vendor's word for the call.
    pub fn what(&self) -> &str {
        match self {
            Kind::Read(what) | Kind::Write(what) => what,
            Kind::Auth => "auth",
        }
    }
}

/// A moment at the vendor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Rises with every transaction: the order of what was recorded.
    pub order: u64,
    /// Milliseconds since 1970, true.
    pub unix_ms: i64,
    /// How many reads had come by then.
    pub reads: u64,
}

/// One transaction: the request, the moment, and what the kernel has in store for it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The request; after a gap the same again.
    pub request: &'a Request,
    /// The moment, to be kept in rows.
    pub now: Stamp,
    pub(super) quirks: &'a Quirks,
    pub(super) faults: &'a [Fault],
}

impl Call<'_> {
    /// The vendor's own clock, skew included, in milliseconds since 1970: for every time that it shows.
    pub fn unix_ms(&self) -> i64 {
        self.now.unix_ms + self.quirks.skew_ms
    }

    /// The vendor's own clock in whole seconds.
    pub fn unix_s(&self) -> i64 {
        self.unix_ms().div_euclid(1000)
    }

    /// Whether a list shows a row that was written at that moment: lists may lag.
    pub fn sees(&self, written: Stamp) -> bool {
        self.quirks.lag.shows(written, self.now)
    }

    /// What is stored of a text that was sent: texts may be cut, escaped, trimmed.
    pub fn kept(&self, text: &str) -> String {
        self.quirks.damage.iter().fold(text.to_owned(), |text, damage| damage.applied(&text))
    }

    /// One page of a list, which may begin a row too late or too early.
    pub fn page<'r, T>(&self, rows: &'r [T], offset: usize, limit: usize) -> &'r [T] {
        let shifted = match self.faults.iter().find(|fault| matches!(fault, Fault::PageSkips | Fault::PageRepeats)) {
            Some(Fault::PageSkips) if offset > 0 => offset + 1,
            Some(Fault::PageRepeats) if offset > 0 => offset - 1,
            _ => offset,
        };
        let from = shifted.min(rows.len());
        &rows[from..rows.len().min(from.saturating_add(limit))]
    }

    /// What is to become of the job that this request starts.
    pub fn job(&self) -> JobFate {
        let fate = self.faults.iter().find_map(|fault| if let Fault::Job(fate) = fault { Some(*fate) } else { None });
        fate.unwrap_or(self.quirks.job)
    }
}

/// One row that stands recorded for an item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedRow {
    /// The vendor's id of the row.
    pub id: String,
    /// The vendor's id of the cycle that it is in.
    pub cycle: String,
    /// The text that holds the marker, as stored.
    pub marker: String,
    /// The vendor's word or number for the status.
    pub status: String,
    /// Rises in the order of recording.
    pub order: u64,
    /// When it was recorded, by the vendor's clock, in milliseconds since 1970.
    pub created_ms: i64,
    /// What hangs on the row and would multiply beside it: attachments, comments, links, history.
    pub side: Vec<String>,
}

/// How a file is shown beside a row: its name, and the BLAKE3 of its content.
pub(super) fn file(name: &str, bytes: &[u8]) -> String {
    format!("file {name} {}", blake3::hash(bytes).to_hex())
}

/// Item → rows, in the order of recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger(BTreeMap<String, Vec<RecordedRow>>);

impl Ledger {
    /// Item → rows.
    pub fn items(&self) -> &BTreeMap<String, Vec<RecordedRow>> {
        &self.0
    }

    /// The rows of one item; empty if it has none.
    pub fn rows(&self, item: &str) -> &[RecordedRow] {
        self.0.get(item).map_or(&[], Vec::as_slice)
    }

    /// How many rows there are in all.
    pub fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Items with more than one row in a cycle, and how many rows too many.
    pub fn doubled(&self) -> BTreeMap<String, usize> {
        self.doubled_by(|_| String::new())
    }

    /// Items with more than one row of the same mark in a cycle, and how many rows too many. Two rounds of one item
    /// in one cycle are no double: `mark` tells them apart.
    pub fn doubled_by(&self, mark: impl Fn(&RecordedRow) -> String) -> BTreeMap<String, usize> {
        let extra = |rows: &Vec<RecordedRow>| {
            let distinct: BTreeSet<(&str, String)> = rows.iter().map(|row| (row.cycle.as_str(), mark(row))).collect();
            rows.len() - distinct.len()
        };
        self.0.iter().map(|(item, rows)| (item.clone(), extra(rows))).filter(|(_, extra)| *extra > 0).collect()
    }

    /// Those of the expected items that have no row.
    pub fn lost<S: AsRef<str>>(&self, expected: impl IntoIterator<Item = S>) -> Vec<String> {
        let missing = expected.into_iter().filter(|item| self.rows(item.as_ref()).is_empty());
        missing.map(|item| item.as_ref().to_owned()).collect()
    }
}

impl FromIterator<(String, RecordedRow)> for Ledger {
    fn from_iter<I: IntoIterator<Item = (String, RecordedRow)>>(rows: I) -> Self {
        let mut ledger = BTreeMap::<String, Vec<RecordedRow>>::new();
        for (item, row) in rows {
            ledger.entry(item).or_default().push(row);
        }
        for rows in ledger.values_mut() {
            rows.sort_by_key(|row| row.order);
        }
        Self(ledger)
    }
}
