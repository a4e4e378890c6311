//! Stub servers of the products that Tallyonce writes to: each behaves as its vendor documents, and breaks on
//! purpose in the ways that vendors, gateways and administrators do. Must not know any client of ours.
//!
//! # How to add a vendor
//!
//! 1. A file `stubs/<vendor>.rs`, with a type that holds the vendor's state: plain maps, and [`Rows`] for outcomes.
//! 2. `impl Vendor` for it. [`Vendor::handle`] is one transaction: `let (method, path) = call.request.route();`,
//!    `match (method, path.as_slice()) { ("POST", ["runs", run, "results"]) => .. }`, `Answer::json(200, &..).into()`.
//!    Where the vendor checks first and inserts later without a lock, return [`Turn::gap`] between the two.
//! 3. [`Vendor::classify`]: what is a read, a write, a login, and the vendor's word for the call.
//! 4. [`Vendor::ledger`]: item → [`RecordedRow`]s. What a repeat would multiply beside the row goes into `side`.
//! 5. [`Vendor::problem`] is the vendor's error shape, [`Vendor::part`] cuts a bulk ([`Request::with_first`]),
//!    [`Vendor::admin`] closes cycles and renames statuses, [`Vendor::rate`] is the documented limit.
//! 6. The repeat rule is data: `Rows::new(Rule::honest(Repeat::Append), 1)`. Answer by [`Told`] alone, then
//!    `Rule::lying(..)` makes a vendor that says one thing and does another.
//! 7. Use [`Call::kept`] for each text that is stored, [`Rows::shown`] for lists ([`Call::sees`] for rows of your
//!    own), [`Call::page`] for pages, [`Call::unix_ms`] for each time that is shown. Jobs: [`Jobs`], and [`Vendor::settle`].
//! 8. Nothing else: sockets, faults, waits, limits, unknown members and the log are the kernel's.
//!
//! A test starts it (`Stub::start(vendor)?`), gives it a [`Plan`] and [`Quirks`], points a client at
//! [`Door::url`], and looks at [`Door::ledger`], [`Door::doubled`], [`Door::lost`] and [`Door::log`]. Tests for all
//! vendors take a `&Door`; what needs the vendor's own state goes through [`Stub::vendor`] and [`Stub::before`].
//! Faults of the network alone can also be had from [`crate::proxy`] in front of a stub. `tests/stubs/toy.rs` is a
//! whole vendor in a hundred lines. A stub is believable when the vendor's own client works against it unchanged: see
//! `rigs/clients` and `tests/stubs/clients.rs`. [`Live`] puts the same faults in front of a real server.

pub mod allure;
pub mod azure;
mod fault;
pub mod generic;
mod jql;
mod kernel;
pub mod kiwi;
pub mod live;
mod message;
pub mod nitrate;
pub mod qase;
mod quirks;
pub mod reportportal;
mod rows;
mod serve;
mod shared;
pub mod testlink;
pub mod testmo;
pub mod testrail;
mod vendor;
mod xml_rpc;
pub mod xray;
pub mod zephyr_cloud;
pub mod zephyr_server;

pub use allure::Allure;
pub use azure::Azure;
pub use fault::{Admin, Fault, JobFate, Plan, RetryAfter, Select, When};
pub use kernel::{Door, Stub};
pub use kiwi::Kiwi;
pub use live::Live;
pub use message::{Answer, Part, Request};
pub use nitrate::Nitrate;
pub use qase::Qase;
pub use quirks::{Damage, Lag, Limit, Quirks, Rate};
pub use reportportal::ReportPortal;
pub use rows::{JobState, Jobs, Repeat, Row, Rows, Rule, Told};
pub use shared::Event;
pub use testlink::TestLink;
pub use testmo::Testmo;
pub use testrail::TestRail;
use vendor::file;
pub use vendor::{Call, Kind, Ledger, Next, RecordedRow, Stamp, Turn, Vendor};
pub use xray::{XrayCloud, XrayServer};
pub use zephyr_cloud::ZephyrCloud;
pub use zephyr_server::ZephyrServer;
