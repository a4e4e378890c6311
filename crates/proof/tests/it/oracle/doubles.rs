//! Each kind of double is told in words, on tables that don't refuse it; a store without any is clean.

use super::writer::{Book, Epoch, FAILED, PASSED, Push, case};

#[track_caller]
fn told(book: &Book, words: &[&str]) {
    let found = book.oracle().doubles().unwrap();
    for word in words {
        assert!(found.iter().any(|line| line.contains(word)), "{word:?} is not in {found:#?}");
    }
    assert_eq!(found.len(), words.len(), "{found:#?}");
}

fn one(book: &Book, key: &str, variant: &str, shard: Option<u32>) -> Push {
    let push = book.push("shop", "r", key, variant, shard);
    book.revision(&push, 1, 0, &[case("a", PASSED), case("b", FAILED)]);
    book.counts(&push, [2, 1, 1, 0, 0, 0]);
    push
}

#[test]
fn tables_without_unique_are_clean_as_such() {
    let book = Book::without_unique();
    one(&book, "k", "", None);
    told(&book, &[]);
    let indices = "SELECT COUNT(*) FROM sqlite_master WHERE sql LIKE '%UNIQUE%'";
    assert_eq!(book.tables.query_row(indices, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn a_key_twice() {
    let book = Book::without_unique();
    one(&book, "k", "", Some(1));
    one(&book, "k", "", Some(2));
    told(&book, &["key k is there 2 times in project 1", "uid "]);
    assert_eq!(book.oracle().pushes().unwrap(), ["shop/k", "shop/k"]);
    book.run("DELETE FROM block WHERE blockset = 2");
    book.run("DELETE FROM revision WHERE push = 2");
    book.run("DELETE FROM push WHERE id = 2");
    told(&book, &[]);
    book.run("INSERT INTO tombstone SELECT project, uid, key FROM push");
    told(&book, &["key k of project 1 is a push and a tombstone"]);
}

#[test]
fn an_item_twice_in_a_block_or_in_two_blocks() {
    let book = Book::without_unique();
    let push = book.push("shop", "r", "k", "", None);
    book.raw_revision(&push, 1, 0, 0, &[(0, vec![case("a", PASSED), case("a", FAILED)])]);
    told(&book, &["shop/k: revision 1 holds a twice"]);

    let book = Book::without_unique();
    one(&book, "k", "", None);
    let columns = "project, blockset, bucket, n, itemset, codes, times";
    book.run(&format!("INSERT INTO block({columns}) SELECT {columns} FROM block"));
    told(&book, &["content 1 has 2 blocks of bucket 0", "holds a twice", "holds b twice"]);
}

#[test]
fn two_receipts_of_one_revision() {
    let book = Book::without_unique();
    one(&book, "k", "", None);
    let columns = "project, push, revision, kind, ordinal_scope, content, outcomes, bits, counts, files, report, \
                   incomplete, recorded_at, receipt";
    book.run(&format!("INSERT INTO revision({columns}) SELECT {columns} FROM revision"));
    told(&book, &["revision 1 of push 1 has 2 receipts"]);
    assert_eq!(book.oracle().receipts("shop", "k").unwrap().len(), 2);
}

#[test]
fn an_item_in_two_pushes_of_one_piece_of_work() {
    let book = Book::new();
    one(&book, "k1", "", Some(1));
    // Another shard, another variant, another round: overlaps or none, but no doubles.
    one(&book, "k2", "", Some(2));
    one(&book, "k3", "", None);
    one(&book, "k4", "os=mac", Some(1));
    let push = book.push("shop", "r2", "k5", "", Some(1));
    book.revision(&push, 1, 0, &[]);
    told(&book, &[]);
    let push = book.push("shop", "r", "k6", "", Some(1));
    book.revision(&push, 1, 0, &[case("b", FAILED), case("c", FAILED)]);
    book.counts(&push, [2, 0, 2, 0, 0, 0]);
    told(&book, &["b is in shop/k6 and in shop/k1 of round r"]);
}

#[test]
fn counts_that_differ_from_a_recount() {
    let book = Book::new();
    let push = one(&book, "k", "", None);
    book.revision(&push, 2, 1, &[case("b", PASSED)]);
    told(&book, &["shop/k: counts say [2, 1, 1, 0, 0, 0], a recount [2, 2, 0, 0, 0, 1]"]);
    book.counts(&push, [2, 2, 0, 0, 0, 1]);
    told(&book, &[]);
    book.promotion(&push, 3, 1, true, [1, 0, 1, 0, 0, 0]);
    book.counts(&push, [2, 1, 1, 0, 0, 0]);
    told(&book, &["counts of revision 3 say [1, 0, 1, 0, 0, 0], a recount [2, 1, 1, 0, 0, 0]"]);
}

#[test]
fn what_is_staged_waits_and_counts_nothing() {
    let epoch = |number, fate, blocks| Epoch { key: "s", number, fate, revision: None, blocks, bits: 1, blockset: 9 };
    let book = Book::without_unique();
    one(&book, "k", "", None);
    book.run(
        "INSERT INTO block(project, blockset, bucket, n, itemset, codes, times)
              SELECT project, 9, bucket, n, itemset, codes, times FROM block",
    );
    told(&book, &["block 2 belongs to no revision"]);
    book.epoch(&epoch(1, 0, 0));
    told(&book, &[]);
    book.epoch(&epoch(1, 0, 0));
    told(&book, &["epoch 1 of key s is there 2 times in project 1"]);
    book.run("DELETE FROM stage");
    // Dead and swept: nothing may be left of it.
    book.epoch(&epoch(2, 2, 1));
    told(&book, &["block 2 belongs to no revision"]);
    assert_eq!(book.oracle().pushes().unwrap(), ["shop/k"]);
}

#[test]
fn a_commit_leads_to_its_revision() {
    let book = Book::without_unique();
    one(&book, "k", "", None);
    let epoch =
        |revision| Epoch { key: "k", number: 1, fate: 5, revision: Some(revision), blocks: 2, bits: 0, blockset: 1 };
    book.epoch(&epoch(1));
    told(&book, &[]);
    book.run("UPDATE stage SET revision = 2");
    told(&book, &["epoch 1 of key k is committed as revision 2, which is not there"]);
    one(&book, "k2", "", Some(1));
    book.run("UPDATE stage SET revision = 1");
    book.run("DELETE FROM block WHERE blockset = 2");
    book.run("UPDATE revision SET blockset = 1");
    told(&book, &["content 1 is that of 2 revisions"]);
}

#[test]
fn pieces_without_their_whole() {
    for (sql, words) in [
        ("DELETE FROM push", vec!["revision 1 belongs to no push"]),
        ("UPDATE block SET blockset = 9", vec!["block 1 belongs to no revision", "counts", "counts of revision 1"]),
        ("INSERT INTO blocktext VALUES (9, x'0000000000')", vec!["texts 9 belong to no block"]),
    ] {
        let book = Book::new();
        one(&book, "k", "", None);
        book.run(sql);
        told(&book, &words);
    }
}
