//! What of a push goes on to a target when several deliveries came under its key: all that counts, and no more.

use proof::stubs::{Stub, TestRail};

use crate::site::{Folder, rail, report};

/// What is shown of each case now, by `TestRail`'s numbers of statuses.
fn shown(stub: &Stub<TestRail>, names: &[String]) -> Vec<Option<String>> {
    let ledger = stub.ledger();
    let last = |name: &String| {
        let case = name.split(' ').next().unwrap();
        let items = ledger.items().iter();
        items.filter(|(item, _)| *item == case).find_map(|(_, rows)| rows.last()).map(|row| row.status.clone())
    };
    names.iter().map(last).collect()
}

fn statuses(words: &[&str]) -> Vec<Option<String>> {
    words.iter().map(|word| Some(*word).filter(|word| !word.is_empty()).map(ToString::to_string)).collect()
}

const PASSED: &str = "1";
const FAILED: &str = "5";
/// As in CI by itself.
const KEEP: &[&str] = &["--on-difference", "keep"];

fn pushed(folder: &Folder, names: &[String], failed: &[usize], more: &[&str]) -> String {
    again(folder, &report(names, failed), more)
}

/// Pushes a report that stands as it is.
fn again(folder: &Folder, report: &str, more: &[&str]) -> String {
    folder.write("report.xml", report);
    let (finished, json) = folder.push(more);
    assert_eq!(finished.code, Some(0), "{finished}");
    json["warnings"].to_string()
}

/// A later step of the same job pushes the files of the first one along.
#[test]
fn what_is_new_in_what_is_kept_beside_goes_on_too() {
    let (stub, folder, names) = rail();
    assert_eq!(pushed(&folder, &names[..2], &[0], &[]), "[]");
    let said = pushed(&folder, &names[..3], &[], KEEP);
    assert!(said.contains("but for 1 items that nobody had"), "{said}");
    assert_eq!(shown(&stub, &names[..4]), statuses(&[FAILED, PASSED, PASSED, ""]));
    // Nothing of it counts that isn't there already.
    let said = pushed(&folder, &names[..2], &[1], KEEP);
    assert!(said.contains("nothing is forwarded to there"), "{said}");
    assert_eq!(stub.ledger().count(), 3);
}

#[test]
fn what_somebody_promotes_goes_on_with_the_next_push() {
    let (stub, folder, names) = rail();
    pushed(&folder, &names[..2], &[0], &[]);
    pushed(&folder, &names[..2], &[1], KEEP);
    assert_eq!(shown(&stub, &names[..2]), statuses(&[FAILED, PASSED]));
    let ledger = format!("sqlite:{}", folder.path(".tallyonce/ledger-there.db").display());
    let promote = ["promote", "run:7", "--to", &ledger, "--project", "shop"];
    let promoted = folder.run(&promote).output().unwrap();
    assert_eq!(promoted.code, Some(0), "{promoted}");
    assert_eq!(pushed(&folder, &names[..2], &[1], KEEP), "[]");
    assert_eq!(shown(&stub, &names[..2]), statuses(&[PASSED, FAILED]));
    assert_eq!(stub.ledger().count(), 4);
}

/// Failed, passed, and failed again, by somebody whose attempts have no numbers.
#[test]
fn what_comes_back_is_the_newest_there_and_a_late_repeat_is_not() {
    let (stub, folder, names) = rail();
    // Each took another time.
    let ran = |failed: &[usize], time: &str| report(&names[..2], failed).replace("0.01", time);
    for (failed, time, last) in [(&[0][..], "1", FAILED), (&[], "2", PASSED), (&[0], "3", FAILED)] {
        again(&folder, &ran(failed, time), &["--on-difference", "revise"]);
        assert_eq!(shown(&stub, &names[..2]), statuses(&[last, PASSED]), "{time}");
    }
    assert_eq!(stub.ledger().count(), 4);
    // The second delivery once more is answered with its receipt, and doesn't count any more.
    again(&folder, &ran(&[], "2"), KEEP);
    assert_eq!((shown(&stub, &names[..2]), stub.ledger().count()), (statuses(&[FAILED, PASSED]), 4));
}
