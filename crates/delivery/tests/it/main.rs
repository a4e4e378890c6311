//! Delivering, tested through the crate's public API.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod api;
mod attachments;
mod classify;
mod deliver;
mod destination;
#[cfg(feature = "failpoints")]
mod failpoints;
mod http;
mod outbox;
mod parcel;
mod points;
mod staged;
mod staged_http;
mod support;
mod tls;
