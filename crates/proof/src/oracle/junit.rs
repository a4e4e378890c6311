//! Reports made by seed, and a deliberately naive reader of such reports: no XML parser, no regular expressions.
//! Must not be used on files that it did not make.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::rng::Rng;

/// A report to be made. Equal specifications make equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JunitSpec {
    /// Names depend on this and on nothing else: reports with equal `names` and `cases` hold the same items, those
    /// with different `names` none in common.
    pub names: u64,
    /// Which cases fail, break or are left out depends on this.
    pub verdicts: u64,
    /// Durations depend on this: another value makes a cosmetic difference.
    pub times: u64,
    /// How many test cases; their names are unique.
    pub cases: usize,
    /// How many of them fail.
    pub failures: usize,
    /// How many of them break.
    pub errors: usize,
    /// How many of them are left out.
    pub skipped: usize,
}

/// A report of `cases` uniquely named test cases of which `failures` fail; names, verdicts and times by `seed`.
pub fn generate_junit(seed: u64, cases: usize, failures: usize) -> String {
    JunitSpec::new(seed, cases, failures).xml()
}

/// Cases of one class.
const CLASS: usize = 25;

impl JunitSpec {
    /// As [`generate_junit`], to be varied.
    pub fn new(seed: u64, cases: usize, failures: usize) -> Self {
        Self { names: seed, verdicts: seed, times: seed, cases, failures, errors: 0, skipped: 0 }
    }

    /// The report.
    pub fn xml(&self) -> String {
        let verdicts = self.draw();
        let mut times = Rng::new(self.times);
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        for (number, group) in verdicts.chunks(CLASS).enumerate() {
            let class = format!("made.s{}.Class{number}", self.names);
            let count = |word| group.iter().filter(|verdict| **verdict == word).count();
            let (failed, errored, skipped) = (count("failed"), count("errored"), count("skipped"));
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{class}\" tests=\"{}\" failures=\"{failed}\" errors=\"{errored}\" \
                 skipped=\"{skipped}\">",
                group.len()
            );
            for (place, verdict) in group.iter().enumerate() {
                let case = number * CLASS + place;
                let micros = times.below(2_000_000);
                let _ = write!(
                    xml,
                    "    <testcase classname=\"{class}\" name=\"case {case} &lt;a &amp; b&gt;\" time=\"{}.{:06}\"",
                    micros / 1_000_000,
                    micros % 1_000_000
                );
                xml.push_str(&inside(verdict, case));
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }

    /// What the report says, without reading it: item text to status.
    pub fn expected(&self) -> BTreeMap<String, String> {
        let draws = self.draw().into_iter().enumerate();
        draws
            .map(|(case, verdict)| {
                let class = format!("made.s{}.Class{}", self.names, case / CLASS);
                (item_text(&[], Some(&class), &format!("case {case} <a & b>")), verdict.to_owned())
            })
            .collect()
    }

    /// A status for each case, the exact numbers of each, places by seed.
    fn draw(&self) -> Vec<&'static str> {
        let mut all = vec!["passed"; self.cases];
        let mut rng = Rng::new(self.verdicts);
        let words = [("failed", self.failures), ("errored", self.errors), ("skipped", self.skipped)];
        let words = words.into_iter().flat_map(|(word, count)| std::iter::repeat_n(word, count));
        // A seeded shuffle of the places, as far as it is needed.
        let mut places: Vec<usize> = (0..self.cases).collect();
        for (at, word) in words.take(self.cases).enumerate() {
            let other = at + rng.below((self.cases - at) as u64) as usize;
            places.swap(at, other);
            all[places[at]] = word;
        }
        all
    }
}

fn inside(verdict: &str, case: usize) -> String {
    let tag = match verdict {
        "failed" => "failure",
        "errored" => "error",
        "skipped" => return "><skipped/></testcase>\n".to_owned(),
        _ => return "/>\n".to_owned(),
    };
    format!("><{tag} message=\"case {case}: 1 &lt; 2\">expected 1\ngot 2</{tag}></testcase>\n")
}

/// The text of an item that tests compare: `suite > class > name`, as people see it.
pub fn item_text(suite: &[&str], class: Option<&str>, name: &str) -> String {
    suite.iter().copied().chain(class).chain([name]).collect::<Vec<_>>().join(" > ")
}

/// What generated reports say, read naively: item text to status.
///
/// # Errors
/// A file cannot be read or was not made by [`JunitSpec::xml`], or a name is not unique.
pub fn expected_from_junit(files: &[impl AsRef<Path>]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for file in files {
        let path = file.as_ref();
        let xml = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut seen = BTreeSet::new();
        for part in xml.split("<testcase ").skip(1) {
            let (item, status) = case(part).with_context(|| format!("{}: {part}", path.display()))?;
            if !seen.insert(item.clone()) || all.insert(item.clone(), status).is_some() {
                bail!("{}: {item} is there twice", path.display());
            }
        }
    }
    Ok(all)
}

fn case(part: &str) -> anyhow::Result<(String, String)> {
    let (head, body) = part.split_once('>').context("no end of the tag")?;
    let (class, name) = (attribute(head, "classname")?, attribute(head, "name")?);
    let body = if head.ends_with('/') { "" } else { body.split_once("</testcase>").context("no end")?.0 };
    let status = [("<failure", "failed"), ("<error", "errored"), ("<skipped", "skipped")]
        .into_iter()
        .find_map(|(tag, word)| body.contains(tag).then_some(word))
        .unwrap_or("passed");
    Ok((item_text(&[], Some(&class), &name), status.to_owned()))
}

fn attribute(head: &str, name: &str) -> anyhow::Result<String> {
    let start = format!(" {name}=\"");
    let padded = format!(" {head}");
    let value = padded.split_once(&start).and_then(|(_, rest)| rest.split_once('"'));
    let (value, _) = value.with_context(|| format!("no {name}"))?;
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    Ok(plain.into_iter().fold(value.to_owned(), |text, (entity, c)| text.replace(entity, c)))
}
