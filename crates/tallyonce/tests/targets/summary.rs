//! The overview's own table of what came of every fault, a line for each product and strategy: summed up from the whole
//! table in `faults.md`, so that the two pages can't say different things. Must not push anything.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::verdict;

/// What the lines of one product and strategy come to.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    /// Product, how it was tested, strategy.
    of: [String; 3],
    recorded: u64,
    pushed: u64,
    doubled: u64,
    lost: u64,
    /// What went wrong where rows were doubled or lost.
    when: Vec<String>,
    /// What was said of those.
    names: BTreeSet<String>,
}

/// The cells of a table's lines, without its head.
fn lines(table: &str) -> impl Iterator<Item = Vec<&str>> {
    table.lines().skip(2).map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

/// Each once, in the order in which they stand.
fn sums(table: &str) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    for line in lines(table) {
        let [product, tested, strategy, mode, recorded, doubled, lost, named] = line[..] else {
            panic!("a line of eight cells: {line:?}")
        };
        let of = [product, tested, strategy].map(str::to_owned);
        if sums.last().is_none_or(|sum| sum.of != of) {
            let (when, names) = (Vec::new(), BTreeSet::new());
            sums.push(Sum { of, recorded: 0, pushed: 0, doubled: 0, lost: 0, when, names });
        }
        let sum = sums.last_mut().unwrap();
        let (there, pushed) = recorded.split_once(" of ").unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        sum.recorded += number(there);
        sum.pushed += number(pushed);
        sum.doubled += number(doubled);
        sum.lost += number(lost);
        if (doubled, lost) != ("0", "0") {
            sum.when.push(mode.to_owned());
            sum.names.extend(named.split(", ").map(str::to_owned));
        }
    }
    sums
}

/// In Markdown.
fn table(sums: &[Sum]) -> String {
    let mut text = String::from(
        "| target | how tested | strategy | recorded | doubled | lost | when | named |\n|---|---|---|---|---|---|---|---|\n",
    );
    for Sum { of: [product, tested, strategy], recorded, pushed, doubled, lost, when, names } in sums {
        let when = if when.is_empty() { "–".to_owned() } else { when.join("; ") };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = if names.is_empty() { "–".to_owned() } else { names.join(", ") };
        let _ = writeln!(
            text,
            "| {product} | {tested} | {strategy} | {recorded} of {pushed} | {doubled} | {lost} | {when} | {names} |"
        );
    }
    text
}

#[test]
fn lines_of_one_product_and_strategy_are_summed_up() {
    let whole = "| head |\n|---|\n\
                 | A | stub | `x` | nothing | 4 of 4 | 0 | 0 | – |\n\
                 | A | stub | `x` | late | 6 of 4 | 2 | 0 | `b`, `a` |\n\
                 | A | stub | `x` | two | 5 of 4 | 2 | 1 | `a` |\n\
                 | A | stub | `y` | late | 4 of 4 | 0 | 0 | `c` |\n";
    let text = table(&sums(whole));
    let expected =
        "| A | stub | `x` | 15 of 12 | 4 | 1 | late; two | `a`, `b` |\n| A | stub | `y` | 4 of 4 | 0 | 0 | – | – |\n";
    assert_eq!(text.split_once("|---|---|---|---|---|---|---|---|\n").unwrap().1, expected);
}

/// `TALLYONCE_WRITE_TABLE=1` writes it anew: once more after the whole table was, as both are done at once.
#[test]
fn the_overview_sums_up_the_whole_table() {
    let summed = table(&sums(&verdict::read("faults.md", "matrix")));
    if crate::fleet::variable("TALLYONCE_WRITE_TABLE").is_some() {
        verdict::write("README.md", "sums", &summed);
    }
    assert_eq!(verdict::read("README.md", "sums"), summed, "write it anew: TALLYONCE_WRITE_TABLE=1, this test alone");
}
