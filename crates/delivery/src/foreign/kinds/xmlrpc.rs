//! XML-RPC: a call as text, and an answer as a value. Values are those of JSON, as all that products send fits them.
//! Must not know any product, what its faults mean, or how texts travel.

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesRef, Event};
use serde_json::{Map, Value};

use crate::classify::Answer;

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 32;

/// What an answer says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    /// The call's value.
    Value(Value),
    /// The product's error.
    Fault {
        /// Its number.
        code: i64,
        /// Its words.
        text: String,
    },
}

/// The text of a call.
pub(super) fn call(method: &str, params: &[Value]) -> String {
    let mut text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<methodCall><methodName>{method}</methodName>");
    text.push_str("<params>");
    for param in params {
        text.push_str("<param>");
        put(param, &mut text);
        text.push_str("</param>");
    }
    text.push_str("</params></methodCall>\n");
    text
}

fn put(value: &Value, text: &mut String) {
    text.push_str("<value>");
    match value {
        Value::Null => text.push_str("<nil/>"),
        Value::Bool(yes) => put_scalar("boolean", if *yes { "1" } else { "0" }, text),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if i32::try_from(whole).is_ok() => put_scalar("int", &whole.to_string(), text),
            Some(whole) => put_scalar("i8", &whole.to_string(), text),
            None => put_scalar("double", &number.to_string(), text),
        },
        Value::String(string) => put_scalar("string", &escape(allowed(string)), text),
        Value::Array(all) => {
            text.push_str("<array><data>");
            for value in all {
                put(value, text);
            }
            text.push_str("</data></array>");
        }
        Value::Object(members) => {
            text.push_str("<struct>");
            for (name, value) in members {
                text.push_str("<member>");
                put_scalar("name", &escape(allowed(name)), text);
                put(value, text);
                text.push_str("</member>");
            }
            text.push_str("</struct>");
        }
    }
    text.push_str("</value>");
}

fn put_scalar(tag: &str, inner: &str, text: &mut String) {
    for piece in ["<", tag, ">", inner, "</", tag, ">"] {
        text.push_str(piece);
    }
}

/// XML has no place for most control characters, not even escaped; messages of tests are full of them.
fn allowed(text: &str) -> String {
    let fits =
        |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if fits(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// What an answer's body says; `None` if it is no answer of XML-RPC, whole.
pub(super) fn reply(body: &[u8]) -> Option<Reply> {
    let text = String::from_utf8_lossy(body);
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}').trim_start());
    reader.config_mut().expand_empty_elements = true;
    let mut decoder = Decoder { reader, depth: 0 };
    decoder.open("methodResponse")?;
    let fault = match decoder.tag()?.as_str() {
        "params" => {
            decoder.open("param")?;
            false
        }
        "fault" => true,
        _ => return None,
    };
    decoder.open("value")?;
    let value = decoder.value()?;
    // Cut short after the value, it is no answer: nobody knows what else was to come.
    for _ in 0..if fault { 2 } else { 3 } {
        decoder.close()?;
    }
    if !fault {
        return Some(Reply::Value(value));
    }
    let code = value.get("faultCode").and_then(whole)?;
    let text = match value.get("faultString")? {
        Value::String(text) => text.clone(),
        // Nitrate sends a list of texts.
        other => other.as_array()?.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; "),
    };
    Some(Reply::Fault { code, text })
}

/// The words of a fault, for judging an answer whose status says that something went wrong.
pub(super) fn words(answer: &Answer) -> Option<String> {
    match reply(&answer.body)? {
        Reply::Fault { code, text } => Some(format!("fault {code}: {text}")),
        Reply::Value(_) => None,
    }
}

/// A whole number, as products send it: PHP sends what it read in its database, which is text.
pub(super) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_i64(),
    }
}

/// A text or number as text; empty for anything else.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

enum Token {
    Open(String),
    Close,
    Text(String),
}

enum Edge {
    Open(String),
    End,
}

struct Decoder<'a> {
    reader: Reader<&'a [u8]>,
    depth: usize,
}

impl Decoder<'_> {
    fn next(&mut self) -> Option<Token> {
        loop {
            return Some(match self.reader.read_event().ok()? {
                Event::Start(tag) => Token::Open(local(tag.name().as_ref())),
                Event::End(_) => Token::Close,
                Event::Text(text) => Token::Text(text.xml10_content().into_owned()),
                Event::CData(text) => Token::Text(text.xml10_content().into_owned()),
                Event::GeneralRef(name) => Token::Text(resolved(&name)?),
                Event::Eof => return None,
                // No entity of its own is ever expanded.
                Event::DocType(_) => return None,
                _ => continue,
            });
        }
    }

    /// The next tag that opens, white space before it left out.
    fn tag(&mut self) -> Option<String> {
        match self.edge()? {
            Edge::Open(name) => Some(name),
            Edge::End => None,
        }
    }

    /// The next tag, whether it opens or is the end of the enclosing one.
    fn edge(&mut self) -> Option<Edge> {
        loop {
            match self.next()? {
                Token::Open(name) => return Some(Edge::Open(name)),
                Token::Close => return Some(Edge::End),
                Token::Text(text) if text.trim().is_empty() => {}
                Token::Text(_) => return None,
            }
        }
    }

    fn open(&mut self, name: &str) -> Option<()> {
        (self.tag()? == name).then_some(())
    }

    fn close(&mut self) -> Option<()> {
        matches!(self.edge()?, Edge::End).then_some(())
    }

    /// All text up to the end of the tag that is open.
    fn text(&mut self) -> Option<String> {
        let mut whole = String::new();
        loop {
            match self.next()? {
                Token::Text(text) => whole.push_str(&text),
                Token::Close => return Some(whole),
                Token::Open(_) => return None,
            }
        }
    }

    /// A value whose tag is open; reads up to its end.
    fn value(&mut self) -> Option<Value> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut bare = String::new();
        let value = loop {
            match self.next()? {
                Token::Text(text) => bare.push_str(&text),
                // Without a type it is text.
                Token::Close => break Value::String(bare),
                Token::Open(kind) => {
                    let value = self.typed(&kind)?;
                    self.close()?;
                    break value;
                }
            }
        };
        self.depth -= 1;
        Some(value)
    }

    fn typed(&mut self, kind: &str) -> Option<Value> {
        Some(match kind {
            "struct" => self.members()?,
            "array" => self.elements()?,
            "nil" => {
                self.close()?;
                Value::Null
            }
            "int" | "i4" | "i8" => Value::from(self.text()?.trim().parse::<i64>().ok()?),
            "boolean" => Value::Bool(matches!(self.text()?.trim(), "1" | "true")),
            "double" => Value::from(self.text()?.trim().parse::<f64>().ok()?),
            "string" | "dateTime.iso8601" | "base64" => Value::String(self.text()?),
            _ => return None,
        })
    }

    fn members(&mut self) -> Option<Value> {
        let mut members = Map::new();
        while let Edge::Open(tag) = self.edge()? {
            if tag != "member" {
                return None;
            }
            self.open("name")?;
            let name = self.text()?;
            self.open("value")?;
            members.insert(name, self.value()?);
            self.close()?;
        }
        Some(Value::Object(members))
    }

    fn elements(&mut self) -> Option<Value> {
        let mut all = Vec::new();
        self.open("data")?;
        while let Edge::Open(tag) = self.edge()? {
            if tag != "value" {
                return None;
            }
            all.push(self.value()?);
        }
        self.close()?;
        Some(Value::Array(all))
    }
}

/// A tag's name without a prefix: some servers write `ex:nil`.
fn local(name: &str) -> String {
    name.rsplit(':').next().unwrap_or(name).to_owned()
}

fn resolved(name: &BytesRef<'_>) -> Option<String> {
    if let Some(c) = name.resolve_char_ref().ok()? {
        return Some(c.to_string());
    }
    resolve_predefined_entity(&name.xml10_content()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(value: &str) -> String {
        format!("<?xml version='1.0'?>\n<methodResponse>\n<params><param>{value}</param></params></methodResponse>\n")
    }

    #[test]
    fn values_of_every_type_are_read() {
        let text = answer(
            "<value><struct>\
             <member><name>i</name><value><i4>-3</i4></value></member>\
             <member><name>b</name> <value><boolean>1</boolean></value></member>\
             <member><name>d</name><value><double>1.5</double></value></member>\
             <member><name>s</name><value>a &lt;b&gt; &#xe4; <!-- x --><![CDATA[&c]]></value></member>\
             <member><name>n</name><value><nil/></value></member>\
             <member><name>t</name><value><dateTime.iso8601>20260921T10:13:20</dateTime.iso8601></value></member>\
             <member><name>a</name><value><array><data><value/><value><array><data/></array></value></data></array></value></member>\
             </struct></value>",
        );
        let value = json!({
            "i": -3, "b": true, "d": 1.5, "s": "a <b> \u{e4} &c", "n": null, "t": "20260921T10:13:20", "a": ["", []]
        });
        assert_eq!(reply(text.as_bytes()), Some(Reply::Value(value)));
    }

    #[test]
    fn what_is_sent_comes_back_but_for_what_xml_cannot_hold() {
        let value = json!({"a<b": ["x & \"y\"\n", 7, 5_000_000_000_i64, 0.25, false, null, {"e": []}]});
        let text = call("A.b", std::slice::from_ref(&value));
        let as_answer = text.replace("methodCall", "methodResponse").replace("<methodName>A.b</methodName>", "");
        assert_eq!(reply(as_answer.as_bytes()), Some(Reply::Value(value)));
        assert!(call("A.b", &[json!("\u{1b}[31mred")]).contains("<string>\u{fffd}[31mred</string>"));
    }

    #[test]
    fn a_fault_is_read_whatever_form_its_words_have() {
        let fault = |words: &str| {
            format!(
                "<methodResponse><fault><value><struct><member><name>faultCode</name><value><int>404</int></value>\
                 </member><member><name>faultString</name>{words}</member></struct></value></fault></methodResponse>"
            )
        };
        for words in ["<value>gone</value>", "<value><array><data><value>gone</value></data></array></value>"] {
            let expected = Reply::Fault { code: 404, text: "gone".to_owned() };
            assert_eq!(reply(fault(words).as_bytes()), Some(expected));
        }
    }

    #[test]
    fn pages_and_pieces_of_answers_are_no_answers() {
        let whole = answer("<value><array><data><value><int>1</int></value></data></array></value>");
        let body = whole.trim_end();
        assert!(reply(body.as_bytes()).is_some());
        for end in 0..body.len() - "</methodResponse>".len() {
            assert_eq!(reply(&body.as_bytes()[..end]), None, "{}", &body[..end]);
        }
        assert_eq!(reply(b"<html><body>Sign in</body></html>"), None);
        assert_eq!(reply(answer("<value><wild>1</wild></value>").as_bytes()), None);
        let deep = format!("{}{}", "<value><array><data>".repeat(40), "</data></array></value>".repeat(40));
        assert_eq!(reply(answer(&deep).as_bytes()), None);
        let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\">]><methodResponse><params><param><value>&a;</value></param></params></methodResponse>";
        assert_eq!(reply(bomb.as_bytes()), None);
    }
}
