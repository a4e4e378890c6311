//! Generated reports and the naive reader agree, and differ where they should.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proof::oracle::{JunitSpec, expected_from_junit, generate_junit};

fn read(xml: &[String]) -> anyhow::Result<BTreeMap<String, String>> {
    let folder = tempfile::tempdir()?;
    let paths: Vec<_> = (0..xml.len()).map(|n| folder.path().join(format!("{n}.xml"))).collect();
    for (path, xml) in paths.iter().zip(xml) {
        fs::write(path, xml)?;
    }
    expected_from_junit(&paths)
}

fn count(all: &BTreeMap<String, String>, status: &str) -> usize {
    all.values().filter(|s| *s == status).count()
}

#[test]
fn what_is_made_is_what_is_read() -> anyhow::Result<()> {
    let spec = JunitSpec { errors: 2, skipped: 4, ..JunitSpec::new(3, 120, 7) };
    let all = read(&[spec.xml()])?;
    assert_eq!(all, spec.expected());
    let counts = ["passed", "failed", "errored", "skipped"].map(|status| count(&all, status));
    assert_eq!(counts, [107, 7, 2, 4]);
    assert!(all.contains_key("made.s3.Class4 > case 119 <a & b>"), "{:?}", all.keys().last());
    assert_eq!(read(&[generate_junit(9, 0, 0)])?, BTreeMap::new());
    Ok(())
}

#[test]
fn each_seed_varies_its_own_part() -> anyhow::Result<()> {
    let base = JunitSpec::new(1, 80, 9);
    assert_eq!(base.xml(), generate_junit(1, 80, 9));
    let keys = |spec: JunitSpec| spec.expected().into_keys().collect::<BTreeSet<_>>();
    let times = JunitSpec { times: 2, ..base };
    assert_ne!(times.xml(), base.xml());
    assert_eq!(times.expected(), base.expected());
    let verdicts = JunitSpec { verdicts: 2, ..base };
    assert_ne!(verdicts.expected(), base.expected());
    assert_eq!(keys(verdicts), keys(base));
    let names = JunitSpec { names: 2, ..base };
    assert!(keys(names).is_disjoint(&keys(base)));
    assert_eq!(read(&[base.xml(), names.xml()])?.len(), 160);
    Ok(())
}

#[test]
fn a_name_twice_is_refused() {
    let xml = generate_junit(1, 3, 0);
    assert!(read(&[xml.clone(), xml]).is_err());
}
