//! What a run of many worlds was made of, as a table: a zero counts only beside how much of what it was found in.
//! Must not judge a single push.

use std::fmt;

use crate::checker::Came;
use crate::faults::Class;
use crate::history::CLASSES;
use crate::world::{Outcome, PushFacts};

/// Sums over worlds.
#[derive(Debug, Default, Clone)]
pub(crate) struct Mix {
    pub(crate) worlds: u64,
    pub(crate) pushes: u64,
    pub(crate) faulted: u64,
    chunked: u64,
    executed_again: u64,
    racing: u64,
    classes: [u64; CLASSES],
    came: [u64; 6],
    requests: u64,
    looks: u64,
}

impl Mix {
    /// Adds a world.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.worlds += 1;
        self.requests += outcome.requests;
        self.looks += outcome.looks;
        for push in &outcome.pushes {
            self.pushes += 1;
            self.add_push(push);
        }
    }

    /// Shares are of pushes that at least one fault hit.
    fn add_push(&mut self, push: &PushFacts) {
        if push.faults.iter().all(|n| *n == 0) {
            return;
        }
        self.faulted += 1;
        self.chunked += u64::from(push.chunks > 1);
        self.executed_again += u64::from(push.executed_again);
        self.racing += u64::from(push.racing);
        for (sum, n) in self.classes.iter_mut().zip(push.faults) {
            *sum += u64::from(n > 0);
        }
        if let Some(came) = push.came {
            self.came[came as usize] += 1;
        }
    }

    /// Adds another thread's sums.
    pub(crate) fn join(&mut self, other: &Mix) {
        self.worlds += other.worlds;
        self.pushes += other.pushes;
        self.faulted += other.faulted;
        self.chunked += other.chunked;
        self.executed_again += other.executed_again;
        self.racing += other.racing;
        self.requests += other.requests;
        self.looks += other.looks;
        self.classes.iter_mut().zip(other.classes).for_each(|(a, b)| *a += b);
        self.came.iter_mut().zip(other.came).for_each(|(a, b)| *a += b);
    }

    fn percent(&self, n: u64) -> f64 {
        100.0 * n as f64 / self.faulted.max(1) as f64
    }

    /// Shares that are too small for the run to count.
    pub(crate) fn too_small(&self) -> Vec<String> {
        let shares =
            [("several chunks", self.chunked), ("executed again", self.executed_again), ("racing", self.racing)];
        let wide = shares.into_iter().filter(|(_, n)| self.percent(*n) < 20.0).map(|(what, n)| (what, self.percent(n)));
        let classes = Class::ALL.into_iter().map(|class| (class.words(), self.percent(self.classes[class as usize])));
        let narrow = classes.filter(|(_, percent)| *percent < 1.0);
        wide.chain(narrow).map(|(what, percent)| format!("{what}: {percent:.2} %")).collect()
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |what: &str, n: u64| writeln!(f, "{what:<42} {n:>12} {:>7.2} %", self.percent(n));
        row("pushes that a fault hit", self.faulted)?;
        row("  of several chunks", self.chunked)?;
        row("  executed again", self.executed_again)?;
        row("  racing", self.racing)?;
        for class in Class::ALL {
            row(&format!("  {}", class.words()), self.classes[class as usize])?;
        }
        let came = [Came::Recorded, Came::Revised, Came::Kept, Came::Repeat, Came::Refused, Came::Unknown];
        for came in came {
            row(&format!("  came to: {came:?}"), self.came[came as usize])?;
        }
        writeln!(
            f,
            "{} worlds, {} pushes in all, {} requests, {} looks of readers",
            self.worlds, self.pushes, self.requests, self.looks
        )
    }
}
