//! Faults on purpose: a fault proxy, stub servers of other products, real processes started and killed at chosen
//! points, and an independent reader of what they left behind. Needed by tests and by `tallyonce drill` only.
//!
//! Must not know the code that it judges: no dependency on store, server, delivery or reports.

pub mod clients;
pub mod history;
pub mod kill;
pub mod oracle;
pub mod proxy;
pub mod rigs;
pub mod rng;
pub mod spawn;
pub mod stubs;
