//! Audit, repair and probe over a product that may not be what its adapter believes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests may panic")]

mod audit;
mod cycles;
mod given;
mod histories;
mod probe;
mod product;
mod repair;
#[path = "../foreign/given.rs"]
#[allow(dead_code, reason = "shared with the tests of adapters, which need more of it")]
mod targets;
mod testrail;
mod ways;
#[path = "../forward/world.rs"]
#[allow(dead_code, reason = "shared with the tests of forwarding, which let processes die")]
mod world;
mod worth;
