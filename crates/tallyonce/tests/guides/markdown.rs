//! The parts of a guide that can be checked: fenced blocks, links, headings, and lines that promise a key.
//! Must not know what is in a block.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A fenced block.
pub(crate) struct Block {
    pub(crate) language: String,
    /// The exit code that its commands end with.
    pub(crate) exit: i32,
    /// Without the indentation of its fence.
    pub(crate) text: String,
    /// Where it begins, from 1.
    pub(crate) line: usize,
}

/// A page.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    /// Its file's name without the ending.
    pub(crate) name: String,
    pub(crate) blocks: Vec<Block>,
    /// The lines outside of blocks.
    pub(crate) prose: Vec<String>,
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut page = Self {
            path: path.to_owned(),
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            blocks: Vec::new(),
            prose: Vec::new(),
        };
        let mut open: Option<(usize, Block)> = None;
        for (at, line) in text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            match (open.take(), fence) {
                (None, Some(info)) => {
                    let indent = line.len() - line.trim_start().len();
                    open = Some((indent, page.block(at + 1, info)));
                }
                (None, None) => page.prose.push(line.to_owned()),
                (Some((_, block)), Some(_)) => page.blocks.push(block),
                (Some((indent, mut block)), None) => {
                    let cut = line.len() - line.trim_start().len();
                    block.text.push_str(&line[indent.min(cut)..]);
                    block.text.push('\n');
                    open = Some((indent, block));
                }
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", path.display());
        page
    }

    fn block(&self, line: usize, info: &str) -> Block {
        let mut words = info.split_whitespace();
        let language = words.next().unwrap_or_default().to_owned();
        let settings: BTreeMap<&str, &str> = words.filter_map(|word| word.split_once('=')).collect();
        let exit = settings.get("exit").map_or(0, |code| {
            code.parse().unwrap_or_else(|_| panic!("{}:{line}: exit={code} is no number", self.path.display()))
        });
        Block { language, exit, text: String::new(), line }
    }

    /// The keys that blocks promise, in lines `key: …`.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let lines = self.blocks.iter().filter(|block| block.language == "text").flat_map(|block| block.text.lines());
        lines.filter_map(|line| line.strip_prefix("key: ")).map(str::trim).collect()
    }

    /// Where the links outside of blocks lead.
    pub(crate) fn links(&self) -> Vec<&str> {
        let pieces = self.prose.iter().flat_map(|line| line.split("](").skip(1));
        pieces.filter_map(|piece| piece.split(')').next()).collect()
    }

    /// The headings as the ends of links.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings = self.prose.iter().filter(|line| line.starts_with('#'));
        let kept = |c: char| c.is_alphanumeric() || c == ' ' || c == '-' || c == '_';
        headings
            .map(|line| line.trim_start_matches('#').trim().to_lowercase())
            .map(|text| text.chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-"))
            .collect()
    }
}
