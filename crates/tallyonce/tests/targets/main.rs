//! `push --to NAME` and the commands about targets, by the built program, against stub servers of the products that break
//! on purpose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod doubles;
mod faults;
mod matrix;
mod products;
mod site;
mod usage;
mod verdict;
