//! A second opinion on what was recorded: what generated reports say, and what the tables of a store in `SQLite` say, read
//! without the code that is judged. Written from the layout's prose alone.
//! Must not know store, reports or domain, and must not share a line with them.

mod bytes;
mod contents;
mod doubles;
mod fold;
mod junit;
mod layout;
mod names;
mod tables;

pub use contents::{Fate, How, Stored};
pub use junit::{JunitSpec, expected_from_junit, generate_junit, item_text};
pub use tables::{Oracle, Row};
