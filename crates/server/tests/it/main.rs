//! The server over real sockets and every store engine, spoken to as plain HTTP clients do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop"
)]

mod http;
mod in_process;
mod served;
mod staging;

mod attach;
mod begin;
mod chunks;
mod clients;
mod commits;
mod docs;
mod fences;
mod listing;
mod local;
mod malformed;
mod openapi;
mod overload;
mod points;
mod problems;
mod replay;
mod revise;
mod rounds;
mod staged_faults;
