//! Each adapter against its product's stub: every call, the repeat rule, the marker, and each class of answer.
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
mod jira;
mod keyed;
mod qase;
mod reportportal;
mod testmo;
mod testrail;
mod xray_cloud;
mod xray_server;
mod zephyr_cloud;
mod zephyr_server;
