//! What is to be known of a product before anybody may promise "once" (`facts/targets.md`, section 2): data, so that one
//! set of rules and one set of tests runs on all of them. Must not know how a product is called.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `TestRail`, Cloud and Server.
    Testrail,
    /// Kiwi TCMS.
    Kiwi,
    /// Nitrate, the ancestor of Kiwi TCMS.
    Nitrate,
    /// Xray Cloud.
    XrayCloud,
    /// Xray Server and Data Center.
    XrayServer,
    /// Zephyr Scale Cloud.
    ZephyrCloud,
    /// Zephyr Scale Server and Data Center.
    ZephyrServer,
    /// Qase.
    Qase,
    /// Testmo.
    Testmo,
    /// `ReportPortal`.
    Reportportal,
    /// Azure Test Plans.
    Azure,
    /// Allure `TestOps`.
    Allure,
    /// `TestLink`.
    Testlink,
    /// HTTP calls described in configuration.
    Generic,
}

impl Kind {
    /// All, in the order of the guides.
    pub const ALL: [Kind; 14] = [
        Kind::Testrail,
        Kind::Kiwi,
        Kind::Nitrate,
        Kind::XrayCloud,
        Kind::XrayServer,
        Kind::ZephyrCloud,
        Kind::ZephyrServer,
        Kind::Qase,
        Kind::Testmo,
        Kind::Reportportal,
        Kind::Azure,
        Kind::Allure,
        Kind::Testlink,
        Kind::Generic,
    ];

    /// The word of `kind` in `tallyonce.toml`.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Testrail => "testrail",
            Kind::Kiwi => "kiwi",
            Kind::Nitrate => "nitrate",
            Kind::XrayCloud => "xray-cloud",
            Kind::XrayServer => "xray-server",
            Kind::ZephyrCloud => "zephyr-cloud",
            Kind::ZephyrServer => "zephyr-server",
            Kind::Qase => "qase",
            Kind::Testmo => "testmo",
            Kind::Reportportal => "reportportal",
            Kind::Azure => "azure",
            Kind::Allure => "allure",
            Kind::Testlink => "testlink",
            Kind::Generic => "generic",
        }
    }

    /// What the product's own id of a cycle looks like, for people who name one.
    pub fn cycle_id(self) -> &'static str {
        match self {
            Kind::Testrail => "the number of a run, such as R7",
            Kind::Kiwi | Kind::Nitrate | Kind::Azure | Kind::Qase | Kind::Testmo => "the number of a run, such as 7",
            Kind::XrayCloud | Kind::XrayServer => "the key of a test execution, such as SHOP-90",
            Kind::ZephyrCloud | Kind::ZephyrServer => "the key of a test cycle, such as SHOP-R12",
            Kind::Reportportal => "the UUID of a launch",
            Kind::Allure => "the number of a launch, such as 7",
            Kind::Testlink => "the name or number of a build",
            Kind::Generic => "the id that the service's own calls give a cycle",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = || Kind::ALL.map(Kind::word).join(", ");
        Kind::ALL
            .into_iter()
            .find(|kind| kind.word() == text)
            .ok_or_else(|| format!("unknown kind {text:?}; one of {}", words()))
    }
}

/// How effectively-once is reached on a target (design, section 9), or that it isn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The product takes an id of ours, and collapses or refuses a repeat.
    Idempotent,
    /// What is there is read, and only the difference is sent.
    Reconcile,
    /// It is sent again, only the fields that are replaced.
    Replace,
    /// A container for each attempt, published last.
    Container,
    /// Nothing can be read back: it is sent once, and never again, whatever came of it.
    AtMostOnce,
}

impl Strategy {
    /// All.
    pub const ALL: [Strategy; 5] =
        [Strategy::Idempotent, Strategy::Reconcile, Strategy::Replace, Strategy::Container, Strategy::AtMostOnce];

    /// The word of `strategy` in `tallyonce.toml`.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::Idempotent => "idempotent",
            Strategy::Reconcile => "reconcile",
            Strategy::Replace => "replace",
            Strategy::Container => "container",
            Strategy::AtMostOnce => "at-most-once",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Strategy::ALL.into_iter().find(|strategy| strategy.word() == text).ok_or_else(|| {
            format!("unknown strategy {text:?}; one of {}", Strategy::ALL.map(Strategy::word).join(", "))
        })
    }
}

/// What a repeat with the same id of ours does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyOnWrite {
    /// The product takes none.
    None,
    /// It refuses the repeat, in whatever words.
    Refuses,
    /// It takes the repeat for the first.
    Collapses,
}

/// What a second write for the same case in the same cycle does to the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictRule {
    /// It stands beside the first.
    Appends,
    /// It takes the first's place.
    Replaces,
    /// It takes the place of the newest one.
    ReplacesLatest,
    /// It is refused.
    Refuses,
}

/// The ladder of markers (`facts/idempotency.md`, 4.2), best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MarkerLevel {
    /// The product enforces that an id of ours is unique.
    M1,
    /// A field that can be searched.
    M2,
    /// A field that a listing of the cycle shows.
    M3,
    /// Counts only.
    M4,
    /// A container that is not published yet.
    M5,
    /// Nothing can be read.
    M6,
}

/// Where the marker is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkerFacts {
    /// The rung.
    pub level: MarkerLevel,
    /// The field, as people of the product call it.
    pub field: &'static str,
    /// How many characters it takes.
    pub chars_max: usize,
    /// True if people can edit it in the product.
    pub editable: bool,
}

/// How much one call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk {
    /// Outcomes.
    pub items_max: usize,
    /// True if the call is carried out as a whole or not at all.
    pub atomic: bool,
}

/// When a write can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// As soon as it is answered.
    AtOnce,
    /// Once its job has ended.
    AfterJob,
    /// Some time later: as long as this is usual, in milliseconds.
    Later(u64),
}

/// What can be mended by calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair {
    /// One outcome can be deleted.
    pub delete: bool,
    /// One outcome can be changed.
    pub amend: bool,
    /// A cycle can be deleted.
    pub delete_cycle: bool,
}

/// How fast it may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Calls.
    pub calls: u32,
    /// Within so many milliseconds.
    pub per_ms: u64,
}

/// The races that stay open (`facts/targets.md`, residual races). Each ends in a status that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Race {
    /// A request that timed out is carried out after it was read back.
    R1,
    /// Two writers both find nothing, and both write.
    R2,
    /// Two writers both create the cycle.
    R3,
    /// A delayed older write takes a newer one's place.
    R4,
    /// A repeat replaces the verdict, and appends something else.
    R5,
    /// Accepted, and carried out later or never.
    R6,
    /// A listing lags behind.
    R7,
    /// The marker is lost.
    R8,
    /// A bulk call is carried out in part.
    R9,
    /// More than one row of a case already.
    R10,
}

/// All that is to be known of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The product.
    pub kind: Kind,
    /// What a repeat with the same id does.
    pub key_on_write: KeyOnWrite,
    /// What a repeat does to the verdict.
    pub verdict: VerdictRule,
    /// What a repeat appends though the verdict is replaced; such fields are sent once (R5).
    pub side_rows: &'static [&'static str],
    /// True if the product refuses a second cycle of the same name.
    pub cycle_unique: bool,
    /// The marker's place.
    pub marker: MarkerFacts,
    /// How much one call takes.
    pub bulk: Bulk,
    /// When a write can be read.
    pub visible: Visible,
    /// What can be mended.
    pub repair: Repair,
    /// How fast it may be called.
    pub rate: Option<Rate>,
    /// After a request without an answer, wait so long before reading back, in milliseconds: longer than the product
    /// works on a request whose client went away.
    pub quiet_ms: u64,
    /// The strategies that it allows, the default first.
    pub strategies: &'static [Strategy],
    /// The races that stay open with the default.
    pub races: &'static [Race],
}

impl Facts {
    /// The strategy that is used unless another one is chosen.
    pub fn default_strategy(&self) -> Strategy {
        self.strategies.first().copied().unwrap_or(Strategy::Reconcile)
    }
}
