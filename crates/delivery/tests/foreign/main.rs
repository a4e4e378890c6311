//! Adapters against stub servers of their products.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod allure;
mod azure;
mod given;
mod keyed;
mod qase;
mod reportportal;
mod testmo;
mod testrail;
