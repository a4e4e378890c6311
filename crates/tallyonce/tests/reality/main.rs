//! The guarantee on real processes, sockets and files: the built program, cut and killed at every step, read back
//! through its own commands and through an independent reader of its tables.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

mod bench;
mod big;
mod enumerate;
mod faults;
mod input;
mod kills;
mod once;
mod random;
mod rows;
mod situations;
mod world;
