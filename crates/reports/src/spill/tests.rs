//! A temporary file that is full for a while.

use std::fs::File;

use super::*;
use crate::Collector;

fn report(name: &str, cases: usize) -> String {
    let text = "why ".repeat(60);
    let case = |i| format!("<testcase name='{}' classname='{name}'><failure>{text}</failure></testcase>\n", i % 400);
    format!("<testsuite name='{name}'>{}</testsuite>", (0..cases).map(case).collect::<String>())
}

/// Every write fails for want of room.
fn full() -> File {
    File::options().read(true).write(true).open("/dev/full").unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_folder_costs_the_file_that_did_not_fit_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b, c) = (report("a", 700), report("b", 900), report("c", 600));
    let mut expected = Collector::new(ReadOptions::standard());
    for (name, text) in [("a.xml", &a), ("c.xml", &c)] {
        expected.add(name, text.as_bytes()).unwrap();
    }
    let expected = expected.finish();
    // Nothing in buffers; something in buffers; `a` still in memory when the folder is found to be full.
    for (memory_bytes, a_held) in [(0, false), (200_000, false), (800_000, true)] {
        let spill = Spill { folder: folder.path().to_owned(), memory_bytes };
        let mut collector = Collector::spilling(ReadOptions::standard(), spill);
        collector.add("a.xml", a.as_bytes()).unwrap();
        assert_eq!(collector.spool.partitions.is_none(), a_held);
        let partitions = collector.spool.partitions.take();
        let mut partitions = partitions.unwrap_or_else(|| Partitions::new(folder.path(), 200_000).unwrap());
        let room = partitions.scratch_mut().swap(full());
        collector.spool.partitions = Some(partitions);
        let error = collector.add("b.xml", b.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&format!("{} is full", folder.path().display())), "{error}");
        assert!(error.contains("nothing was sent"), "{error}");
        collector.spool.partitions.as_mut().unwrap().scratch_mut().swap(room);
        collector.add("c.xml", c.as_bytes()).unwrap();
        let gathering = collector.gather().unwrap();
        assert_eq!((gathering.summary, gathering.warnings), (expected.summary, expected.warnings.clone()));
        let Gathered::Spilled(spilled) = gathering.outcomes else { unreachable!() };
        let outcomes: Vec<Outcome> = spilled.parts().flat_map(|part| part.unwrap().outcomes).collect();
        let mut held = expected.outcomes.clone();
        held.sort_by_key(|outcome| outcome.item.hash());
        assert_eq!(outcomes.len(), held.len());
        assert!(outcomes == held);
    }
}

#[test]
fn what_comes_back_changed_is_an_error_and_ends_the_walk() {
    let folder = tempfile::tempdir().unwrap();
    let spill = Spill { folder: folder.path().to_owned(), memory_bytes: 0 };
    let mut collector = Collector::spilling(ReadOptions::standard(), spill);
    collector.add("a.xml", report("a", 300).as_bytes()).unwrap();
    let Gathered::Spilled(mut spilled) = collector.gather().unwrap().outcomes else { unreachable!() };
    let scratch = spilled.scratch_mut();
    let other = tempfile::tempfile().unwrap();
    other.set_len(1 << 20).unwrap();
    scratch.swap(other);
    let results: Vec<_> = spilled.parts().collect();
    assert!(matches!(&results[..], [Err(ReportError::Spill { .. })]));
}
