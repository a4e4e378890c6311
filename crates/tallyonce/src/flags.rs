//! What is to be said of what was forwarded: the meaning of each flag, and the exit code. Must not know products.

use delivery::foreign::Forwarded;
use domain::intent::{Flag, Intent};

use crate::exit::Exit;

/// What a flag means for what people read in the product.
pub(crate) fn meaning(flag: Flag) -> &'static str {
    match flag {
        Flag::DuplicateDetected => {
            "one outcome stands there more than once; `tallyonce audit` shows it, `repair` mends it where the product lets one"
        }
        Flag::VendorLost => "the product confirmed it, and doesn't show it",
        Flag::Orphan => "outcomes of ours are there that this ledger doesn't know; `tallyonce audit` shows them",
        Flag::LedgerRestored => "it was there before this ledger sent it: the ledger is older than what it forwarded",
        Flag::CountContradicts => "the product counts neither none of it nor all of it: somebody else writes there",
        Flag::Partial => "a part of it is there, and a part isn't",
        Flag::MarkerMangled => "a marker came back changed, so nobody can tell whether the outcome is there",
        Flag::Vanished => "it was there, and is not any more: it is not sent again by itself",
        Flag::AtMostOnce => "nothing can be read there: it was sent once, and never again",
        Flag::AcceptedNotConfirmed => "it was accepted, and not seen since",
        Flag::SuspiciousMatch => "what was found there is older than the push: a copy, or a key that was used before",
        Flag::CycleDoubled => "more than one cycle carries this round's id; the oldest is used",
        Flag::CycleUnseen => {
            "the round's cycle was made, and the product doesn't list it: without this ledger the next push makes another"
        }
        Flag::Stale => "a newer attempt is there; this one was left out",
        Flag::RowsAmbiguous => {
            "several rows, or pushes, speak of a case where only one counts; a worse verdict may have been replaced"
        }
        Flag::Overtaken => {
            "what is shown is not what the newest attempt said: an older write, or a person, came after it"
        }
        Flag::GivenUp => "a person has looked, and said that it stays as it is",
    }
}

/// The worst that is to be said of a push that is settled.
pub(crate) fn exit_of(forwarded: &Forwarded) -> Exit {
    let wrong = forwarded.flags.iter().any(|flag| flag.is_wrong());
    if wrong || forwarded.intents.iter().any(Intent::is_in_doubt) || !forwarded.is_settled() {
        Exit::Forwarding
    } else if forwarded.refused().is_empty() {
        Exit::Success
    } else {
        Exit::Partly
    }
}
