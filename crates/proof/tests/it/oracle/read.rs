//! What is written is what is read: names, buckets, texts, revisions, and stores that are in use or were left behind.

use std::collections::BTreeMap;
use std::fs;

use proof::oracle::{Oracle, Row};

use super::writer::{Book, ERRORED, FAILED, PASSED, SKIPPED, case, item, text};

/// Item to status, flaky and revision.
fn short(rows: &[Row]) -> Vec<(&str, &str, bool, u32)> {
    rows.iter().map(|row| (row.item.as_str(), row.status.as_str(), row.flaky, row.revision)).collect()
}

#[test]
fn names_statuses_and_texts() {
    for zip in [false, true] {
        let book = Book { zip, ..Book::new() };
        let push = book.push("shop", "run:1", "run:1:job:unit", "os=linux", None);
        let long = "é".repeat(1500);
        let all = [
            item(&["a", "b"], "Class", "works", 0, PASSED),
            item(&["a", "b"], "Class", "works", 1, FAILED).message("short"),
            item(&[], "Class", "", 0, SKIPPED),
            case("alone", ERRORED).message(&long),
            case("again", PASSED).after(FAILED),
            case("skipped before", PASSED).after(SKIPPED),
            // Attempts with a duration and texts, and ids.
            case("everything", PASSED).entry(
                true,
                [vec![7], text("m"), vec![2, 2, 0x80, 1, 1], text("n"), vec![0, 0, 0], vec![1, 2, b'C', b'1']].concat(),
            ),
        ];
        book.revision(&push, 1, 0, &all);
        book.counts(&push, [7, 4, 1, 1, 1, 2]);
        let oracle = book.oracle();
        let rows = oracle.outcomes("shop", "main", "run:1").unwrap();
        let expected = [
            ("Class > ", "skipped", false, 1),
            ("a > b > Class > works", "passed", false, 1),
            ("a > b > Class > works #2", "failed", false, 1),
            ("again", "passed", true, 1),
            ("alone", "errored", false, 1),
            ("everything", "passed", true, 1),
            ("skipped before", "passed", false, 1),
        ];
        assert_eq!(short(&rows), expected);
        assert!(rows.iter().all(|row| row.key == "run:1:job:unit" && row.variant == "os=linux"));
        assert_eq!(oracle.doubles().unwrap(), Vec::<String>::new());
        assert_eq!(oracle.pushes().unwrap(), ["shop/run:1:job:unit"]);
        assert_eq!(oracle.receipts("shop", "run:1:job:unit").unwrap(), [(1, "{\"revision\":1}".to_owned())]);
        assert_eq!(oracle.receipts("shop", "run:1").unwrap(), []);
    }
}

#[test]
fn many_items_lie_in_buckets() {
    let book = Book { zip: true, ..Book::new() };
    let push = book.push("shop", "run:1", "k", "", None);
    let all: Vec<_> = (0..9000).map(|n| case(&format!("case {n}"), u8::from(n % 10 == 0))).collect();
    book.revision(&push, 1, 0, &all);
    book.counts(&push, [9000, 8100, 900, 0, 0, 0]);
    let blocks: i64 = book.tables.query_row("SELECT COUNT(*) FROM block", [], |row| row.get(0)).unwrap();
    assert_eq!(blocks, 4);
    let rows = book.oracle().outcomes("shop", "main", "run:1").unwrap();
    let read: BTreeMap<String, String> = rows.into_iter().map(|row| (row.item, row.status)).collect();
    let status = |n| if n % 10 == 0 { "failed" } else { "passed" };
    let expected = (0..9000).map(|n| (format!("case {n}"), status(n).to_owned())).collect();
    assert_eq!(read, expected);
    assert_eq!(book.oracle().doubles().unwrap(), Vec::<String>::new());
}

#[test]
fn revisions_are_laid_over_one_another() {
    let book = Book::new();
    let push = book.push("shop", "r", "k", "", None);
    let read = || {
        let rows = book.oracle().outcomes("shop", "main", "r").unwrap();
        let short = short(&rows).into_iter();
        short.map(|(item, status, flaky, revision)| format!("{item} {status} {flaky} {revision}")).collect::<Vec<_>>()
    };
    book.revision(&push, 1, 0, &[case("a", FAILED), case("b", PASSED), case("c", PASSED)]);
    assert_eq!(read(), ["a failed false 1", "b passed false 1", "c passed false 1"]);
    book.revision(&push, 2, 2, &[case("a", PASSED), case("d", SKIPPED)]);
    assert_eq!(read(), ["a failed false 1", "b passed false 1", "c passed false 1", "d skipped false 2"]);
    book.revision(&push, 3, 1, &[case("a", PASSED), case("b", FAILED)]);
    assert_eq!(read(), ["a passed true 3", "b failed false 3", "c passed false 1", "d skipped false 2"]);
    book.revision(&push, 4, 2, &[case("b", PASSED), case("e", PASSED)]);
    book.promotion(&push, 5, 4, false, [2, 2, 0, 0, 0, 0]);
    let all = ["a passed true 3", "b passed true 5", "c passed false 1", "d skipped false 2", "e passed false 5"];
    assert_eq!(read(), all);
    book.counts(&push, [5, 4, 0, 0, 1, 2]);
    assert_eq!(book.oracle().doubles().unwrap(), Vec::<String>::new());
    book.promotion(&push, 6, 2, true, [2, 1, 0, 0, 1, 0]);
    assert_eq!(read(), ["a passed false 6", "d skipped false 6"]);
    // A promotion may be promoted: its content is that of what it promoted.
    book.promotion(&push, 7, 5, false, [2, 2, 0, 0, 0, 0]);
    assert_eq!(read(), ["a passed false 6", "b passed false 7", "d skipped false 6", "e passed false 7"]);
    book.counts(&push, [4, 3, 0, 0, 1, 0]);
    assert_eq!(book.oracle().doubles().unwrap(), Vec::<String>::new());
    assert_eq!(book.oracle().receipts("shop", "k").unwrap().len(), 7);
}

#[test]
fn rounds_and_projects_are_apart() {
    let book = Book::new();
    for (project, round, key) in [("shop", "r1", "k1"), ("shop", "r2", "k2"), ("till", "r1", "k1")] {
        let push = book.push(project, round, key, "", None);
        book.revision(&push, 1, 0, &[case("a", PASSED)]);
        book.counts(&push, [1, 1, 0, 0, 0, 0]);
    }
    // An empty push counts nothing and is there.
    book.revision(&book.push("shop", "r1", "k3", "", Some(2)), 1, 0, &[]);
    let oracle = book.oracle();
    assert_eq!(oracle.pushes().unwrap(), ["shop/k1", "shop/k2", "shop/k3", "till/k1"]);
    assert_eq!(short(&oracle.outcomes("shop", "main", "r1").unwrap()), [("a", "passed", false, 1)]);
    for (project, cycle, round) in [("no", "main", "r1"), ("shop", "no", "r1"), ("shop", "main", "r3")] {
        assert_eq!(oracle.outcomes(project, cycle, round).unwrap(), []);
    }
    assert_eq!(oracle.doubles().unwrap(), Vec::<String>::new());
}

#[test]
fn a_wal_left_by_a_kill_is_read_and_left_alone() {
    let book = Book::new();
    let push = book.push("shop", "r", "k", "", None);
    book.revision(&push, 1, 0, &[case("a", FAILED)]);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    fs::copy(book.path(), &copy).unwrap();
    // The shared memory dies with its processes; the log is all that is left, and holds everything.
    let log = fs::read(book.folder.path().join("store.db-wal")).unwrap();
    fs::write(folder.path().join("copy.db-wal"), &log).unwrap();
    let before = fs::read(&copy).unwrap();
    let oracle = Oracle::open(&copy).unwrap();
    assert_eq!(short(&oracle.outcomes("shop", "main", "r").unwrap()), [("a", "failed", false, 1)]);
    drop(oracle);
    assert!(fs::read(&copy).unwrap() == before && fs::read(folder.path().join("copy.db-wal")).unwrap() == log);
}

#[test]
fn a_writer_at_work_is_not_waited_for_and_not_seen() {
    let book = Book::new();
    let push = book.push("shop", "r", "k", "", None);
    book.revision(&push, 1, 0, &[case("a", FAILED)]);
    book.tables.execute_batch("BEGIN IMMEDIATE").unwrap();
    book.revision(&push, 2, 1, &[case("a", PASSED)]);
    let oracle = book.oracle();
    assert_eq!(short(&oracle.outcomes("shop", "main", "r").unwrap()), [("a", "failed", false, 1)]);
    book.tables.execute_batch("COMMIT").unwrap();
    assert_eq!(short(&oracle.outcomes("shop", "main", "r").unwrap()), [("a", "passed", true, 2)]);
}

#[test]
fn stores_without_tables_hold_nothing_and_other_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    assert!(Oracle::open(&path).is_err());
    fs::write(&path, "").unwrap();
    let oracle = Oracle::open(&path).unwrap();
    assert_eq!(oracle.outcomes("shop", "main", "r").unwrap(), []);
    assert_eq!((oracle.pushes().unwrap().len(), oracle.doubles().unwrap().len()), (0, 0));
    fs::write(&path, "all tests passed, promise".repeat(100)).unwrap();
    assert!(Oracle::open(&path).is_err());
    let book = Book::new();
    book.run("UPDATE schema_version SET version = 8 WHERE version = 7");
    assert!(book.oracle().pushes().is_err());
}
