//! The server over real sockets and every store engine, spoken to as plain HTTP clients do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop"
)]

mod http;
mod served;

mod attach;
mod clients;
mod docs;
mod listing;
mod local;
mod malformed;
mod openapi;
mod overload;
mod problems;
mod replay;
mod revise;
mod rounds;
