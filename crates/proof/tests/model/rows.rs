//! Rows of `facts/idempotency.md` 3.5 that the model must come through, so that its silence means something.
//! Seen on transitions, outside the state: most rows leave everything unchanged. Must not decide anything.

use stateright::Property;

use crate::actions::Push;

macro_rules! rows {
    ($($row:ident $name:literal,)*) => {
        /// A row of 3.5.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Row { $($row),* }

        /// All rows with their names.
        pub(crate) const ALL: &[(Row, &str)] = &[$((Row::$row, $name)),*];

        /// One `sometimes` for each row.
        pub(crate) fn properties() -> Vec<Property<Push>> {
            vec![$(Property::<Push>::sometimes($name, |model, _| model.saw(Row::$row))),*]
        }
    };
}

rows! {
    B1 "B1 absent: begin opens epoch 1",
    B2 "B2 begin again after a lost answer: the same epoch",
    B3 "B3 two begins of one manifest: the same epoch",
    B4 "B4 two begins, no order: the second waits",
    B5Low "B5 lower ordinal begins last: refused at begin",
    B5High "B5 lower ordinal begins first: fenced off at once",
    B6 "B6 re-executed with a higher ordinal: new epoch",
    B7 "B7 idle, no order: new epoch",
    B8None "B8 resume with all chunks missing",
    B8Some "B8 resume with some chunks missing",
    B8All "B8 resume with no chunk missing",
    B9 "B9 delayed begin of a fenced-off incarnation",
    B10 "B10 lower ordinal against epoch 2: stale attempt",
    B12 "B12 committed: the same manifest replays",
    B14 "B14 committed: other outcomes are answered as a difference",
    B14Overlay "B14 committed: other outcomes open an overlay",
    P1 "P1 put",
    P2 "P2 put again: replayed",
    P3 "P3 puts out of order",
    P5 "P5 wrong bytes: mismatch",
    P6 "P6 put for a fenced-off epoch: superseded",
    P7Put "P7 put first: superseding leaves an orphan",
    P7Begin "P7 begin first: the chunk stays out",
    P8 "P8 late duplicate put of a committed epoch: replayed",
    P9 "P9 wrong bytes for a committed epoch: mismatch",
    P10 "P10 put for an abandoned epoch: gone",
    C1 "C1 commit",
    C2 "C2 commit overtakes a put: incomplete",
    C3 "C3 commit again: the same receipt",
    C4 "C4 two wishes commit one epoch: one commit, one replay",
    C5Commit "C5 commit first: the other begin finds it committed",
    C5Begin "C5 begin first: the whole epoch cannot commit",
    C6 "C6 delayed commit after another epoch's commit",
    C7Commit "C7 commit first: nothing to abandon",
    C7Gc "C7 abandon first: the whole epoch cannot commit",
    C11 "C11 refused for good",
    C11a "C11a delayed copy of a refused commit",
    N1Cancel "N1 cancel first: commit finds it gone",
    N1Commit "N1 commit first: cancel finds it committed",
    N2 "N2 cancel again",
    G1 "G1 idle epoch abandoned",
    G3 "G3 dead epoch swept beside a committed one",
    X1 "X1 fenced runner begins again after its rival died, and commits",
    X2 "X2 fenced runner reads its rival's receipt",
    X3 "X3 two runners with identical bytes: one commit",
    X5 "X5 delayed copy of an old begin supersedes an idle epoch",
    TwoSupersessions "two supersessions",
}
