//! The stubs' own tests: the kernel does each fault as it says, seen at both ends; each vendor behaves as documented
//! and is accepted by its vendor's own client.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

#[path = "../it/client.rs"]
mod client;
mod faults;
mod quirks;

mod toy;
