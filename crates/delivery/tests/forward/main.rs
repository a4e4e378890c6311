//! Forwarding into repositories without keys, in a world where every answer can be lost and time is a number.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::large_futures,
    reason = "helpers of tests may panic and print, and hold a whole world"
)]

mod again;
mod attempts;
mod book;
mod desk;
mod faults;
mod gone;
mod halts;
mod older;
mod plain;
mod product;
mod refusals;
mod storm;
mod sweeps;
mod windows;
mod world;
