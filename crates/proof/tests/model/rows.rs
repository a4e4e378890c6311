//! Rows of `facts/idempotency.md` 3.5 that the model must come through, so that its silence means something, each with a
//! test named after it. Seen on transitions, outside the state: most rows leave everything unchanged.
//! Must not decide anything.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use crate::config::DEFAULT;

macro_rules! rows {
    ($($code:literal $test:ident [$($event:ident $words:literal,)+])*) => {
        /// Something that a row says may happen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Event { $($($event,)+)* }

        /// Every event with its row and in words.
        pub(crate) const EVENTS: &[(Event, &str, &str)] = &[$($((Event::$event, $code, $words),)+)*];

        /// Every row that applies, in the order of 3.5; after them what other documents ask for.
        pub(crate) const ROWS: &[&str] = &[$($code),*];

        mod row {
            $(#[test] fn $test() { super::is_reached($code); })*
        }
    };
}

rows! {
    "B1" b1 [B1 "absent: begin opens epoch 1",]
    "B2" b2 [B2 "begin again after a lost answer: the same epoch",]
    "B3" b3 [B3 "two begins of one manifest: the same epoch",]
    "B4" b4 [B4 "two begins, no order: the second waits",]
    "B5" b5 [B5Low "the lower ordinal begins last: refused", B5High "the lower ordinal begins first: fenced off",]
    "B6" b6 [B6 "executed again with a higher ordinal: new epoch",]
    "B7" b7 [B7 "idle, no order: new epoch",]
    "B8" b8 [B8None "resume, all chunks missing", B8Some "some chunks missing", B8All "no chunk missing",]
    "B9" b9 [B9 "delayed begin of an incarnation that was fenced off",]
    "B10" b10 [B10 "lower ordinal against epoch 2: stale attempt",]
    "B11" b11 [
        B11 "another place under a recorded key: refused with the fields",
        B11Staged "another place beside an open epoch: refused with the fields",
    ]
    "B12" b12 [B12 "committed: the same manifest replays",]
    "B13" b13 [B13Cosmetic "committed: other times replay as cosmetic", B13Cuts "committed: other cuts replay",]
    "B14" b14 [B14 "committed: other outcomes are refused, and it is said", B14Overlay "committed: they open an overlay",]
    "B15" b15 [B15 "tombstone: gone",]
    "B16" b16 [B16 "killed before COMMIT of a begin: nothing is there",]
    "B17" b17 [B17 "killed after COMMIT of a begin: open, nobody was told",]
    "B18" b18 [B18 "a begin in COMMIT is run again first: the late one resumes",]
    "B19" b19 [B19 "the begin's answer is lost on the way, and it comes again",]
    "P1" p1 [P1 "put",]
    "P2" p2 [P2 "put again: replayed",]
    "P3" p3 [P3 "puts out of order",]
    "P4" p4 [P4 "cut or flipped bytes: refused",]
    "P5" p5 [P5 "bytes of another content: mismatch",]
    "P6" p6 [P6 "put for an epoch that was fenced off: superseded",]
    "P7" p7 [P7Put "put first: superseding leaves an orphan", P7Begin "begin first: the chunk stays out",]
    "P8" p8 [P8 "late duplicate put of a committed epoch: replayed",]
    "P9" p9 [P9 "wrong bytes for a committed epoch: mismatch",]
    "P10" p10 [P10 "put for an abandoned epoch: gone",]
    "P11" p11 [P11 "number beyond the last chunk",]
    "P12" p12 [P12 "the transaction of a put fails: unchanged",]
    "P13" p13 [P13Before "killed before COMMIT of a put: it is put again", P13After "killed after it: replayed",]
    "P14" p14 [P14 "the runner never returns: abandoned, nothing visible",]
    "P15" p15 [P15 "an old put after the collection: gone",]
    "C1" c1 [C1 "commit",]
    "C2" c2 [C2 "commit overtakes a put: incomplete",]
    "C3" c3 [C3 "commit again: the same receipt",]
    "C4" c4 [C4 "two wishes commit one epoch: one commit, one replay",]
    "C5" c5 [C5Commit "commit first: the begin finds it recorded", C5Begin "begin first: the whole epoch cannot commit",]
    "C6" c6 [C6 "delayed commit after another epoch's commit",]
    "C7" c7 [C7Commit "commit first: nothing to abandon", C7Gc "abandoned first: the whole epoch cannot commit",]
    "C8" c8 [C8Before "killed before COMMIT of a commit: still open", C8After "killed after it: recorded, nobody was told",]
    "C9" c9 [C9 "a commit in COMMIT is run again first: one commit, one replay",]
    "C10" c10 [C10 "the client dies unread and its job is executed again with other outcomes",]
    "C11" c11 [C11 "refused for good, for a reason that only the commit sees",]
    "C11a" c11a [C11a "delayed copy of a refused commit: refused",]
    "C12" c12 [C12Begin "deleted: a late begin is gone", C12Commit "deleted: a late commit is gone",]
    "N1" n1 [N1Cancel "cancel first: commit finds it gone", N1Commit "commit first: cancel finds it committed",]
    "N2" n2 [N2 "cancel again",]
    "R1" r1 [R1 "another number of shards than the round was planned with",]
    "R2" r2 [R2 "an item in two shards: both are recorded, it counts once",]
    "G1" g1 [G1 "idle epoch abandoned",]
    "G2" g2 [G2 "the collector stops between two batches",]
    "G3" g3 [G3 "dead epoch swept beside a recorded one",]
    "G4" g4 [G4 "seen idle once only, as after a jump of the clock: kept",]
    "G5" g5 [G5 "not seen idle now, as after a jump back: kept",]
    "X1" x1 [X1 "a fenced runner begins again after its rival died, and commits",]
    "X2" x2 [X2 "a fenced runner reads its rival's receipt",]
    "X3" x3 [X3 "two runners with identical bytes: one commit",]
    "X4" x4 [X4 "the same request again while the first is being applied",]
    "X5" x5 [X5 "delayed copy of an old begin supersedes an idle epoch",]
    "X6" x6 [X6 "a paused runner puts after its rival was recorded: superseded",]
    "V1" v1 [V1 "promotion with the newest receipt",]
    "V2" v2 [V2 "the promotion again: the same answer",]
    "V3" v3 [V3 "two promotions race: receipt-mismatch",]
    "V4" v4 [V4 "an overlay abandoned half-way: the first revision stays",]
    "V5" v5 [V5 "delayed commit after a later revision: the first receipt, with the current revision",]
    "O1" o1 [O1Absent "one request, nothing there", O1Recorded "one request, recorded", O1Wait "one request, others stage",]
    "O2" o2 [O2 "one request with the content that is being staged: the epoch is committed with it",]
    "H1" h1 [H1 "attach, and the commit happens meanwhile",]
    "H2" h2 [H2 "another project's equal key is another key",]
    // Not in 3.5, but to be come through: 3.6, the situations and the design.
    "zombie" zombie [ZombieCommit "a commit is applied after it was run again",]
    "supersessions" supersessions [TwoSupersessions "two supersessions",]
    "legs" legs [
        LegsOpen "a second executor at one attempt, beside an open epoch: key-collision",
        LegsRecorded "beside a recorded push: key-collision",
    ]
    "contested" contested [LegsContested "two executors were seen at one attempt: another is refused at any",]
    "other-work" other_work [OtherWork "other work under a known key: key-collision, at the commit",]
    "undecided" undecided [Undecided "without an item vector: staged first, decided at the commit",]
    "meanwhile" meanwhile [PromotedWhileStaging "a promotion while an overlay is staged",]
    "confirmed" confirmed [Confirmed "a later attempt comes to a recorded content",]
}

/// Rows of 3.5 that this system does not have, each with its reason.
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("C13", "the server has no outbox: the client's is emptied by a receipt, and its repeats are B12 and C3"),
    ("C14", "one store in one file: no quorum and no fail-over"),
    ("C15", "no asynchronous replica: a commit is answered when it is on the one disk"),
    ("C16", "no asynchronous replica: a stored chunk is on the one disk"),
    ("C17", "no asynchronous replica: a begun epoch is on the one disk"),
    ("C18", "a restored backup is a decision of a person outside the protocol; any retry heals, as with C15"),
];

/// All that the default configurations come through, walked once for all tests.
pub(crate) fn reached() -> &'static BTreeSet<Event> {
    static REACHED: OnceLock<BTreeSet<Event>> = OnceLock::new();
    REACHED.get_or_init(|| DEFAULT.iter().flat_map(|config| crate::exhaust(config).events).collect())
}

/// Events of a row that are not among these.
pub(crate) fn missing(row: &str, reached: &BTreeSet<Event>) -> Vec<&'static str> {
    let missed = EVENTS.iter().filter(|(event, of, _)| *of == row && !reached.contains(event));
    missed.map(|(_, _, words)| *words).collect()
}

fn is_reached(row: &str) {
    let missing = missing(row, reached());
    assert!(missing.is_empty(), "row {row}: never reached: {missing:?}");
}
