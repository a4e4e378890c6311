//! A real server behind the kernel's door: each fault that a stub can play, in front of a product that is not ours. What
//! stands recorded is read from the product's own tables. Must not answer in the product's place.

mod tables;
mod wire;
mod world;

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;

use crate::rigs::{self, Rig};
use crate::stubs::vendor::{Call, Kind, Ledger, Turn, Vendor};
use crate::stubs::{Answer, Request, kiwi, xml_rpc};

pub use world::World;

pub(super) use wire::ask;

/// One plan of a running product.
#[derive(Debug, Clone)]
pub struct Live {
    vendor: rigs::Vendor,
    upstream: SocketAddr,
    database: PathBuf,
    plan: String,
}

impl Live {
    /// What stands in front of this plan of the rig, which has to be there before anything is written into it.
    ///
    /// # Errors
    /// The rig has no address.
    pub fn of(rig: &Rig, plan: &str) -> anyhow::Result<Self> {
        let upstream = rig.url().strip_prefix("http://").and_then(|address| address.parse().ok());
        let upstream = upstream.with_context(|| format!("an address is expected: {}", rig.url()))?;
        Ok(Self { vendor: rig.vendor(), upstream, database: rig.database(), plan: plan.to_owned() })
    }

    /// Runs of the plan, however they came to be.
    ///
    /// # Errors
    /// The tables can't be read.
    pub fn runs(&self) -> anyhow::Result<Vec<String>> {
        tables::runs(self.vendor, &self.database, &self.plan)
    }

    /// What stands recorded in the plan's runs: an item is a case's summary.
    ///
    /// # Errors
    /// The tables can't be read.
    pub fn recorded(&self) -> anyhow::Result<Ledger> {
        tables::recorded(self.vendor, &self.database, &self.plan)
    }
}

impl Vendor for Live {
    /// Never called: [`Vendor::upstream`] answers.
    fn handle(&mut self, _call: &Call<'_>) -> Turn<Self> {
        self.problem(502, "nothing stands behind this door").into()
    }

    fn upstream(&self) -> Option<SocketAddr> {
        Some(self.upstream)
    }

    fn classify(&self, request: &Request) -> Kind {
        match self.vendor {
            rigs::Vendor::Kiwi => kiwi::classify(request),
            rigs::Vendor::Nitrate => {
                let method = xml_rpc::called(&request.body).map(|called| called.method).unwrap_or_default();
                let deed = method.split_once('.').map_or("", |(_, deed)| deed);
                match method.as_str() {
                    "Auth.login" => Kind::Auth,
                    _ if ["filter", "get", "check"].iter().any(|reads| deed.starts_with(reads)) => Kind::Read(method),
                    _ => Kind::Write(method),
                }
            }
        }
    }

    /// Empty if the tables can't be read, which no test takes for what it expects.
    fn ledger(&self) -> Ledger {
        self.recorded().unwrap_or_default()
    }

    fn problem(&self, status: u16, text: &str) -> Answer {
        match self.vendor {
            rigs::Vendor::Kiwi => kiwi::problem(status, text),
            rigs::Vendor::Nitrate => xml_rpc::fault(status, 500, text),
        }
    }

    /// A batch is carried out one by one in no common transaction, so its beginning alone is what a server that dies
    /// leaves.
    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        match self.vendor {
            rigs::Vendor::Kiwi => request.with_first("", count),
            rigs::Vendor::Nitrate => None,
        }
    }
}
