//! As much of GraphQL as a stub needs: one operation with its root fields, arguments with variables put in, and the
//! selection, which decides what of an answer is sent. Must not know any vendor's fields.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Map, Value};

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operation {
    /// Whether it changes something.
    pub(super) mutation: bool,
    /// The root fields, in order.
    pub(super) fields: Vec<Field>,
}

/// One field of a selection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// Its name in the answer.
    pub(super) alias: String,
    /// Its name in the schema.
    pub(super) name: String,
    /// Its arguments.
    pub(super) args: Map<String, Value>,
    /// What is asked of it.
    pub(super) select: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Mark(char),
    Name(String),
    Literal(Value),
}

/// Reads a document with one operation.
pub(super) fn parse(text: &str, variables: &Value) -> Result<Operation, String> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: tokens.into_iter().peekable(), variables };
    let mut mutation = false;
    if let Some(Token::Name(kind)) = reader.tokens.peek().cloned() {
        mutation = kind == "mutation";
        reader.tokens.next();
        if matches!(reader.tokens.peek(), Some(Token::Name(_))) {
            reader.tokens.next();
        }
        if reader.takes('(') {
            reader.definitions()?;
        }
    }
    let fields = reader.selection()?;
    match reader.tokens.next() {
        None => Ok(Operation { mutation, fields }),
        Some(more) => Err(format!("Syntax Error: unexpected {more:?}")),
    }
}

/// What of an object is sent. Selecting what is not there, or an object without saying what of it, is an error.
pub(super) fn project(value: &Value, select: &[Field]) -> Result<Value, String> {
    match value {
        Value::Array(all) => all.iter().map(|one| project(one, select)).collect(),
        Value::Object(members) if !select.is_empty() => {
            let mut shown = Map::new();
            for field in select {
                let member = members.get(&field.name).ok_or_else(|| format!("Cannot query field {:?}", field.name))?;
                // `jira` is a text of JSON in the schema: the fields are an argument, not a selection.
                let member = match field.args.get("fields").and_then(Value::as_array) {
                    Some(names) => {
                        let all = member.as_object().into_iter().flatten();
                        let kept = all.filter(|(name, _)| names.iter().any(|wanted| wanted == name.as_str()));
                        Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
                    }
                    None => project(member, &field.select)?,
                };
                shown.insert(field.alias.clone(), member);
            }
            Ok(Value::Object(shown))
        }
        Value::Object(_) => Err("a field of an object type must have a selection of subfields".to_owned()),
        _ if select.is_empty() || value.is_null() => Ok(value.clone()),
        _ => Err("a field of a scalar type must not have a selection".to_owned()),
    }
}

struct Reader<'a> {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    variables: &'a Value,
}

impl Reader<'_> {
    fn takes(&mut self, mark: char) -> bool {
        self.tokens.next_if(|token| *token == Token::Mark(mark)).is_some()
    }

    fn needs(&mut self, mark: char) -> Result<(), String> {
        if self.takes(mark) { Ok(()) } else { Err(format!("Syntax Error: expected {mark:?}")) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.tokens.next() {
            Some(Token::Name(name)) => Ok(name),
            other => Err(format!("Syntax Error: expected a name, found {other:?}")),
        }
    }

    /// `$a: [String!]!` and so on: each non-null variable must be given.
    fn definitions(&mut self) -> Result<(), String> {
        while !self.takes(')') {
            self.needs('$')?;
            let name = self.name()?;
            self.needs(':')?;
            let mut needed = false;
            while let Some(token) = self.tokens.peek() {
                match token {
                    Token::Mark(')' | '$') => break,
                    token => needed = *token == Token::Mark('!'),
                }
                self.tokens.next();
            }
            if needed && self.variables.get(&name).is_none_or(Value::is_null) {
                return Err(format!("Variable \"${name}\" of a non-null type was not provided"));
            }
        }
        Ok(())
    }

    fn selection(&mut self) -> Result<Vec<Field>, String> {
        self.needs('{')?;
        let mut fields = Vec::new();
        while !self.takes('}') {
            let first = self.name()?;
            let name = if self.takes(':') { self.name()? } else { first.clone() };
            let mut args = Map::new();
            if self.takes('(') {
                while !self.takes(')') {
                    let arg = self.name()?;
                    self.needs(':')?;
                    args.insert(arg, self.value()?);
                }
            }
            let inner = self.tokens.peek() == Some(&Token::Mark('{'));
            let select = if inner { self.selection()? } else { Vec::new() };
            fields.push(Field { alias: first, name, args, select });
        }
        Ok(fields)
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.tokens.next() {
            Some(Token::Literal(value)) => Ok(value),
            Some(Token::Mark('$')) => Ok(self.name().map(|name| self.variables[name].clone())?),
            Some(Token::Mark('[')) => {
                let mut all = Vec::new();
                while !self.takes(']') {
                    all.push(self.value()?);
                }
                Ok(Value::Array(all))
            }
            Some(Token::Mark('{')) => {
                let mut members = Map::new();
                while !self.takes('}') {
                    let name = self.name()?;
                    self.needs(':')?;
                    members.insert(name, self.value()?);
                }
                Ok(Value::Object(members))
            }
            Some(Token::Name(word)) => Ok(match word.as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                _ => Value::String(word),
            }),
            other => Err(format!("Syntax Error: unexpected {other:?}")),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut all, mut chars) = (Vec::new(), text.chars().peekable());
    while let Some(c) = chars.peek().copied() {
        match c {
            c if c.is_whitespace() || c == ',' => {
                chars.next();
            }
            '"' => all.push(Token::Literal(Value::String(quoted(&mut chars)?))),
            c if c.is_ascii_digit() || c == '-' => {
                let number = word(&mut chars, |c| c.is_ascii_digit() || "-.eE+".contains(c));
                all.push(Token::Literal(serde_json::from_str(&number).map_err(|e| e.to_string())?));
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                all.push(Token::Name(word(&mut chars, |c| c.is_ascii_alphanumeric() || c == '_')));
            }
            mark => {
                chars.next();
                all.push(Token::Mark(mark));
            }
        }
    }
    Ok(all)
}

fn word(chars: &mut Peekable<Chars<'_>>, of: impl Fn(char) -> bool) -> String {
    std::iter::from_fn(|| chars.next_if(|c| of(*c))).collect()
}

/// Texts escape as in JSON.
fn quoted(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut raw = String::new();
    raw.extend(chars.next());
    loop {
        match chars.next() {
            Some('"') => {
                raw.push('"');
                return serde_json::from_str(&raw).map_err(|e| e.to_string());
            }
            Some('\\') => {
                raw.push('\\');
                raw.extend(chars.next());
            }
            Some(c) => raw.push(c),
            None => return Err("Syntax Error: unterminated text".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_operation_is_read_with_its_variables() {
        let text =
            "query Q($a: Int!, $b: [String]) { x: getIt(n: $a, l: [\"q\\\"\", $b], o: {k: true}) { id s { n } } }";
        let read = parse(text, &json!({ "a": 3, "b": ["z"] })).unwrap();
        assert!(!read.mutation);
        let [field] = read.fields.as_slice() else { panic!("{read:?}") };
        assert_eq!((field.alias.as_str(), field.name.as_str()), ("x", "getIt"));
        assert_eq!(Value::Object(field.args.clone()), json!({ "n": 3, "l": ["q\"", ["z"]], "o": { "k": true } }));
        let shown = project(&json!([{ "id": 1, "s": { "n": 2, "m": 3 }, "t": 4 }]), &field.select);
        assert_eq!(shown, Ok(json!([{ "id": 1, "s": { "n": 2 } }])));
        assert!(project(&json!({ "id": 1, "s": null }), &field.select).is_ok());
        assert!(project(&json!({ "id": { "a": 1 }, "s": null }), &field.select).is_err());
        assert!(project(&json!({ "s": null }), &field.select).is_err());
        assert!(parse(text, &json!({ "b": [] })).is_err(), "a is needed");
        assert!(parse("mutation { a", &json!({})).is_err());
    }
}
