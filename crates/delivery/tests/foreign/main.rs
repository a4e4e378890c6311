//! Adapters against stub servers of their products.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod given;
mod kiwi;
mod kiwi_live;
mod live;
mod nitrate_live;
mod testlink;
mod testrail;
