//! The expressions of GitHub's workflow language that our actions use: contexts, literals, `||`, `&&`, `!`, `==`, `!=`,
//! `toJSON`, `always`, `success`, `failure`. Anything else is an error, so that an action can't use what is not checked.

use serde_json::Value;

/// A text with `${{ … }}` in it.
pub(crate) fn interpolate(text: &str, contexts: &Value) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (inside, behind) = after.split_once("}}").unwrap_or_else(|| panic!("{text}: no end of an expression"));
        out.push_str(before);
        out.push_str(&shown(&evaluate(inside, contexts)));
        rest = behind;
    }
    out + rest
}

/// An `if`, with the success that it asks for unless it names a status itself.
pub(crate) fn condition(text: &str, contexts: &Value) -> bool {
    let plain = text.trim().trim_start_matches("${{").trim_end_matches("}}");
    let names_status = ["always()", "success()", "failure()"].iter().any(|status| plain.contains(status));
    let so_far = names_status || contexts["success"] == Value::Bool(true);
    so_far && truthy(&evaluate(plain, contexts))
}

pub(crate) fn evaluate(text: &str, contexts: &Value) -> Value {
    let mut parser = Parser { text, rest: text, contexts };
    let value = parser.either();
    assert!(parser.rest.trim().is_empty(), "{text}: {:?} is not understood", parser.rest);
    value
}

fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(yes) => *yes,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "Array".to_owned(),
        Value::Object(_) => "Object".to_owned(),
        other => crate::yaml::text(other),
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    contexts: &'a Value,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        let trimmed = self.rest.trim_start();
        let found = trimmed.strip_prefix(token);
        self.rest = found.unwrap_or(trimmed);
        found.is_some()
    }

    fn either(&mut self) -> Value {
        let mut left = self.both();
        while self.eat("||") {
            let right = self.both();
            if !truthy(&left) {
                left = right;
            }
        }
        left
    }

    fn both(&mut self) -> Value {
        let mut left = self.compared();
        while self.eat("&&") {
            let right = self.compared();
            if truthy(&left) {
                left = right;
            }
        }
        left
    }

    fn compared(&mut self) -> Value {
        let left = self.one();
        let equal = if self.eat("==") {
            true
        } else if self.eat("!=") {
            false
        } else {
            return left;
        };
        let right = self.one();
        // Absent compares as empty; texts without regard to case.
        let same = shown(&left).to_lowercase() == shown(&right).to_lowercase();
        Value::Bool(same == equal)
    }

    fn one(&mut self) -> Value {
        if self.eat("!") {
            return Value::Bool(!truthy(&self.one()));
        }
        if self.eat("(") {
            let value = self.either();
            assert!(self.eat(")"), "{}: a bracket is open", self.text);
            return value;
        }
        if self.eat("'") {
            let (inside, behind) =
                self.rest.split_once('\'').unwrap_or_else(|| panic!("{}: a quote is open", self.text));
            self.rest = behind;
            return Value::String(inside.to_owned());
        }
        let length = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
        let (name, behind) = self.rest.split_at(length.unwrap_or(self.rest.len()));
        self.rest = behind;
        match name {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "always" | "success" | "failure" | "toJSON" => self.call(name),
            _ => self.context(name),
        }
    }

    fn call(&mut self, function: &str) -> Value {
        assert!(self.eat("("), "{}: {function} is called", self.text);
        let argument = if function == "toJSON" { self.either() } else { Value::Null };
        assert!(self.eat(")"), "{}: a bracket is open", self.text);
        let success = self.contexts["success"] == Value::Bool(true);
        match function {
            "toJSON" => Value::String(serde_json::to_string_pretty(&argument).unwrap()),
            "always" => Value::Bool(true),
            "failure" => Value::Bool(!success),
            _ => Value::Bool(success),
        }
    }

    fn context(&mut self, name: &str) -> Value {
        let mut parts = name.split('.');
        let first = parts.next().unwrap();
        let known = ["github", "inputs", "steps", "matrix", "strategy"];
        assert!(known.contains(&first), "{}: {first:?} is not understood", self.text);
        parts.fold(self.contexts[first].clone(), |value, part| value.get(part).cloned().unwrap_or(Value::Null))
    }
}

#[test]
fn expressions_mean_what_they_mean_there() {
    let contexts = serde_json::json!({
        "success": false, "inputs": {"a-b": "x"}, "matrix": null, "strategy": {"job-index": 0},
        "steps": {"push": {"outputs": {"n": "7"}, "outcome": "failure"}}
    });
    let is = |text: &str, expected: &str| assert_eq!(interpolate(text, &contexts), expected, "{text}");
    is("<${{ inputs.a-b }}${{ inputs.none }}>", "<x>");
    is("${{ toJSON(matrix) }} ${{ strategy.job-index }}", "null 0");
    is("${{ steps.push.outputs.none || steps.push.outputs.n }}", "7");
    is("${{ steps.push.outputs.n == '7' && 'yes' || 'no' }}", "yes");
    assert!(!condition("steps.push.outputs.n != ''", &contexts), "a failed step before ends it");
    assert!(condition("always() && steps.push.outcome != 'skipped'", &contexts));
    assert!(!condition("always() && steps.upload.outputs.n != ''", &contexts));
}
