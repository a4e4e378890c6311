//! The API over a store, and the one door through which pushes come in, with or without a socket.
//!
//! Read in this order: [`router`] (every route in one list), `api/pushes.rs`, [`ingest`] (a request into a push),
//! [`record`] (the door). Must not hold SQL, parse a key, or keep state that a restart would lose.

pub mod ingest;
pub mod openapi;
pub mod record;
pub mod router;

mod api;
mod auth;
mod collect;
mod config;
mod forward;
mod headers;
mod layers;
mod ledger;
mod local;
mod params;
mod place;
mod points;
mod problem;
mod segments;
mod serve;
mod state;
mod words;

pub use config::{BodyLimits, ServeConfig};
pub use forward::report::{ForwardsQuery, Kinds, listed as listed_forwards, of_push as forwards_of_push};
pub use forward::{ForwardTarget, ForwardTerms, LeaseBook};
pub use ledger::StoreBook;
pub use local::LocalTarget;
pub use record::{Admitted, Begun, Door};
pub use serve::{ServeError, serve};
pub use state::App;
