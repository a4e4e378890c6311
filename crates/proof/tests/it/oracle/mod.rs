//! The reader of a store's tables, on stores that a tiny writer of the tests' own makes from the layout's prose.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod damage;
mod doubles;
mod read;
mod writer;
