//! Damage done on purpose after a world has come to rest, each of a kind that the checker must name.
//! Must not be used but to show that the checker is alive.

use std::sync::Arc;

use domain::protocol::DifferenceClass;
use domain::{Digest, Incarnation, ProblemCode, PushKey};
use store::Store as _;

use crate::history::Heard;
use crate::process::World;

/// What is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Rounds are gone, and nobody deleted them.
    Lose,
    /// A report is recorded once more, under a key that nobody used.
    Twice,
    /// A runner is told the receipt of another content, and nothing of a difference.
    Suppress,
    /// A runner is told other bytes than the others.
    OtherBytes,
    /// A runner that is recorded was told that it is refused.
    Phantom,
}

/// All of them, and the word by which each must be noticed.
pub(crate) const ALL: [(Sabotage, &str); 5] = [
    (Sabotage::Lose, "LOST"),
    (Sabotage::Twice, "PHANTOM"),
    (Sabotage::Suppress, "SUPPRESSED"),
    (Sabotage::OtherBytes, "another receipt"),
    (Sabotage::Phantom, "PHANTOM"),
];

impl World {
    /// Breaks something.
    pub(crate) async fn sabotage(&self, what: Sabotage) {
        match what {
            Sabotage::Lose => self.lose().await,
            Sabotage::Twice => self.record_twice().await,
            Sabotage::Suppress => self.tamper(|heard| {
                if let Heard::Recorded { content, class, .. } = heard {
                    *content = Digest::of(b"another content");
                    *class = Some(DifferenceClass::None);
                }
            }),
            Sabotage::OtherBytes => self.tamper(|heard| {
                if let Heard::Recorded { receipt, .. } = heard {
                    receipt.push(b' ');
                }
            }),
            Sabotage::Phantom => self.tamper(|heard| {
                *heard = Heard::Refused(ProblemCode::Differs, "told on purpose".to_owned());
            }),
        }
    }

    async fn lose(&self) {
        for plan in &self.scenario.runners {
            let place = &plan.place;
            let _ = self.sim.durable.drop_round(&place.project, &place.cycle, place.round.as_str()).await;
        }
    }

    async fn record_twice(&self) {
        let Some(at) = self.first_recorded() else { return };
        let mut push = self.scenario.runners[at].push(Incarnation(1));
        push.key = PushKey::parse("a-key-that-nobody-used").expect("a key");
        let _ = self.sim.durable.record(Arc::new(push), self.sim.server_now()).await;
    }

    /// The first runner that was told that its own content is recorded, which nobody else offers, in a push that is still
    /// there.
    fn first_recorded(&self) -> Option<usize> {
        let history = self.sim.history();
        history.offers.iter().position(|offer| {
            let digest = offer.content.digest;
            let own = matches!(offer.last(), Some(Heard::Recorded { content, .. }) if *content == digest);
            let alike =
                history.offers.iter().filter(|other| other.push == offer.push && other.content.digest == digest);
            own && alike.count() == 1 && !history.dropped.contains(&offer.push)
        })
    }

    fn tamper(&self, with: impl FnOnce(&mut Heard)) {
        let Some(at) = self.first_recorded() else { return };
        let mut history = self.sim.history();
        history.offers[at].refusals = &[ProblemCode::Differs];
        if let Some(heard) = history.offers[at].heard.last_mut() {
            with(heard);
        }
    }
}
