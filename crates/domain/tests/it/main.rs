//! Tests of the crate through its public door. One binary, one file per room.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod ci;
mod key;
mod protocol;
mod round;
mod staging;
mod verdict;
