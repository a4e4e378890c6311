//! The stubs' own tests: the kernel does each fault as it says, seen at both ends; each vendor behaves as documented
//! and is accepted by its vendor's own client.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests may panic, and say what they skip")]

#[path = "../it/client.rs"]
mod client;
mod clients;
mod faults;
mod jira_products;
mod keyed_clients;
mod nitrate;
mod quirks;
mod rpc_clients;
mod testrail;
mod testrail_clients;
mod toy;
