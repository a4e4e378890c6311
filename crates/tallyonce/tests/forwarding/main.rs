//! Servers that forward by themselves what they record, as real processes over one store, killed, stopped and cut at every
//! step: afterwards every outcome stands at the target once, or a name says why not, and nothing is stuck. The oracle is the
//! stub's own rows, an own count of the reports, and the tables as they lie there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

mod kills;
mod oracle;
mod points;
mod random;
mod several;
mod windows;
mod world;
