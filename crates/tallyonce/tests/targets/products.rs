//! Every product of the matrix: how its stub is started, or which real server it is, what a folder's configuration says of
//! it, and what its writes are called. Must not know what goes wrong.

use std::ops::Deref;

use proof::rigs;
use proof::stubs::azure::Point;
use proof::stubs::generic::Service;
use proof::stubs::{
    Allure, Azure, Door, Kiwi, Nitrate, Qase, ReportPortal, Stub, TestLink, TestRail, Testmo, Vendor, XrayCloud,
    XrayServer, ZephyrCloud, ZephyrServer, kiwi, nitrate, testlink, testrail,
};

use crate::site::{Folder, config, report};

/// How many outcomes a push has.
pub(crate) const OUTCOMES: usize = 4;

/// What a service of one's own is described by.
pub(crate) const DESCRIBED: &str = r#"[target.there.statuses]
passed = "OK"
failed = "KO"
errored = "ERR"
skipped = "SKIP"
[target.there.write]
method = "POST"
path = "/api/runs/{cycle}/results"
body = '''{"case": {case}, "status": {status}, "ms": {duration_ms}, "note": {comment}}'''
id-at = "/id"
[target.there.read]
path = "/api/runs/{cycle}/results?offset={offset}&limit=100"
next = "offset"
items-at = "/results"
row-at = "/id"
case-at = "/case"
status-at = "/status"
marker-at = "/note"
time-at = "/at"
missing-is-empty = true
[target.there.errors]
message-at = "/error"
"#;

const STUB: &str = "stub";
const WITH_CLIENT: &str = "stub, with the vendor's client";
const BOT: &str = "user = \"bot@example.com\"\n";

/// A product as the matrix needs it.
pub(crate) struct Product {
    /// As the guide calls it.
    pub(crate) name: &'static str,
    /// What speaks for the stub.
    pub(crate) tested: &'static str,
    /// What is used unless another one is chosen, and what else is tried.
    pub(crate) strategies: &'static [&'static str],
    /// The stub's words for the calls of a push that write: that of outcomes first.
    pub(crate) writes: &'static [&'static str],
    /// Whether one call takes all outcomes of the push.
    pub(crate) bulk: bool,
    /// How many seconds the program waits before it reads back what was accepted.
    pub(crate) shown_after: u32,
    pub(crate) start: Start,
}

impl Product {
    /// How many readings a push may take: `TestLink` is asked for each case, twice; Kiwi looks before it writes fifty.
    pub(crate) fn reads_max(&self, outcomes: usize) -> usize {
        match self.name {
            "TestLink" => 12 + 4 * outcomes,
            "Kiwi TCMS" | "Nitrate" => 24 + outcomes.div_ceil(50) * 8,
            _ => 24 + outcomes.div_ceil(100) * 4,
        }
    }

    /// A stub with so many cases; `None` of a real server.
    pub(crate) fn stub_with(&self, outcomes: usize) -> Option<Site> {
        match self.start {
            Start::Stub(start) => Some(start(outcomes)),
            Start::Live(_) => None,
        }
    }
}

/// Where a product comes from.
pub(crate) enum Start {
    /// A stub of its own for each push, with nothing in it but so many cases.
    Stub(fn(usize) -> Site),
    /// A real server, and a plan of its own for each push.
    Live(rigs::Vendor),
}

/// A product that runs, and what is pushed to it.
pub(crate) struct Site {
    stub: Box<dyn Deref<Target = Door>>,
    config: String,
    names: Vec<String>,
    /// The pipeline run of its pushes.
    run: String,
    token: String,
}

impl Site {
    pub(crate) fn new<V: Vendor>(
        vendor: V,
        kind: &str,
        project: &str,
        more: &str,
        names: impl Into<Vec<String>>,
    ) -> Self {
        let stub = Stub::start(vendor).unwrap();
        let config = config(&stub, kind, project, more);
        Self { stub: Box::new(stub), config, names: names.into(), run: "7".to_owned(), token: "key".to_owned() }
    }

    /// In a place that others push to as well.
    pub(crate) fn shared(self, run: String, token: &str) -> Self {
        Self { run, token: token.to_owned(), ..self }
    }

    /// The product from outside.
    pub(crate) fn door(&self) -> &Door {
        &self.stub
    }

    /// The names of the items.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// A machine that knows nothing of any push yet, and forwards by this strategy.
    pub(crate) fn machine(&self, strategy: &str) -> Folder {
        let mut folder = Folder::new(&self.config.replacen('\n', &format!("\nstrategy = \"{strategy}\"\n"), 1));
        (folder.run, folder.token) = (self.run.clone(), self.token.clone());
        folder.write("report.xml", &report(&self.names, &[1]));
        folder
    }
}

/// Names of items that are their own cases.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("adds {n}")).collect()
}

/// Names of items that say their cases.
fn named(count: usize, mut add: impl FnMut(&str) -> String) -> Vec<String> {
    names(count).into_iter().map(|name| format!("{} {name}", add(&name))).collect()
}

fn rail(count: usize) -> Site {
    let mut rail = TestRail::new(testrail::Options { rate: None, ..testrail::Options::default() });
    let names = named(count, |title| format!("C{}", rail.add_case(title, None)));
    Site::new(rail, "testrail", "1", BOT, names)
}

/// Of a version whose executions take files.
pub(crate) fn kiwi_16(count: usize) -> Site {
    kiwi_of(kiwi::Options { removes: true, ..kiwi::Options::default() }, count)
}

fn kiwi(count: usize) -> Site {
    kiwi_of(kiwi::Options::default(), count)
}

fn kiwi_of(options: kiwi::Options, count: usize) -> Site {
    let mut kiwi = Kiwi::new(options);
    let names = named(count, |title| format!("TC-{}", kiwi.add_case(title, true)));
    Site::new(kiwi, "kiwi", "Shop", &format!("{BOT}plan = \"Automated\"\nversion = \"1.0\"\n"), names)
}

fn nitrate(count: usize) -> Site {
    let mut nitrate = Nitrate::new(nitrate::Options::default());
    let names = named(count, |title| format!("TC-{}", nitrate.add_case(title)));
    Site::new(nitrate, "nitrate", "Shop", &format!("{BOT}plan = \"Automated\"\nversion = \"1.0\"\n"), names)
}

fn xray_cloud(count: usize) -> Site {
    let mut xray = XrayCloud::default();
    xray.client = ("id".to_owned(), "key".to_owned());
    let names = named(count, |title| xray.site.add_test(title));
    Site::new(xray, "xray-cloud", "SHOP", "user = \"id\"\n", names)
}

fn xray_server(count: usize) -> Site {
    let mut xray = XrayServer { token: "key".to_owned(), ..XrayServer::default() };
    let names = named(count, |title| xray.site.add_test(title));
    Site::new(xray, "xray-server", "SHOP", "", names)
}

fn zephyr_cloud(count: usize) -> Site {
    let mut zephyr = ZephyrCloud { token: "key".to_owned(), ..ZephyrCloud::default() };
    let names = named(count, |title| zephyr.add_case(title));
    Site::new(zephyr, "zephyr-cloud", "SHOP", "", names)
}

fn zephyr_server(count: usize) -> Site {
    let mut zephyr = ZephyrServer { token: "key".to_owned(), ..ZephyrServer::default() };
    let names = named(count, |title| zephyr.add_case(title));
    Site::new(zephyr, "zephyr-server", "SHOP", "", names)
}

fn azure_plan(count: usize) -> Site {
    let mut azure = Azure::default();
    let mut case = 11;
    let names = named(count, |title| {
        case += 1;
        azure.add_point(Point { plan: 3, suite: 7, case, title: title.to_owned(), configuration: 1 });
        format!("TC{case}")
    });
    Site::new(azure, "azure", "demo", "plan = 3\nsuite = 7\n", names)
}

fn testlink(count: usize) -> Site {
    let mut link = TestLink::new(testlink::Options::default());
    let names = named(count, |title| format!("P-{}", link.add_case(title, true)));
    Site::new(link, "testlink", "Shop", "plan = \"Automated\"\n", names)
}

const TCMS: &[&str] = &["replace", "reconcile", "container"];
const KIWI_WRITES: &[&str] =
    &["TestExecution.update", "TestRun.create", "TestRun.add_case", "TestExecution.add_link", "TestRun.add_tag"];

const NITRATE_WRITES: &[&str] = &["TestCaseRun.update", "TestRun.create", "TestRun.add_cases"];

/// A product that appends, takes all outcomes in one call, and has no client to speak for its stub.
const USUAL: Product = Product {
    name: "",
    tested: STUB,
    strategies: &["reconcile"],
    writes: &[],
    bulk: true,
    shown_after: 0,
    start: Start::Stub(rail),
};

/// All of them, in the order of the guides.
pub(crate) const ALL: [Product; 17] = [
    Product {
        name: "TestRail",
        tested: WITH_CLIENT,
        strategies: &["reconcile", "container"],
        writes: &["add_results_for_cases", "add_run"],
        start: Start::Stub(rail),
        ..USUAL
    },
    Product { name: "Kiwi TCMS", strategies: TCMS, writes: KIWI_WRITES, start: Start::Stub(kiwi), ..USUAL },
    Product {
        name: "Kiwi TCMS",
        tested: "live 12.4",
        strategies: TCMS,
        writes: KIWI_WRITES,
        start: Start::Live(rigs::Vendor::Kiwi),
        ..USUAL
    },
    Product {
        name: "Nitrate",
        tested: "live 4.13",
        strategies: TCMS,
        writes: NITRATE_WRITES,
        bulk: false,
        start: Start::Live(rigs::Vendor::Nitrate),
        ..USUAL
    },
    Product {
        name: "Nitrate",
        strategies: TCMS,
        writes: NITRATE_WRITES,
        bulk: false,
        start: Start::Stub(nitrate),
        ..USUAL
    },
    Product {
        name: "Xray Cloud",
        strategies: &["replace", "reconcile"],
        writes: &["import", "createTestExecution"],
        start: Start::Stub(xray_cloud),
        ..USUAL
    },
    Product {
        name: "Xray Server",
        strategies: &["replace", "reconcile"],
        writes: &["import", "issue"],
        start: Start::Stub(xray_server),
        ..USUAL
    },
    Product {
        name: "Zephyr Scale Cloud",
        writes: &["testexecutions", "testcycles"],
        bulk: false,
        shown_after: 5,
        start: Start::Stub(zephyr_cloud),
        ..USUAL
    },
    Product {
        name: "Zephyr Scale Server",
        strategies: &["reconcile", "container"],
        writes: &["testresults", "testrun"],
        start: Start::Stub(zephyr_server),
        ..USUAL
    },
    Product {
        name: "Qase",
        tested: WITH_CLIENT,
        strategies: &["idempotent", "reconcile"],
        writes: &["add_results", "add_run"],
        shown_after: 2,
        start: Start::Stub(|count| Site::new(Qase::default(), "qase", "DEMO", "", names(count))),
        ..USUAL
    },
    Product {
        name: "Testmo",
        tested: WITH_CLIENT,
        strategies: &["container"],
        writes: &["append_tests", "create_thread", "create_run"],
        start: Start::Stub(|count| Site::new(Testmo::default(), "testmo", "1", "", names(count))),
        ..USUAL
    },
    Product {
        name: "ReportPortal",
        tested: WITH_CLIENT,
        strategies: &["idempotent", "reconcile"],
        writes: &["start_item", "finish_item", "start_launch"],
        bulk: false,
        start: Start::Stub(|count| Site::new(ReportPortal::default(), "reportportal", "demo", "", names(count))),
        ..USUAL
    },
    Product {
        name: "Azure Test Plans, with a plan",
        tested: WITH_CLIENT,
        strategies: &["replace", "reconcile"],
        writes: &["results", "create_run"],
        start: Start::Stub(azure_plan),
        ..USUAL
    },
    Product {
        name: "Azure, without a plan",
        tested: WITH_CLIENT,
        writes: &["results", "create_run"],
        start: Start::Stub(|count| Site::new(Azure::default(), "azure", "demo", "", names(count))),
        ..USUAL
    },
    Product {
        name: "Allure TestOps",
        strategies: &["container"],
        writes: &["upload", "create_launch", "session"],
        shown_after: 30,
        start: Start::Stub(|count| Site::new(Allure::default(), "allure", "1", "", names(count))),
        ..USUAL
    },
    Product {
        name: "TestLink",
        tested: "stub, with its usual client",
        strategies: &["reconcile", "container"],
        writes: &["reportTCResult", "createBuild"],
        bulk: false,
        start: Start::Stub(testlink),
        ..USUAL
    },
    Product {
        name: "A service of your own",
        writes: &["results"],
        bulk: false,
        start: Start::Stub(|count| Site::new(Service::appending(), "generic", "shop", DESCRIBED, names(count))),
        ..USUAL
    },
];
