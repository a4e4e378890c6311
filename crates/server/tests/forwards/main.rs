//! Forwarding by the server itself: real servers over real sockets, to stubs of products that break on purpose.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

#[path = "../it/http.rs"]
#[allow(dead_code, reason = "shared with the other tests of this crate")]
mod http;
mod site;

mod answers;
mod containers;
mod loads;
mod sweeps;
mod told;
mod trouble;
mod workers;
