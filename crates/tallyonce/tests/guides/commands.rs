//! Finds the commands in a block: in the strings of YAML, in argument lists, and in the lines of anything else.
//! Must not run them, nor know what a platform replaces in them.

use serde_json::Value;

use crate::markdown::Block;

/// The subcommands that a guide may use.
const KNOWN: [&str; 9] = ["push", "run", "flush", "key", "show", "wait", "close", "promote", "summary"];

/// The commands of a block, in its order.
pub(crate) fn of(block: &Block) -> Vec<String> {
    if let Some(documents) = documents(block) {
        let mut found = Vec::new();
        for document in &documents {
            walk(document, &mut found);
        }
        return found;
    }
    if block.language == "text" { Vec::new() } else { in_lines(&block.text) }
}

/// The documents of a YAML or JSON block.
pub(crate) fn documents(block: &Block) -> Option<Vec<Value>> {
    if !["yaml", "yml", "json"].contains(&block.language.as_str()) {
        return None;
    }
    match serde_saphyr::from_multiple(&block.text) {
        Ok(documents) => Some(documents),
        Err(error) => panic!("the block of line {} is no {}: {error}", block.line, block.language),
    }
}

fn walk(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.extend(in_lines(text)),
        Value::Array(items) => match arguments(items) {
            Some(words) => found.push(joined(&words)),
            None => items.iter().for_each(|item| walk(item, found)),
        },
        Value::Object(map) => {
            let words = |key: &str| map.get(key).and_then(Value::as_array);
            let command = words("command").and_then(|command| arguments(command));
            match (command, words("args")) {
                // A container's command and its arguments are one.
                (Some(mut command), Some(args)) => {
                    command.extend(args.iter().filter_map(Value::as_str));
                    found.push(joined(&command));
                    map.iter().filter(|(key, _)| *key != "command" && *key != "args").for_each(|(_, v)| walk(v, found));
                }
                _ => map.values().for_each(|item| walk(item, found)),
            }
        }
        _ => {}
    }
}

/// The words of an argument list that begins with the program.
fn arguments(items: &[Value]) -> Option<Vec<&str>> {
    (items.first()?.as_str()? == "tallyonce").then(|| items.iter().filter_map(Value::as_str).collect())
}

/// Words as a shell reads them back.
fn joined(words: &[&str]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

/// From the program's name to the end of the line, of the lines that it goes on in, or of the quotes around it.
fn in_lines(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let text = text.replace("\\\n", " ");
    for line in text.lines().filter(|line| !["#", "//"].iter().any(|mark| line.trim_start().starts_with(mark))) {
        let starts = line.match_indices("tallyonce ").find(|(at, _)| {
            let before = line[..*at].chars().next_back();
            let word = line[at + "tallyonce ".len()..].split_whitespace().next().unwrap_or_default();
            before.is_none_or(|c| c.is_whitespace() || "'\"`(;&|".contains(c)) && KNOWN.contains(&word)
        });
        let Some((at, _)) = starts else { continue };
        let command = &line[at..];
        let quote = line[..at].chars().next_back().filter(|c| "'\"".contains(*c));
        let end = quote.and_then(|quote| command.rfind(quote)).unwrap_or(command.len());
        found.push(command[..end].trim().to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(language: &str, text: &str) -> Block {
        Block { language: language.to_owned(), exit: 0, text: text.to_owned(), line: 1 }
    }

    #[test]
    fn in_yaml() {
        let text = "script:\n  - tallyonce push 'a b'\n    --to X\n  - |\n    cd here\n    tallyonce flush \\\n      --to X\n\
            spec: {command: [tallyonce, run], args: [--, npm, \"it's\"], name: tallyonce push-step}\n";
        let expected =
            ["tallyonce push 'a b' --to X", "tallyonce flush    --to X", "'tallyonce' 'run' '--' 'npm' 'it'\\''s'"];
        let found = of(&block("yaml", text));
        assert_eq!(found.len(), 3, "{found:?}");
        for command in expected {
            let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(found.iter().any(|found| plain(found) == plain(command)), "{command}: {found:?}");
        }
    }

    #[test]
    fn in_other_texts() {
        let text = "# tallyonce push no\nsh 'tallyonce push \"a\"'\nsh \"\"\"\n  docker run acme/tallyonce push\n  x -- tallyonce key\n\"\"\"\n\
            // tallyonce key\nimage acme/tallyonce\n";
        assert_eq!(of(&block("groovy", text)), ["tallyonce push \"a\"", "tallyonce key"]);
        assert!(of(&block("text", "tallyonce push a")).is_empty());
    }
}
