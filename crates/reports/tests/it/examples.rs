//! The sample reports that the README's first command pushes.

use std::path::Path;

use domain::Counts;
use reports::{Collector, ReadOptions};

#[test]
fn the_sample_reports_are_what_the_readme_says() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/reports"));
    let mut collector = Collector::new(ReadOptions::standard());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        collector.add(&name, std::fs::File::open(&path).unwrap()).unwrap();
    }
    let read = collector.finish();
    assert_eq!(read.warnings, []);
    assert_eq!(
        read.files,
        ["TEST-com.example.shop.CartTest.xml", "TEST-com.example.shop.InvoiceTest.xml", "junit.xml"]
    );
    let counts: Counts = read.outcomes.iter().collect();
    assert_eq!(counts, Counts { total: 12, passed: 10, failed: 1, errored: 0, skipped: 1, flaky: 1 });
}
