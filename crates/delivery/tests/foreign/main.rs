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
mod generic;
mod generic_keys;
mod generic_lists;
mod given;
mod guides;
mod jira;
mod keyed;
mod kiwi;
mod kiwi_live;
mod live;
mod nitrate;
mod nitrate_live;
mod qase;
mod reportportal;
mod testlink;
mod testmo;
mod testrail;
mod xray_cloud;
mod xray_server;
mod zephyr_cloud;
mod zephyr_server;
