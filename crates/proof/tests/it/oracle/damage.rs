//! Bytes that contradict the layout or each other are an error that says where, never an outcome.

use super::writer::{Book, Case, Epoch, FAILED, PASSED, Push, case, item, varint};

fn sorted() -> Vec<Case> {
    let mut cases =
        vec![case("one", PASSED), item(&["s"], "c", "two", 0, FAILED).message("broken"), case("three", PASSED)];
    cases.sort_by_key(Case::hash);
    cases
}

fn push(book: &Book) -> Push {
    book.push("shop", "r", "k", "", None)
}

#[track_caller]
fn refused(book: &Book, words: &str) {
    let oracle = book.oracle();
    let error = format!("{:#}", oracle.outcomes("shop", "main", "r").expect_err(words));
    assert!(error.contains(words), "{words:?} is not in: {error}");
    assert!(oracle.doubles().map_or(true, |found| !found.is_empty()), "{words}: the store passes as clean");
}

fn good() -> Book {
    let book = Book::new();
    book.revision(&push(&book), 1, 0, &sorted());
    assert_eq!(book.oracle().outcomes("shop", "main", "r").unwrap().len(), 3);
    book
}

#[test]
fn every_byte_of_a_section_matters() {
    type Change = fn(&mut Vec<u8>);
    let cases: [(&str, &str, Change, &str); 21] = [
        ("block", "codes", |b| b.truncate(b.len() - 1), "a frame says 3 bytes and has 2"),
        ("block", "codes", |b| b.push(0), "a frame says 3 bytes and has 4"),
        ("block", "codes", |b| b.truncate(2), "a frame without a length"),
        ("block", "codes", |b| b[0] = 2, "a frame of method 2"),
        ("block", "codes", |b| b[0] = 1, "zstd"),
        ("block", "codes", |b| b[5] |= 16, "a code with unknown bits"),
        ("block", "codes", |b| b[5] |= 4, "bit 2 says true"),
        ("block", "codes", |b| (5..8).for_each(|at| b[at] &= !8), "items have texts, the row says else"),
        ("block", "times", |b| b[5] = 2, "in 2 planes of 3"),
        ("block", "times", |b| b[5] = 9, "9 planes"),
        ("block", "times", |b| b.clear(), "a frame without a method"),
        ("blocktext", "body", |b| b[5] = 8, "unknown flags 8"),
        ("blocktext", "body", |b| b[6] += 2, "bytes are said to follow"),
        ("blocktext", "body", |b| b[6] -= 2, "bytes are left over"),
        ("blocktext", "body", |b| b[7] = 0xff, "not UTF-8"),
        ("setnames", "names", |b| *b.last_mut().unwrap() = 1, "does not have the hash"),
        ("setnames", "names", |b| b[10] ^= 1, "does not have the hash"),
        ("setnames", "names", |b| b[5] -= 1, ""),
        ("itemset", "hashes", |b| b[0] ^= 1, "the set's digest is not that of its hashes"),
        ("itemset", "hashes", |b| b.truncate(b.len() - 1), "no whole number of hashes"),
        ("itemset", "hashes", |b| b.truncate(32), "n is 3, hashes are 2"),
    ];
    for (table, column, change, words) in cases {
        let book = good();
        book.patch(table, column, change);
        refused(&book, words);
    }
}

#[test]
fn rows_agree_with_each_other() {
    let cases = [
        ("UPDATE itemset SET bits = 1", "digest"),
        ("UPDATE itemset SET project = 7", "are not there"),
        ("UPDATE block SET bucket = 1", "its set is of bucket 0"),
        ("UPDATE block SET n = 2", "n is 2, its set holds 3"),
        ("UPDATE block SET itemset = 7", "item set 7"),
        ("UPDATE revision SET bits = 1", "has 1 bits where 0 fit"),
        ("UPDATE revision SET kind = 1", "revision 1 is Revised"),
        ("UPDATE revision SET kind = 4", "kind 4"),
        ("UPDATE revision SET kind = 3, of = 1", "revision 1 promotes 1 and names other blocks"),
        ("UPDATE revision SET revision = 2", "the push says revision 1"),
        ("UPDATE push SET revision = 2", "the push says revision 2"),
        ("DELETE FROM revision", "the last one is 0"),
        ("UPDATE revision SET counts = x'00'", "counts"),
        ("UPDATE push SET uid = x'00'", "a uid of 1 bytes"),
        ("DELETE FROM setnames", "are not there"),
        ("DELETE FROM blocktext", "the row says else"),
        ("DELETE FROM round", "without project, cycle or round"),
    ];
    for (sql, words) in cases {
        let book = good();
        book.run(sql);
        refused(&book, words);
    }
}

#[test]
fn items_lie_in_order_in_their_bucket_and_once() {
    let book = Book::new();
    let mut cases = sorted();
    cases.swap(0, 2);
    book.raw_revision(&push(&book), 1, 0, 0, &[(0, cases)]);
    refused(&book, "the hashes do not rise");

    let book = Book::new();
    let mut cases = sorted();
    cases.insert(1, cases[0].clone());
    book.raw_revision(&push(&book), 1, 0, 0, &[(0, cases)]);
    refused(&book, "twice");

    let book = Book::new();
    book.raw_revision(&push(&book), 1, 0, 0, &[(1, sorted())]);
    refused(&book, "is not of bucket 1");

    // Two buckets whose contents are exchanged, and more bits than are needed.
    let (low, high): (Vec<_>, Vec<_>) =
        (0..20).map(|n| case(&format!("{n}"), PASSED)).partition(|case| case.hash()[0] < 128);
    let order = |mut cases: Vec<Case>| {
        cases.sort_by_key(Case::hash);
        cases
    };
    let (low, high) = (order(low), order(high));
    let book = Book::new();
    book.raw_revision(&push(&book), 1, 0, 1, &[(0, high.clone()), (1, low.clone())]);
    refused(&book, "is not of bucket 0");
    let book = Book::new();
    book.raw_revision(&push(&book), 1, 0, 1, &[(0, low), (1, high)]);
    refused(&book, "has 1 bits where 0 fit");
    // Unless it was staged in as many chunks.
    let staged = Epoch { key: "k", number: 1, fate: 5, revision: Some(1), blocks: 2, bits: 1, blockset: 1 };
    book.epoch(&staged);
    assert_eq!(book.oracle().outcomes("shop", "main", "r").unwrap().len(), 20);
}

#[test]
fn large_texts_are_there_and_whole() {
    let book = || {
        let book = Book::new();
        book.revision(&push(&book), 1, 0, &[case("a", FAILED).message(&"long ".repeat(500))]);
        assert_eq!(book.oracle().outcomes("shop", "main", "r").unwrap().len(), 1);
        book
    };
    for (sql, words) in [
        ("DELETE FROM bigtext", "is not there"),
        ("DELETE FROM bigtext_use", "is not there"),
        ("UPDATE bigtext SET body = x'0000000000'", "0 bytes where a block says 2500"),
        ("UPDATE bigtext SET body = CAST(replace(body, 'long', 'lonG') AS BLOB)", "its digest is another"),
    ] {
        let book = book();
        book.run(sql);
        refused(&book, words);
    }
    let book = Book::new();
    let entry = [vec![1], varint(3000 * 2), vec![b'x'; 3000]].concat();
    book.revision(&push(&book), 1, 0, &[case("a", FAILED).entry(false, entry)]);
    refused(&book, "kept in the wrong place");
}

#[test]
fn promotions_point_backwards() {
    for of in [0, 2, 9] {
        let book = good();
        let id = book.tables.query_row("SELECT id FROM push", [], |row| row.get(0)).unwrap();
        book.promotion(&Push { project: 1, id }, 2, of, false, [0; 6]);
        refused(&book, "promotes");
    }
}
