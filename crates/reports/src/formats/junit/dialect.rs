//! What differs between the writers of JUnit XML: what identifies an item, and what a repeat means
//! (`facts/formats.md`, sections 2 and 7). Must not know elements or tokens beyond the attributes handed in.

use crate::event::Repeats;

/// A writer that needs rules of its own, as far as the file has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Dialect {
    /// Nothing special seen.
    #[default]
    Plain,
    Pytest,
    Go,
    Gradle,
    Xcode,
    Nextest,
    /// cargo's `--format junit`: one document per test binary, none of them named.
    Libtest,
    /// unittest-xml-reporting: the start time is part of the suite's name.
    UnittestXml,
    /// The project stands in the suite's host name.
    Playwright,
    /// The browser with its version stands in suite and class.
    Karma,
}

/// The parts of an item's identity except its own name; kept from case to case, as they rarely change.
#[derive(Debug, Default)]
pub(super) struct Name {
    pub(super) suite: Vec<String>,
    pub(super) class: String,
    /// What it was made from: the dialect, depth and number of the innermost suite, and the class as written.
    made_from: Option<(Dialect, usize, u32)>,
    made_from_class: String,
}

impl Name {
    /// Who a testcase within `suites` is about; see [`Dialect::identify`]. The number of a suite stands for it and all
    /// around it.
    pub(super) fn update(&mut self, dialect: Dialect, suites: &[Suite], class: &str) {
        let from = Some((dialect, suites.len(), suites.last().map_or(0, |suite| suite.number)));
        if self.made_from != from || self.made_from_class != class {
            dialect.identify(suites, class, self);
            self.made_from = from;
            class.clone_into(&mut self.made_from_class);
        }
    }

    fn set<'a>(&mut self, path: impl Iterator<Item = &'a str>, class: &str) {
        let mut depth = 0;
        for part in path {
            match self.suite.get_mut(depth) {
                Some(known) if known == part => {}
                Some(known) => part.clone_into(known),
                None => self.suite.push(part.to_owned()),
            }
            depth += 1;
        }
        self.suite.truncate(depth);
        class.clone_into(&mut self.class);
    }
}

/// One open suite, as written.
#[derive(Debug, Clone, Default)]
pub(super) struct Suite {
    pub(super) name: String,
    /// `package.name`, where there is a package.
    pub(super) full_name: Option<String>,
    pub(super) hostname: Option<String>,
    /// Number in the file, and hash of the time stamp.
    pub(super) number: u32,
    pub(super) stamp: u64,
    /// What `tests=` claims.
    pub(super) claimed: Option<u64>,
}

impl Dialect {
    /// From the attributes of a `testsuites` root.
    pub(super) fn of_root(name: &str, has_id: bool) -> Self {
        match name {
            "nextest-run" => Dialect::Nextest,
            "pytest tests" => Dialect::Pytest,
            _ if name.ends_with(".xctest") => Dialect::Xcode,
            _ if has_id => Dialect::Playwright,
            _ => Dialect::Plain,
        }
    }

    /// Refined by a suite: its names, and the order in which its attributes stand, which is a writer's handwriting.
    pub(super) fn of_suite(self, suite: &Suite, order: &[&[u8]], is_root: bool) -> Self {
        const GRADLE: [&[u8]; 8] =
            [b"name", b"tests", b"skipped", b"failures", b"errors", b"timestamp", b"hostname", b"time"];
        match self {
            Dialect::Plain if suite.name == "pytest" => Dialect::Pytest,
            Dialect::Plain if is_root && order == GRADLE => Dialect::Gradle,
            Dialect::Plain if suite.name == "test" && suite.full_name.as_deref() == Some("test.test") => {
                Dialect::Libtest
            }
            Dialect::Plain if is_root && time_stamp(&suite.name).is_some() => Dialect::UnittestXml,
            Dialect::Plain if suite.name.starts_with("@setup-script:") => Dialect::Nextest,
            Dialect::Plain if is_root && browser(&suite.name).is_some() => Dialect::Karma,
            other => other,
        }
    }

    /// Refined by a property of a suite.
    pub(super) fn of_property(self, name: &[u8]) -> Self {
        if self == Dialect::Plain && name == b"go.version" { Dialect::Go } else { self }
    }

    /// What a repeat means.
    pub(super) fn repeats(self) -> Repeats {
        match self {
            Dialect::Pytest => Repeats::Pytest,
            Dialect::Go | Dialect::Xcode => Repeats::Attempts,
            Dialect::Gradle => Repeats::AttemptsAfterBad,
            Dialect::Nextest | Dialect::UnittestXml => Repeats::Worst,
            Dialect::Libtest => Repeats::Programs,
            Dialect::Plain | Dialect::Playwright | Dialect::Karma => Repeats::Ordinals,
        }
    }

    /// Who a testcase within `suites` is about.
    ///
    /// A suite that only repeats the class says nothing and is left out: so an aggregate, whose suites are named by
    /// package and name, and the single files agree. Never in it: hosts, time stamps, line numbers, the root's name.
    pub(super) fn identify(self, suites: &[Suite], class: &str, into: &mut Name) {
        let slashed;
        let mut class = match (self, suites.first()) {
            (Dialect::Karma, Some(suite)) => without_browser(class, &suite.name),
            (Dialect::Nextest, _) => without_stress(class),
            _ => class,
        };
        if is_windows_path(class) {
            slashed = class.replace('\\', "/");
            class = &slashed;
        }
        if self == Dialect::Pytest && !class.is_empty() {
            return into.set(std::iter::empty(), class);
        }
        let says_more = |suite: &Suite| suite.name != class && suite.full_name.as_deref() != Some(class);
        let parts = suites.iter().filter(|suite| says_more(suite)).map(|suite| self.suite_name(&suite.name));
        let project = match suites.last() {
            Some(suite) if self == Dialect::Playwright && suite.name == class => suite.hostname.as_deref(),
            _ => None,
        };
        into.set(parts.filter(|part| !part.is_empty() && *part != class).chain(project), class);
    }

    /// A suite's name without what changes from run to run or machine to machine.
    fn suite_name(self, name: &str) -> &str {
        match self {
            Dialect::Pytest => "",
            Dialect::Nextest => without_stress(name),
            Dialect::Karma => browser(name).unwrap_or(name),
            // PHPUnit names the outermost suite by the path of its configuration.
            _ if is_absolute(name) && is_configuration(name) => "",
            _ => time_stamp(name).unwrap_or(name),
        }
    }
}

/// True for a suite named by a path that differs from machine to machine and stays in the identity.
pub(super) fn is_unstable_path(name: &str) -> bool {
    is_absolute(name) && !is_configuration(name)
}

/// `phpunit.xml`, `phpunit.xml.dist`
fn is_configuration(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    [".xml", ".xml.dist"].iter().any(|end| path.ends_with(end))
}

fn is_absolute(name: &str) -> bool {
    let bytes = name.as_bytes();
    match bytes {
        // A Bazel label begins with two slashes.
        [b'/', rest @ ..] => !rest.starts_with(b"/") && rest.contains(&b'/') && !rest.contains(&b' '),
        [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// `dir\file.spec.js`: a path, unlike a PHP name space.
fn is_windows_path(class: &str) -> bool {
    class.contains('\\')
        && class.rsplit('\\').next().is_some_and(|file| file.rsplit_once('.').is_some_and(|(_, e)| e.len() <= 4))
}

/// The name before `-20210131235959`.
fn time_stamp(name: &str) -> Option<&str> {
    let (head, stamp) = name.rsplit_once('-')?;
    let is = stamp.len() == 14 && stamp.starts_with("20") && stamp.bytes().all(|b| b.is_ascii_digit());
    is.then_some(head)
}

/// The name before `@stress-7`.
fn without_stress(name: &str) -> &str {
    match name.rsplit_once("@stress-") {
        Some((head, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => head,
        _ => name,
    }
}

/// `WebKit` of `WebKit 537.36 (linux 0.0.0)`.
fn browser(name: &str) -> Option<&str> {
    let (head, system) = name.split_once(" (")?;
    let (browser, version) = head.rsplit_once(' ')?;
    let is = system.ends_with(')') && version.contains('.') && version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is.then_some(browser)
}

/// A Karma class without the browser, in which blanks and dots became underscores.
fn without_browser<'a>(class: &'a str, suite: &str) -> &'a str {
    let mut rest = class;
    for c in suite.chars() {
        let c = if matches!(c, ' ' | '.') { '_' } else { c };
        let Some(after) = rest.strip_prefix(c) else { return class };
        rest = after;
    }
    rest.trim_start_matches('.')
}

#[cfg(test)]
mod tests {
    use domain::ItemName;

    use super::*;

    fn suite(name: &str) -> Suite {
        Suite { name: name.to_owned(), ..Suite::default() }
    }

    impl Dialect {
        fn item(self, suites: &[Suite], class: &str, name: &str) -> ItemName {
            let mut parts =
                Name { suite: vec!["left over".to_owned(); 3], class: "left over".to_owned(), ..Name::default() };
            self.identify(suites, class, &mut parts);
            ItemName::new(&parts.suite, Some(parts.class.as_str()), name)
        }
    }

    #[test]
    fn parts_that_change_from_run_to_run_are_left_out() {
        let stamped = Dialect::UnittestXml.item(&[suite("TestAcme-20251114214921")], "TestAcme", "t");
        assert_eq!(stamped, ItemName::new([""; 0], Some("TestAcme"), "t"));
        let karma = Dialect::Karma.item(
            &[suite("Chrome Headless 120.0.1 (Linux x86_64)")],
            "Chrome_Headless_120_0_1_(Linux_x86_64).Cart",
            "t",
        );
        assert_eq!(karma, ItemName::new(["Chrome Headless"], Some("Cart"), "t"));
        let stress = Dialect::Nextest.item(&[suite("shop::it@stress-3")], "shop::it@stress-3", "t");
        assert_eq!(stress, ItemName::new([""; 0], Some("shop::it"), "t"));
        let phpunit = Dialect::Plain.item(&[suite("/builds/shop/phpunit.xml"), suite("unit")], "App\\CartTest", "t");
        assert_eq!(phpunit, ItemName::new(["unit"], Some("App\\CartTest"), "t"));
    }

    #[test]
    fn a_suite_that_repeats_the_class_is_left_out_however_it_is_written() {
        let part = Dialect::Plain.item(&[suite("com.acme.Cart")], "com.acme.Cart", "t");
        let full_name = Some("com.acme.Cart".to_owned());
        let aggregate = Dialect::Plain.item(&[Suite { full_name, ..suite("Cart") }], "com.acme.Cart", "t");
        assert_eq!(part, aggregate);
        assert_ne!(part, Dialect::Plain.item(&[suite("smoke"), suite("com.acme.Cart")], "com.acme.Cart", "t"));
    }

    #[test]
    fn without_a_class_the_suites_identify() {
        let item = Dialect::Plain.item(&[suite("TestCart")], "", "test_add");
        assert_eq!((item.suite().collect::<Vec<_>>(), item.class()), (vec!["TestCart"], None));
    }

    #[test]
    fn the_project_of_playwright_is_part_of_the_item_and_other_hosts_are_not() {
        let on = |host: &str| Suite { hostname: Some(host.to_owned()), ..suite("p.spec.ts") };
        let item = |d: Dialect, host| d.item(&[on(host)], "p.spec.ts", "t");
        assert_ne!(item(Dialect::Playwright, "chromium"), item(Dialect::Playwright, "firefox"));
        assert_eq!(item(Dialect::Plain, "host-1"), item(Dialect::Plain, "host-2"));
    }

    #[test]
    fn a_windows_path_is_the_same_file() {
        let a = Dialect::Plain.item(&[], "test\\cart.spec.js", "t");
        assert_eq!(a, Dialect::Plain.item(&[], "test/cart.spec.js", "t"));
    }
}
