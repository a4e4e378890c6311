//! Another job's environment, out of a file or standard input: lines of NAME=value, or what `env` and `env -0` print.
//! Must not show a value: environments hold secrets.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use domain::ci::Env;

use crate::failure::Failure;

/// What `env -0` ends a variable with: values of several lines survive.
const ZERO: char = '\0';

/// An environment that was read.
#[derive(Debug)]
pub(crate) struct EnvFile {
    /// Where it was read from, as people say it.
    pub path: PathBuf,
    /// All of it: nothing of this process's environment is mixed in.
    pub env: Env,
}

impl EnvFile {
    /// Reads a file, or standard input where `path` is `-`.
    ///
    /// # Errors
    /// It cannot be read, or a line is no variable.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let standard_input = path.as_os_str() == "-";
        let name = if standard_input { PathBuf::from("standard input") } else { path.to_owned() };
        let bytes = if standard_input {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        } else {
            std::fs::read(path)
        };
        let bytes = bytes.map_err(|error| {
            Failure::usage(format!("{} cannot be read: {error}", name.display()), "Name a file that is there, or - .")
        })?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Failure::usage(
                format!("{} is no UTF-8 text", name.display()),
                "Write it as UTF-8 text: one NAME=value a line.",
            )
        })?;
        let variables = parse(&text).map_err(|bad| {
            Failure::usage(
                format!("{}, line {}: {}", name.display(), bad.line, bad.what),
                "Give one NAME=value a line; `export NAME=value`, quotes and # comments are allowed. For a value of several \
                 lines write the file with `env -0`, or leave it out: only the platform's own variables count.",
            )
        })?;
        Ok(Self { path: name, env: Env::from(variables) })
    }
}

/// What is wrong with a line, without its content.
#[derive(Debug, PartialEq, Eq)]
struct Bad {
    /// From 1.
    line: usize,
    what: String,
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, Bad> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Variables::default();
    if text.contains(ZERO) {
        // Printed by a program: no comments, no quotes, nothing to unfold.
        for (at, variable) in text.split(ZERO).enumerate().filter(|(_, variable)| !variable.is_empty()) {
            let (name, value) = variable.split_once('=').ok_or_else(|| no_variable(at + 1))?;
            variables.add(at + 1, name, value.to_owned())?;
        }
        return Ok(variables.values);
    }
    for (at, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        let (name, value) = line.split_once('=').ok_or_else(|| no_variable(at + 1))?;
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')) {
            return Err(no_variable(at + 1));
        }
        let value = unfolded(value).map_err(|what| Bad { line: at + 1, what: what.to_owned() })?;
        variables.add(at + 1, name, value)?;
    }
    Ok(variables.values)
}

fn no_variable(line: usize) -> Bad {
    Bad { line, what: "this is no NAME=value".to_owned() }
}

/// What was read so far, with the line of each.
#[derive(Debug, Default)]
struct Variables {
    values: BTreeMap<String, String>,
    lines: BTreeMap<String, usize>,
}

impl Variables {
    fn add(&mut self, line: usize, name: &str, value: String) -> Result<(), Bad> {
        if let Some(first) = self.lines.insert(name.to_owned(), line) {
            return Err(Bad { line, what: format!("{name} is set again (first in line {first})") });
        }
        self.values.insert(name.to_owned(), value);
        Ok(())
    }
}

/// The value without its quotes. Without quotes it is taken as it stands, `#` too: `env` prints commit messages.
fn unfolded(value: &str) -> Result<String, &'static str> {
    let trimmed = value.trim();
    let Some(quote) = trimmed.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return Ok(value.to_owned()) };
    let mut text = String::new();
    let mut rest = trimmed[1..].chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if quote == '"' => match rest.next() {
                Some('n') => text.push('\n'),
                Some(escaped @ ('"' | '\\' | '$' | '`')) => text.push(escaped),
                // Anything else is a backslash that was meant: a Windows path.
                Some(other) => text.extend(['\\', other]),
                None => break,
            },
            c if c == quote => {
                let after = rest.as_str();
                let comment = after.trim_start();
                let ends = comment.is_empty() || (comment.starts_with('#') && comment.len() < after.len());
                return if ends { Ok(text) } else { Err("text follows the closing quote") };
            }
            c => text.push(c),
        }
    }
    Err("the quote is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(line: &str) -> String {
        parse(line).unwrap().remove("A").unwrap()
    }

    #[test]
    fn lines_of_a_file() {
        for (line, wanted) in [
            ("A=b", "b"),
            ("export A=b", "b"),
            ("  A=b c ", "b c "),
            ("A=", ""),
            ("A=b=c", "b=c"),
            ("A='b \\n # c' # comment", "b \\n # c"),
            ("A=\"b \\\"c\\\" \\$d\"", "b \"c\" $d"),
            ("A=\"C:\\dir\"", "C:\\dir"),
            ("A=\"two\\nlines\"", "two\nlines"),
            ("A=Mend #12 # really", "Mend #12 # really"),
            ("A={\"os\":\"linux\"}", "{\"os\":\"linux\"}"),
            ("\u{feff}# comment\n\nA=b\r\n", "b"),
            ("A=it's", "it's"),
        ] {
            assert_eq!(value(line), wanted, "{line}");
        }
    }

    #[test]
    fn what_env_prints_with_zeros() {
        let variables = parse("A=one\ntwo \"three\0B=#\0").unwrap();
        assert_eq!((variables["A"].as_str(), variables["B"].as_str()), ("one\ntwo \"three", "#"));
        assert_eq!(parse("A=one\0two\0").unwrap_err(), no_variable(2));
    }

    #[test]
    fn a_bad_line_is_named_and_not_shown() {
        for (text, line, word) in [
            ("A=b\nsecret", 2, "NAME=value"),
            ("A=b\n\n=c", 3, "NAME=value"),
            ("A B=c", 1, "NAME=value"),
            ("A=\"secret", 1, "not closed"),
            ("A='secret' more", 1, "follows"),
            ("A='secret'#no", 1, "follows"),
            ("A=b\nA=secret", 2, "first in line 1"),
        ] {
            let bad = parse(text).unwrap_err();
            assert!(bad.line == line && bad.what.contains(word), "{text}: {bad:?}");
            assert!(!bad.what.contains("secret"));
        }
    }
}
