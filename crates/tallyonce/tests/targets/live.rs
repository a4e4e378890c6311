//! Real servers for the matrix: one of each vendor, with a plan of its own for each push. Must not know what goes wrong.

use std::sync::atomic::{AtomicUsize, Ordering};

use proof::rigs::{self, NoRig, Rig, Vendor};
use proof::stubs::Live;
use proof::stubs::live::World;

use crate::products::{OUTCOMES, Site, names};

/// The servers that can be had here.
pub(crate) struct Rigs(Vec<Started>);

/// A server, and what is pushed to it.
pub(crate) struct Started {
    pub(crate) rig: Rig,
    /// Names of items that say their cases.
    pub(crate) names: Vec<String>,
    plans: AtomicUsize,
}

impl Rigs {
    /// Starts those of these vendors, at once. What can't be installed here is missing, and said to be.
    pub(crate) fn start(vendors: &[Vendor]) -> Self {
        let starts: Vec<_> = vendors
            .iter()
            .map(|vendor| {
                std::thread::spawn({
                    let vendor = *vendor;
                    move || Started::new(vendor)
                })
            })
            .collect();
        Self(starts.into_iter().filter_map(|start| start.join().unwrap()).collect())
    }

    pub(crate) fn get(&self, vendor: Vendor) -> Option<&Started> {
        self.0.iter().find(|started| started.rig.vendor() == vendor)
    }
}

impl Started {
    /// With the cases of the matrix, if it can be had here.
    pub(crate) fn new(vendor: Vendor) -> Option<Self> {
        Self::of(Rig::start(vendor))
    }

    /// The same on a server that was started in another way.
    pub(crate) fn of(rig: Result<Rig, NoRig>) -> Option<Self> {
        let rig = rigs::or_skip(rig).unwrap()?;
        let titles = names(OUTCOMES);
        let numbers = World::of(&rig).unwrap().add_cases(&titles).unwrap();
        let names = numbers.iter().zip(titles).map(|(number, title)| format!("TC-{number} {title}")).collect();
        Some(Self { rig, names, plans: AtomicUsize::new(0) })
    }

    /// An empty plan, the faults in front of it, and what a target's table says of it beside its address.
    pub(crate) fn plan(&self) -> (Live, String) {
        let (_, live, table) = self.named_plan();
        (live, table)
    }

    pub(crate) fn named_plan(&self) -> (String, Live, String) {
        let plan = format!("Plan {}", self.plans.fetch_add(1, Ordering::Relaxed));
        World::of(&self.rig).unwrap().add_plan(&plan).unwrap();
        let (user, version, build) = (self.rig.user(), self.rig.version(), self.rig.build());
        let table = format!("user = \"{user}\"\nplan = \"{plan}\"\nversion = \"{version}\"\nbuild = \"{build}\"\n");
        let live = Live::of(&self.rig, &plan).unwrap();
        (plan, live, table)
    }

    /// The cases' numbers.
    pub(crate) fn numbers(&self) -> Vec<String> {
        let number = |name: &String| name.trim_start_matches("TC-").split(' ').next().unwrap_or_default().to_owned();
        self.names.iter().map(number).collect()
    }

    /// The word for it in a target's table.
    pub(crate) fn kind(&self) -> &'static str {
        match self.rig.vendor() {
            Vendor::Kiwi => "kiwi",
            Vendor::Nitrate => "nitrate",
        }
    }

    /// A place of its own for one push.
    pub(crate) fn site(&self) -> Site {
        let (live, table) = self.plan();
        // The round's tag is looked for in all plans.
        let run = (1000 + self.plans.fetch_add(1, Ordering::Relaxed)).to_string();
        let names = self.names.clone();
        Site::new(live, self.kind(), self.rig.product(), &table, names).shared(run, self.rig.password())
    }
}
