//! Adapters against stub servers of their products.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod generic;
mod generic_keys;
mod given;
mod testrail;
