//! How long a target is left alone after a try that came to no end. Must not know why a product did what it did.

use delivery::foreign::Halt;

use super::ForwardTerms;

/// What stood in the way, and so how long the target is left alone. A push has its own, longer wait in the store: what
/// fails for one push alone never holds up the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hurdle {
    /// The product refuses who asks, whatever is sent.
    Denied,
    /// The product refuses what is asked: of this push, or of all.
    Refused,
    /// No answer that says what became of it, or a store that keeps nothing.
    Silence,
}

/// How long the target is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rest {
    /// Until then.
    until_ms: u64,
    /// Until then, if something new was recorded.
    fresh_ms: u64,
    /// How often in a row it refused who asks.
    denied: u32,
}

impl Hurdle {
    /// What ended a try.
    pub(super) fn of(halt: &Halt) -> Self {
        match halt {
            Halt::Denied(_) => Self::Denied,
            Halt::Refused(_) | Halt::Gone(_) => Self::Refused,
            Halt::Over(_) | Halt::Stopped(_) | Halt::Book(_) => Self::Silence,
        }
    }
}

impl Rest {
    /// How long it is still left alone; shorter, if something new was recorded.
    pub(super) fn left_ms(self, is_fresh: bool, now_ms: u64) -> u64 {
        let until_ms = if is_fresh { self.fresh_ms } else { self.until_ms };
        until_ms.saturating_sub(now_ms)
    }

    /// After one more try that came to no end.
    pub(super) fn after(self, hurdle: Hurdle, now_ms: u64, terms: ForwardTerms) -> Self {
        let until = |ms: u64| now_ms.saturating_add(ms);
        let alike = |ms: u64| Self { until_ms: until(ms), fresh_ms: until(ms), denied: 0 };
        match hurdle {
            Hurdle::Denied => Self {
                until_ms: until(terms.backoff_ms(self.denied)),
                fresh_ms: until(terms.first_backoff_ms),
                denied: self.denied.saturating_add(1),
            },
            Hurdle::Refused => alike(terms.first_backoff_ms / 60),
            Hurdle::Silence => alike(terms.first_backoff_ms / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_rests_shorter_than_the_push_that_failed_unless_it_refuses_everybody() {
        let terms = ForwardTerms::default();
        for hurdle in [Hurdle::Refused, Hurdle::Silence] {
            let rest = Rest::default().after(hurdle, 1_000, terms);
            assert!(rest.until_ms < 1_000 + terms.backoff_ms(0) && rest.until_ms > 1_000, "{rest:?}");
            assert_eq!(rest.after(hurdle, 1_000, terms), rest, "it never grows");
        }
        let mut rest = Rest::default();
        let minutes: Vec<(u64, u64)> = (0..7)
            .map(|_| {
                rest = rest.after(Hurdle::Denied, 0, terms);
                (rest.until_ms / 60_000, rest.fresh_ms / 60_000)
            })
            .collect();
        assert_eq!(minutes, [(1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (30, 1), (30, 1)]);
    }
}
