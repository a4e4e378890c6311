//! Faults that can be switched on in a build made for proving (feature `mutants`): the bugs of others, most of them from
//! public reports (`facts/idempotency.md`, 5.3), so that each check can show that it would have noticed.
//! Without the feature every switch is `false` and the compiler drops what it guards. Must not be on in a release.
//!
//! In a build with it, programs and tests alike are mutated by [`VARIABLE`]; `cargo xtask mutants` runs the checks.

/// `true` if this mutant is switched on, in a build made for proving; else `false`, at compile time.
#[macro_export]
macro_rules! mutant {
    ($name:ident) => {
        $crate::mutants::is_on($crate::mutants::Mutant::$name)
    };
}

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $what:literal;)*) => {
        /// One fault on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Mutant {
            $($(#[$doc])* $name = $number,)*
        }

        impl Mutant {
            /// All of them, by number.
            pub const ALL: &'static [Mutant] = &[$(Mutant::$name),*];

            /// What is wrong under it, in a line.
            pub fn what(self) -> &'static str {
                match self { $(Mutant::$name => $what,)* }
            }
        }
    };
}

mutants! {
    /// The key is looked up before the transaction, not decided by inserting.
    M1 = 1, "read, then insert";
    /// `OpenMeter`: the key is claimed before the write, and stays when the write fails.
    M2 = 2, "claim before the write, not released";
    /// Svix: a lease of some seconds decides who applies a key.
    M3 = 3, "a lock lease of 5 s decides";
    /// Powertools: a live delivery is taken for an orphan.
    M4 = 4, "in progress reclaimed as orphan";
    /// Powertools for Java: seconds read as milliseconds.
    M5 = 5, "seconds for milliseconds in the idle time";
    /// Svix: the key is scoped to the credential.
    M6 = 6, "credential in the key";
    /// Restate, Svix: parts of the key joined without escaping.
    M7 = 7, "key parts joined without escaping";
    /// Keys cut or folded.
    M8 = 8, "key truncated and case-folded";
    /// Restate, Qonto: the content is not compared.
    M9 = 9, "no fingerprint of the content";
    /// The place is not part of what must agree.
    M10 = 10, "fingerprint without the place";
    /// Stripe v1: a failure is stored and replayed.
    M11 = 11, "a failed answer is stored and replayed";
    /// The universal hole: a key expires, and the write runs again.
    M12 = 12, "a key expires, then it is recorded again";
    /// `MongoDB`, Temporal: only the latest content of a key is remembered.
    M13 = 13, "only the latest revision is remembered";
    /// Sentry: aggregates are raised before the duplicate is found.
    M14 = 14, "counts are raised before the key is looked at";
    /// `ClickHouse`: a token registered beyond its effect.
    M15 = 15, "the key is registered although its outcomes are not written";
    /// What follows from a write is stored outside its transaction.
    M16 = 16, "the receipt is stored outside the transaction";
    /// Kafka: end markers that don't look at the epoch.
    M17 = 17, "commit without a look at the epoch";
    /// A chunk short.
    M18 = 18, "commit accepts n-1 chunks";
    /// `MinIO`: completing forgets the receipt.
    M19 = 19, "a repeated commit finds no receipt";
    /// A delayed commit of a dead epoch.
    M20 = 20, "a delayed commit answers success after the next epoch's";
    /// Late chunks.
    M21 = 21, "a chunk for a dead epoch becomes visible";
    /// Collection that believes the clock at once.
    M22 = 22, "collection by the clock alone";
    /// Collection of what is in use.
    M23 = 23, "collection sweeps the current epoch";
    /// An answer before it is durable.
    M24 = 24, "the answer leaves before COMMIT returns";
    /// A warning of a synchronous standby.
    M25 = 25, "a warning of the synchronous wait is taken for success";
    /// storj: an ambiguous commit reported as failure.
    M26 = 26, "an ambiguous commit is reported as a failure";
    /// Keys looked up where they may not have arrived yet.
    M27 = 27, "keys are looked up on a replica";
    /// A durability that a power cut undoes.
    M28 = 28, "SQLite synchronous=NORMAL";
    /// jetcd: something beneath repeats by itself.
    M29 = 29, "the HTTP client repeats by itself, under a fresh key";
    /// NATS: what is known is in memory only.
    M30 = 30, "known keys are lost on restart";
    /// NATS: a staged marker blocks the retry.
    M31 = 31, "a dead delivery's marker blocks the retry";
    /// `MongoDB`: a retry after a rollback applies twice.
    M32 = 32, "a retry after a rollback is applied twice";
    /// A begin that changes nothing raises the epoch.
    M33 = 33, "resuming raises the epoch";
    /// Two clients that chase each other.
    M34 = 34, "anybody supersedes anybody";
    /// The attempt is part of the key.
    M35 = 35, "attempt number in the key";
    /// A first look that finds nothing is believed.
    M36 = 36, "forwarding sends again on the first absence";
    /// A vendor's "already exists".
    M37 = 37, "a vendor's already-exists is taken for a failure";
    /// `YugabyteDB`: parallel equal inserts.
    M38 = 38, "two parallel equal inserts both succeed";
    /// S3: an error inside a 200.
    M39 = 39, "a broken body in a 2xx answer is ignored";
    /// A difference that nobody hears of.
    M40 = 40, "a difference is dropped silently";
    /// `TigerBeetle`'s poisoned id removed.
    M41 = 41, "a commit refused for good succeeds later";
}

impl Mutant {
    /// `m17` as the facts name it.
    pub fn name(self) -> String {
        format!("m{}", self as u8)
    }

    /// Back from [`Mutant::name`].
    pub fn parse(name: &str) -> Option<Self> {
        Mutant::ALL.iter().copied().find(|mutant| mutant.name() == name)
    }
}

/// The variable that switches one on, by its name, in any program or test of a build made for proving.
pub const VARIABLE: &str = "TALLYONCE_MUTANT";

#[cfg(feature = "mutants")]
static ON: std::sync::LazyLock<std::sync::atomic::AtomicU8> = std::sync::LazyLock::new(|| chosen().into());

/// What [`VARIABLE`] says when the first switch is looked at.
#[cfg(feature = "mutants")]
#[expect(clippy::disallowed_methods, reason = "tests of every crate are mutated from outside; never in a release")]
fn chosen() -> u8 {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    Mutant::parse(&name).map_or(0, |mutant| mutant as u8)
}

/// Whether this mutant is switched on in this process.
#[cfg(feature = "mutants")]
pub fn is_on(mutant: Mutant) -> bool {
    ON.load(std::sync::atomic::Ordering::Relaxed) == mutant as u8
}

/// Whether this mutant is switched on: never, in this build.
#[cfg(not(feature = "mutants"))]
#[inline]
pub const fn is_on(_: Mutant) -> bool {
    false
}

/// Switches one mutant on in this process, or all off.
#[cfg(feature = "mutants")]
pub fn switch_on(mutant: Option<Mutant>) {
    ON.store(mutant.map_or(0, |mutant| mutant as u8), std::sync::atomic::Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forty_one_are_listed_under_their_numbers() {
        let numbers: Vec<u8> = Mutant::ALL.iter().map(|mutant| *mutant as u8).collect();
        assert_eq!(numbers, (1..=41).collect::<Vec<u8>>());
        assert!(Mutant::ALL.iter().all(|mutant| Mutant::parse(&mutant.name()) == Some(*mutant)));
    }

    #[test]
    fn none_is_on_by_itself() {
        assert!(!Mutant::ALL.iter().any(|mutant| is_on(*mutant)));
    }
}
