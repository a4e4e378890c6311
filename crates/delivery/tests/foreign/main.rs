//! Each adapter against its product's stub: every call, the repeat rule, the marker, and each class of answer.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod jira;
mod xray_cloud;
mod xray_server;
mod zephyr_cloud;
mod zephyr_server;
