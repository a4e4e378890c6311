//! An HTTP/1.1-aware fault proxy on loopback: it breaks chosen write requests in ways that real networks and
//! gateways do, and keeps a log of what it broke. Must not know what the requests mean.

mod door;
mod fault;
mod plan;
mod relay;
pub(crate) mod wire;

pub use door::FaultProxy;
pub use fault::{Event, Fault};
pub use plan::Plan;
