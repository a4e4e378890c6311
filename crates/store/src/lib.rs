//! Keeps pushes once: the `Store` trait, its engines, migrations, the check of a store, and the suite that every engine
//! passes. Must not know HTTP, report formats or vendors, and must not decide: it asks `domain::protocol`.

mod api;
mod error;

pub use api::{Absent, Answer, Damage, Found, Promoted, Promotion, Recorded, RecordedAt, RoundAction, Store};
pub use error::StoreError;
