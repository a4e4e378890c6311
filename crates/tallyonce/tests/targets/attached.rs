//! Every product that takes files: each is at its row once, with the right bytes, under every fault of the call that adds one;
//! where a product lists none, it is there at most once, and what may be missing is said.

use proof::stubs::{Fault, Plan, Select, When};

use crate::attachments::{content, figures, outbox, write_files};
use crate::products::{ALL, OUTCOMES, Product, Site, Start, kiwi_16};
use crate::site::Folder;

/// All files of the push: that of the first item is named by the second too.
const FILES: u64 = OUTCOMES as u64 + 1;

fn faults() -> Vec<(&'static str, Fault)> {
    vec![
        ("answer dropped after the write", Fault::ResponseDropped),
        ("request dropped", Fault::RequestDropped),
        ("504 after the write", Fault::Page { status: 504, applied: true }),
        ("500 after the write", Fault::ErrorAfterWrite(500)),
        ("stall", Fault::Stall { hold: When::ClientGone, then_answer: false }),
        ("late, after the client gave up", Fault::DeliveredLate(When::Requests(1))),
    ]
}

fn machine(site: &Site, strategy: &str) -> Folder {
    let folder = site.machine(strategy);
    let text = std::fs::read_to_string(folder.path("tallyonce.toml")).unwrap();
    // In front of tables that may follow.
    folder.write("tallyonce.toml", &text.replacen("quiet = ", "attachments = \"all\"\nquiet = ", 1));
    write_files(&folder, site.names());
    folder
}

/// What stands beside all rows: contents, sorted.
fn files(site: &Site) -> Vec<String> {
    let ledger = site.door().ledger();
    let rows = ledger.items().values().flatten();
    let files = rows.flat_map(|row| row.side.iter().filter_map(|side| side.strip_prefix("file ")));
    let mut files: Vec<String> = files.map(|file| file.rsplit(' ').next().unwrap().to_owned()).collect();
    files.sort();
    files
}

fn expected() -> Vec<String> {
    let contents = (0..OUTCOMES).chain([0]).map(|at| domain::Digest::of(&content(at)).to_string());
    let mut contents: Vec<String> = contents.collect();
    contents.sort();
    contents
}

fn once_under_every_fault(name: &str, attaches: &str, strategy: &str, start: impl Fn() -> Site) {
    for (what, fault) in faults() {
        let site = start();
        site.door().set_plan(Plan::on(Select::writes().what(attaches).nth(2), fault));
        let folder = machine(&site, strategy);
        let (finished, json) = folder.push(&[]);
        assert_eq!(finished.code, Some(0), "{name}, {what}: {finished}");
        let hit = site.door().log().iter().any(|event| !event.faults.is_empty());
        assert!(hit, "{name}, {what}: it never came to it");
        assert_eq!(figures(&json), (FILES, 0, 0, 0), "{name}, {what}: {json:#}");
        assert_eq!(files(&site), expected(), "{name}, {what}");
        assert!(outbox(&folder).is_empty(), "{name}, {what}");
        let (fresh, json) = machine(&site, strategy).push(&[]);
        assert_eq!((fresh.code, figures(&json)), (Some(0), (0, FILES, 0, 0)), "{name}, {what}: {fresh}");
        assert_eq!(files(&site), expected(), "{name}, {what}");
    }
}

/// The stub's word for the call that adds a file to a row, where files are listed.
fn attaches(product: &Product) -> Option<&'static str> {
    match product.name {
        "TestRail" => Some("add_attachment_to_result"),
        "ReportPortal" => Some("log"),
        "Zephyr Scale Server" | "Azure Test Plans, with a plan" | "Azure, without a plan" => Some("attachments"),
        _ => None,
    }
}

fn is_stub(product: &Product) -> bool {
    matches!(product.start, Start::Stub(_))
}

fn testlink() -> Site {
    let testlink = ALL.iter().find(|product| product.name == "TestLink").unwrap();
    testlink.stub_with(OUTCOMES).unwrap()
}

#[test]
fn in_every_product_each_file_is_at_its_row_once() {
    std::thread::scope(|scope| {
        for product in ALL.iter().filter(|product| is_stub(product)) {
            let Some(attaches) = attaches(product) else { continue };
            let start = || product.stub_with(OUTCOMES).unwrap();
            scope.spawn(move || once_under_every_fault(product.name, attaches, product.strategies[0], start));
        }
        let kiwi = || kiwi_16(OUTCOMES);
        scope.spawn(move || once_under_every_fault("Kiwi TCMS 16", "TestExecution.add_attachment", "replace", kiwi));
    });
}

#[test]
fn a_product_that_takes_none_gets_none_and_the_push_says_so() {
    let takes_none = |product: &&Product| is_stub(product) && attaches(product).is_none() && product.name != "TestLink";
    for product in ALL.iter().filter(takes_none) {
        let site = product.stub_with(OUTCOMES).unwrap();
        let (finished, json) = machine(&site, product.strategies[0]).push(&[]);
        assert_eq!(finished.code, Some(6), "{}: {finished}", product.name);
        assert_eq!(figures(&json), (0, 0, 0, FILES as usize), "{}: {json:#}", product.name);
        assert!(files(&site).is_empty());
        assert_eq!(site.door().ledger().count(), OUTCOMES, "{}", product.name);
    }
}

#[test]
fn where_files_are_not_listed_each_is_sent_at_most_once() {
    let attaches = "uploadExecutionAttachment";
    let site = testlink();
    let folder = machine(&site, "reconcile");
    let (finished, json) = folder.push(&[]);
    assert_eq!((finished.code, figures(&json)), (Some(0), (FILES, 0, 0, 0)), "{finished}");
    assert_eq!(files(&site), expected());
    // Again, and by a machine that knows nothing of it: nobody can see what is there.
    for again in [&folder, &machine(&site, "reconcile")] {
        let (again, json) = again.push(&[]);
        assert_eq!((again.code, figures(&json)), (Some(6), (0, 0, 0, FILES as usize)), "{again}");
        assert!(again.stderr.contains("can't be listed, so it isn't sent again"), "{again}");
        assert_eq!(files(&site), expected());
    }
    for (what, fault) in faults() {
        let site = testlink();
        site.door().set_plan(Plan::on(Select::writes().what(attaches).nth(2), fault));
        let (finished, json) = machine(&site, "reconcile").push(&[]);
        assert_eq!((finished.code, figures(&json)), (Some(6), (FILES - 1, 0, 0, 1)), "{what}: {finished}");
        let there = files(&site);
        let mut once = expected();
        once.retain(|file| there.contains(file));
        assert!(there.len() >= FILES as usize - 1 && there.len() <= FILES as usize, "{what}: {there:?}");
        assert!(there.iter().all(|file| once.contains(file)), "{what}");
    }
}

#[test]
fn a_killed_push_goes_on_with_the_files_that_it_had_not_sent() {
    let site = testlink();
    let hold = Fault::Stall { hold: When::ClientGone, then_answer: false };
    site.door().set_plan(Plan::on(Select::writes().what("uploadExecutionAttachment").nth(2), hold));
    let folder = machine(&site, "reconcile");
    let client = folder.pushing(&[]).env("TALLYONCE_TIMEOUT", "60s").start().unwrap();
    let minute = std::time::Duration::from_mins(1);
    let arrived = site.door().wait_for(minute, |log| log.iter().any(|event| !event.faults.is_empty()));
    assert!(arrived.is_some(), "it never came to the fault");
    client.kill9();
    client.wait(minute).unwrap();
    let (finished, json) = folder.push(&[]);
    // The first was answered, the second was not, the others had not begun.
    assert_eq!((finished.code, figures(&json)), (Some(6), (FILES - 2, 1, 0, 1)), "{finished}");
    assert_eq!(files(&site), expected());
}
