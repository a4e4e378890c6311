//! Text of unknown origin, made harmless for each place that it is shown in. Names and messages come from reports, and a
//! report may be written by anybody. Must not know what is announced.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What stands where something was left out.
const CUT: char = '…';

/// What could end an address in Markdown, or mean something there.
#[rustfmt::skip]
const NOT_IN_ADDRESS: &AsciiSet = &CONTROLS
    .add(b' ').add(b'"').add(b'\'').add(b'(').add(b')').add(b'<').add(b'>').add(b'[').add(b']').add(b'\\').add(b'`')
    .add(b'{').add(b'}').add(b'|').add(b'^').add(b'*').add(b'@');

/// One line: line ends, separators and control characters become spaces, so that nothing begins a line of its own or
/// moves a cursor.
pub(crate) fn line(text: &str) -> String {
    text.chars().map(|c| if breaks(c) { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// The same, with line ends kept.
fn lines(text: &str) -> String {
    text.trim().split(['\n', '\u{85}', '\u{2028}', '\u{2029}']).map(line).collect::<Vec<_>>().join("\n")
}

/// Control characters, and all that some reader takes for the end of a line.
fn breaks(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') || is_direction(c)
}

/// Marks that change the direction of the text behind them: what is read is then not what is written.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first `max` characters; a mark stands for the rest.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    text.chars().take(max.saturating_sub(1)).chain([CUT]).collect()
}

/// Markdown text that stays text, on one line: no column, no markup, no HTML, no link, no mention of people.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in line(text).chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    // What looks like an address would become a link by itself.
    out.replace("://", "&#58;//").replace("www.", "www&#46;")
}

/// Markdown code on one line.
pub(crate) fn code(text: &str) -> String {
    format!("`{}`", line(text).replace('`', "'").replace('|', "\\|"))
}

/// A link's address: nothing that ends it or begins another one.
pub(crate) fn address(text: &str) -> String {
    utf8_percent_encode(&line(text), NOT_IN_ADDRESS).to_string()
}

/// The text behind a workflow command of GitHub and its likes.
pub(crate) fn workflow_data(text: &str) -> String {
    apart(&lines(text)).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of such a command.
pub(crate) fn workflow_property(text: &str) -> String {
    workflow_data(&line(text)).replace(':', "%3A").replace(',', "%2C")
}

/// The text behind a logging command of Azure Pipelines.
pub(crate) fn vso_data(text: &str) -> String {
    apart(&lines(text)).replace('%', "%AZP25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of such a command.
pub(crate) fn vso_property(text: &str) -> String {
    vso_data(&line(text)).replace(']', "%5D").replace(';', "%3B")
}

/// A value in a service message of `TeamCity`.
pub(crate) fn service(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in lines(text).chars() {
        match c {
            '|' | '\'' | '[' | ']' => {
                out.push('|');
                out.push(c);
            }
            '\n' => out.push_str("|n"),
            c => out.push(c),
        }
    }
    out
}

/// Text in a log that a runner reads for commands: none of it is one. Commands begin with `::` at the head of a line, or
/// with `##[`, `##vso[` or `##teamcity[` anywhere.
pub(crate) fn log(text: &str) -> String {
    let shown = |c: char| if c != '\n' && c != '\t' && breaks(c) { ' ' } else { c };
    let text: String = text.chars().map(shown).collect();
    let lines: Vec<String> = text.split('\n').map(|line| apart(&headless(line))).collect();
    lines.join("\n")
}

fn headless(line: &str) -> String {
    let words = line.trim_start();
    match words.strip_prefix("::") {
        Some(rest) => format!("{}: :{rest}", &line[..line.len() - words.len()]),
        None => line.to_owned(),
    }
}

/// Two hashes never stand together: the mark of a command in two families of logs.
fn apart(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '#' && out.ends_with('#') {
            out.push(' ');
        }
        out.push(c);
    }
    out
}

/// JSON on one line, in which no command of a log stands; it means the same.
pub(crate) fn json(text: &str) -> String {
    text.replace("##", "#\\u0023")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a|b `c`\n::set-output name=x::y\r##vso[task.setvariable variable=x;]y ###[error]\u{1b}[31m\
                           <script>alert(1)</script>\u{2028}::error::z ##teamcity[x 'y'] @all https://evil.example %0A";

    #[test]
    fn hostile_text_in_each_place() {
        let shown = [
            ("line", line(HOSTILE)),
            ("markdown", markdown(HOSTILE)),
            ("code", code(HOSTILE)),
            ("address", address(HOSTILE)),
            ("workflow data", workflow_data(HOSTILE)),
            ("workflow property", workflow_property(HOSTILE)),
            ("vso data", vso_data(HOSTILE)),
            ("vso property", vso_property(HOSTILE)),
            ("service", service(HOSTILE)),
            ("log", log(HOSTILE)),
        ];
        let text: Vec<String> = shown.iter().map(|(place, text)| format!("{place}:\n{text}\n")).collect();
        insta::assert_snapshot!(text.join("\n"));
        for (place, text) in &shown {
            let text = text.as_str();
            assert!(!text.chars().any(|c| c != '\n' && breaks(c)), "{place}: {text:?}");
            assert!(text.lines().all(|line| !line.trim_start().starts_with("::")), "{place}: {text:?}");
            let one_line = *place == "log" || text.lines().count() == 1;
            assert!(one_line, "{place}: {text:?}");
        }
    }

    #[test]
    fn no_command_of_a_log_survives_in_it() {
        for text in ["##[group]x", "a ##vso[b]", "####[x]", "x\n \t::add-mask::y", "::stop-commands::x", "#\u{0}#[x]"] {
            let shown = log(text);
            assert!(!shown.contains("##"), "{shown:?}");
            assert!(shown.lines().all(|line| !line.trim_start().starts_with("::")), "{shown:?}");
        }
        assert_eq!(log("plain: 50% of ::this:: #1\n\tkept"), "plain: 50% of ::this:: #1\n\tkept");
    }

    #[test]
    fn json_means_the_same() {
        let text = serde_json::to_string(&serde_json::json!({"a": "##vso[x]y ###"})).unwrap();
        assert!(!json(&text).contains("##"));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&json(&text)).unwrap(),
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        );
    }

    #[test]
    fn a_long_text_says_that_it_goes_on() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
