//! A second opinion on what was recorded: what generated reports say, read without the code that is judged.
//! Must not know store, reports or domain, and must not share a line with them.

mod junit;

pub use junit::{JunitSpec, expected_from_junit, generate_junit, item_text};
