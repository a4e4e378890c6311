//! The guides in `docs/ci` hold what they promise: every command in them is run by the real program against a real server,
//! every key is the one that it prints, every platform has its page, and no link leads nowhere.
//! Must not know any guide: what one leaves to its platform stands in `expressions.toml`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests may panic, and say what they ran")]

mod commands;
mod forwarded;
mod markdown;
mod packages;
mod retries;
mod table;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use markdown::Page;

/// The top of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages of `docs/ci`, by name.
fn pages() -> Vec<Page> {
    let entries = std::fs::read_dir(root().join("docs/ci")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.iter().all(|path| path.extension().is_some_and(|ending| ending == "md")), "{paths:?}");
    paths.iter().map(|path| Page::read(path)).collect()
}

#[test]
fn every_command_does_what_its_guide_says() {
    let settings = table::settings();
    let pages = pages();
    for name in settings.keys() {
        assert!(
            pages.iter().any(|page| page.name == *name),
            "expressions.toml has a table for {name}: there is no such guide"
        );
    }
    let (todo, said, failed) = (Mutex::new(pages.iter()), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some(page) = todo.lock().unwrap().next() else { return };
                    match work::through(page, &settings.get(&page.name).cloned().unwrap_or_default()) {
                        Ok(lines) => said.lock().unwrap().extend(lines),
                        Err(why) => failed.lock().unwrap().push(why),
                    }
                }
            });
        }
    });
    let (mut said, failed) = (said.into_inner().unwrap(), failed.into_inner().unwrap());
    said.sort();
    for line in &said {
        eprintln!("{line}");
    }
    eprintln!("{} commands of {} guides", said.len(), pages.len());
    assert!(failed.is_empty(), "{} guides promise what isn't so:\n\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn blocks_parse_and_the_table_holds_nothing_unused() {
    let settings = table::settings();
    for page in pages() {
        for block in &page.blocks {
            assert!(!block.language.is_empty(), "{}:{}: a block without a language", page.path.display(), block.line);
            commands::documents(block);
        }
        let text: String = page.blocks.iter().map(|block| block.text.as_str()).collect();
        let unused = settings.get(&page.name).map(|setting| setting.unused(&text)).unwrap_or_default();
        assert!(unused.is_empty(), "expressions.toml: {} doesn't use {unused:?}", page.name);
    }
}

#[test]
fn every_platform_has_its_guide_and_a_line_in_the_index() {
    let index = std::fs::read_to_string(root().join("docs/ci/README.md")).unwrap();
    let pages = pages();
    for (slug, title, strength) in domain::ci::platforms() {
        assert!(pages.iter().any(|page| page.name == slug), "{title} has no guide docs/ci/{slug}.md");
        let link = format!("]({slug}.md)");
        let row = index.lines().find(|line| line.starts_with('|') && line.contains(&link));
        let row = row.unwrap_or_else(|| panic!("the index doesn't list {title} with a link to {slug}.md"));
        let strength = format!("{strength:?}").to_lowercase();
        assert!(row.contains(&format!("| {strength} |")), "{title} is {strength}: {row}");
    }
    for page in pages.iter().filter(|page| page.name != "README") {
        assert!(index.contains(&format!("({}.md)", page.name)), "the index leads not to {}.md", page.name);
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut all = pages();
    for name in ["README.md", "docs/announce.md", "docs/run.md", "packages/README.md"] {
        all.push(Page::read(&root().join(name)));
    }
    for page in &all {
        for link in page.links().into_iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.path.clone() } else { page.path.parent().unwrap().join(file) };
            assert!(path.exists(), "{}: {link} leads nowhere", page.path.display());
            let anchors = if anchor.is_empty() { Vec::new() } else { Page::read(&path).anchors() };
            assert!(
                anchor.is_empty() || anchors.iter().any(|found| found == anchor),
                "{}: {link}: no such heading, there are {anchors:?}",
                page.path.display()
            );
        }
    }
}
