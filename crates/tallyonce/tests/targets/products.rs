//! Every product that has a stub: how the stub is started, what a folder's configuration says of it, and what the stub
//! calls its writes. Must not know what goes wrong.

use std::ops::Deref;

use proof::stubs::azure::Point;
use proof::stubs::generic::Service;
use proof::stubs::{
    Allure, Azure, Door, Kiwi, Qase, ReportPortal, Stub, TestLink, TestRail, Testmo, Vendor, XrayCloud, XrayServer,
    ZephyrCloud, ZephyrServer, kiwi, testlink, testrail,
};

use crate::site::{Folder, config, report};

/// How many outcomes a push has.
pub(crate) const OUTCOMES: usize = 4;

/// What a service of one's own is described by.
const DESCRIBED: &str = r#"strategy = "reconcile"
[target.there.statuses]
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
    /// What is used unless another one is chosen.
    pub(crate) strategy: &'static str,
    /// The stub's words for the calls of a push that write: that of outcomes first.
    pub(crate) writes: &'static [&'static str],
    /// Whether one call takes all outcomes of the push.
    pub(crate) bulk: bool,
    /// How many seconds the program waits before it reads back what was accepted.
    pub(crate) shown_after: u32,
    start: fn() -> Site,
}

impl Product {
    /// One of its own, with nothing in it but cases.
    pub(crate) fn start(&self) -> Site {
        (self.start)()
    }
}

/// A product that runs, and what is pushed to it.
pub(crate) struct Site {
    stub: Box<dyn Deref<Target = Door>>,
    config: String,
    names: Vec<String>,
}

impl Site {
    fn new<V: Vendor>(vendor: V, kind: &str, project: &str, more: &str, names: impl Into<Vec<String>>) -> Self {
        let stub = Stub::start(vendor).unwrap();
        let config = config(&stub, kind, project, more);
        Self { stub: Box::new(stub), config, names: names.into() }
    }

    /// The product from outside.
    pub(crate) fn door(&self) -> &Door {
        &self.stub
    }

    /// A machine that knows nothing of any push yet.
    pub(crate) fn machine(&self) -> Folder {
        let folder = Folder::new(&self.config);
        folder.write("report.xml", &report(&self.names, &[1]));
        folder
    }
}

/// Names of items that are their own cases.
fn names() -> [String; OUTCOMES] {
    std::array::from_fn(|n| format!("adds {n}"))
}

/// Names of items that say their cases.
fn named(mut add: impl FnMut(&str) -> String) -> [String; OUTCOMES] {
    names().map(|name| format!("{} {name}", add(&name)))
}

fn rail() -> Site {
    let mut rail = TestRail::new(testrail::Options { rate: None, ..testrail::Options::default() });
    let names = named(|title| format!("C{}", rail.add_case(title, None)));
    Site::new(rail, "testrail", "1", BOT, names)
}

fn kiwi() -> Site {
    let mut kiwi = Kiwi::new(kiwi::Options::default());
    let names = named(|title| format!("TC-{}", kiwi.add_case(title, true)));
    Site::new(kiwi, "kiwi", "Shop", &format!("{BOT}plan = \"Automated\"\nversion = \"1.0\"\n"), names)
}

fn xray_cloud() -> Site {
    let mut xray = XrayCloud::default();
    xray.client = ("id".to_owned(), "key".to_owned());
    let names = named(|title| xray.site.add_test(title));
    Site::new(xray, "xray-cloud", "SHOP", "user = \"id\"\n", names)
}

fn xray_server() -> Site {
    let mut xray = XrayServer { token: "key".to_owned(), ..XrayServer::default() };
    let names = named(|title| xray.site.add_test(title));
    Site::new(xray, "xray-server", "SHOP", "", names)
}

fn zephyr_cloud() -> Site {
    let mut zephyr = ZephyrCloud { token: "key".to_owned(), ..ZephyrCloud::default() };
    let names = named(|title| zephyr.add_case(title));
    Site::new(zephyr, "zephyr-cloud", "SHOP", "", names)
}

fn zephyr_server() -> Site {
    let mut zephyr = ZephyrServer { token: "key".to_owned(), ..ZephyrServer::default() };
    let names = named(|title| zephyr.add_case(title));
    Site::new(zephyr, "zephyr-server", "SHOP", "", names)
}

fn azure_plan() -> Site {
    let mut azure = Azure::default();
    let mut case = 11;
    let names = named(|title| {
        case += 1;
        azure.add_point(Point { plan: 3, suite: 7, case, title: title.to_owned(), configuration: 1 });
        format!("TC{case}")
    });
    Site::new(azure, "azure", "demo", "plan = 3\nsuite = 7\n", names)
}

fn testlink() -> Site {
    let mut link = TestLink::new(testlink::Options::default());
    let names = named(|title| format!("P-{}", link.add_case(title, true)));
    Site::new(link, "testlink", "Shop", "plan = \"Automated\"\n", names)
}

/// A product that appends, takes all outcomes in one call, and has no client to speak for its stub.
const USUAL: Product =
    Product { name: "", tested: STUB, strategy: "reconcile", writes: &[], bulk: true, shown_after: 0, start: rail };

/// All of them, in the order of the guides.
pub(crate) const ALL: [Product; 14] = [
    Product {
        name: "TestRail",
        tested: WITH_CLIENT,
        writes: &["add_results_for_cases", "add_run"],
        start: rail,
        ..USUAL
    },
    Product {
        name: "Kiwi TCMS",
        strategy: "replace",
        writes: &[
            "TestExecution.update",
            "TestRun.create",
            "TestRun.add_case",
            "TestExecution.add_link",
            "TestRun.add_tag",
        ],
        start: kiwi,
        ..USUAL
    },
    Product {
        name: "Xray Cloud",
        strategy: "replace",
        writes: &["import", "createTestExecution"],
        start: xray_cloud,
        ..USUAL
    },
    Product { name: "Xray Server", strategy: "replace", writes: &["import", "issue"], start: xray_server, ..USUAL },
    Product {
        name: "Zephyr Scale Cloud",
        writes: &["testexecutions", "testcycles"],
        bulk: false,
        shown_after: 5,
        start: zephyr_cloud,
        ..USUAL
    },
    Product { name: "Zephyr Scale Server", writes: &["testresults", "testrun"], start: zephyr_server, ..USUAL },
    Product {
        name: "Qase",
        tested: WITH_CLIENT,
        strategy: "idempotent",
        writes: &["add_results", "add_run"],
        shown_after: 2,
        start: || Site::new(Qase::default(), "qase", "DEMO", "", names()),
        ..USUAL
    },
    Product {
        name: "Testmo",
        tested: WITH_CLIENT,
        strategy: "container",
        writes: &["append_tests", "create_thread", "create_run"],
        start: || Site::new(Testmo::default(), "testmo", "1", "", names()),
        ..USUAL
    },
    Product {
        name: "ReportPortal",
        tested: WITH_CLIENT,
        strategy: "idempotent",
        writes: &["start_item", "finish_item", "start_launch"],
        bulk: false,
        start: || Site::new(ReportPortal::default(), "reportportal", "demo", "", names()),
        ..USUAL
    },
    Product {
        name: "Azure Test Plans, with a plan",
        tested: WITH_CLIENT,
        strategy: "replace",
        writes: &["results", "create_run"],
        start: azure_plan,
        ..USUAL
    },
    Product {
        name: "Azure, without a plan",
        tested: WITH_CLIENT,
        writes: &["results", "create_run"],
        start: || Site::new(Azure::default(), "azure", "demo", "", names()),
        ..USUAL
    },
    Product {
        name: "Allure TestOps",
        strategy: "container",
        writes: &["upload", "create_launch", "session"],
        start: || Site::new(Allure::default(), "allure", "1", "", names()),
        ..USUAL
    },
    Product {
        name: "TestLink",
        tested: "stub, with its usual client",
        writes: &["reportTCResult", "createBuild"],
        bulk: false,
        start: testlink,
        ..USUAL
    },
    Product {
        name: "A service of your own",
        writes: &["results"],
        bulk: false,
        start: || Site::new(Service::appending(), "generic", "shop", DESCRIBED, names()),
        ..USUAL
    },
];
