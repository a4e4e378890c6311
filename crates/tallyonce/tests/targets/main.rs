//! `push --to NAME` and the commands about targets, by the built program, against stub servers of the products that break
//! on purpose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print"
)]

mod attached;
mod attachments;
mod audits;
mod beside;
mod calls;
mod counted;
mod counting;
mod doubles;
mod ending;
mod faults;
mod fleet;
mod live;
mod matrix;
mod peers;
mod places;
mod probed;
mod probes;
mod products;
mod served;
mod site;
mod summary;
mod told;
mod twins;
mod usage;
mod verdict;
