//! XML-RPC as servers speak it: a call is read, an answer is written; and the other way round. Must not know any vendor.

use quick_xml::Reader;
use quick_xml::escape::{escape, unescape};
use quick_xml::events::Event;
use serde_json::{Map, Value, json};

use crate::stubs::message::Answer;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Called {
    pub(super) method: String,
    pub(super) params: Vec<Value>,
}

/// An element with what is in it.
#[derive(Debug, Default)]
struct Element {
    name: String,
    text: String,
    inner: Vec<Element>,
}

/// The call that a body is.
pub(super) fn called(body: &[u8]) -> Option<Called> {
    let root = tree(&String::from_utf8_lossy(body))?;
    let call = root.child("methodCall")?;
    let params = call.child("params").map(|params| params.inner.iter()).into_iter().flatten();
    let params = params.filter_map(|param| param.child("value")).map(value).collect();
    Some(Called { method: call.child("methodName")?.text.trim().to_owned(), params })
}

/// The value that an answer gives; `None` if it is a fault, or none at all.
pub(super) fn answered(body: &[u8]) -> Option<Value> {
    let root = tree(&String::from_utf8_lossy(body))?;
    let param = root.child("methodResponse")?.child("params")?.child("param")?;
    param.child("value").map(value)
}

fn tree(text: &str) -> Option<Element> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![Element::default()];
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => open.push(Element { name: tag.name().as_ref().to_owned(), ..Element::default() }),
            Event::Empty(tag) => {
                let empty = Element { name: tag.name().as_ref().to_owned(), ..Element::default() };
                open.last_mut()?.inner.push(empty);
            }
            Event::Text(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
            Event::CData(text) => open.last_mut()?.text.push_str(&text.xml10_content()),
            Event::GeneralRef(name) => open.last_mut()?.text.push_str(&unescape(&format!("&{};", &*name)).ok()?),
            Event::End(_) => {
                let done = open.pop()?;
                open.last_mut()?.inner.push(done);
            }
            Event::Eof if open.len() == 1 => return open.pop(),
            Event::Eof => return None,
            _ => {}
        }
    }
}

impl Element {
    fn child(&self, name: &str) -> Option<&Element> {
        self.inner.iter().find(|inner| inner.name == name)
    }
}

fn value(of: &Element) -> Value {
    let Some(typed) = of.inner.first() else { return json!(of.text) };
    match typed.name.as_str() {
        "int" | "i4" | "i8" => json!(typed.text.trim().parse::<i64>().unwrap_or(0)),
        "double" => json!(typed.text.trim().parse::<f64>().unwrap_or(0.0)),
        "boolean" => json!(typed.text.trim() == "1"),
        "nil" => Value::Null,
        "array" => {
            let all = typed.child("data").map(|data| data.inner.iter()).into_iter().flatten();
            all.map(value).collect()
        }
        "struct" => {
            let member = |member: &Element| Some((member.child("name")?.text.clone(), value(member.child("value")?)));
            Value::Object(typed.inner.iter().filter_map(member).collect::<Map<_, _>>())
        }
        _ => json!(typed.text),
    }
}

/// A call, written.
pub(super) fn call(method: &str, params: &[Value]) -> String {
    let params: String = params.iter().map(|param| ["<param>", &written(param), "</param>"].concat()).collect();
    format!("{HEAD}<methodCall><methodName>{method}</methodName><params>{params}</params></methodCall>")
}

/// The answer of a call that went well.
pub(super) fn answer(value: &Value) -> Answer {
    let value = written(value);
    Answer::xml(200, &format!("{HEAD}<methodResponse><params><param>{value}</param></params></methodResponse>"))
}

/// A fault; some servers give it a status other than 200.
pub(super) fn fault(status: u16, code: i64, text: &str) -> Answer {
    let value = written(&json!({ "faultCode": code, "faultString": text }));
    Answer::xml(status, &format!("{HEAD}<methodResponse><fault>{value}</fault></methodResponse>"))
}

const HEAD: &str = "<?xml version=\"1.0\"?>\n";

fn written(value: &Value) -> String {
    let inner = match value {
        Value::Null => "<nil/>".to_owned(),
        Value::Bool(yes) => format!("<boolean>{}</boolean>", u8::from(*yes)),
        Value::Number(number) if number.is_f64() => format!("<double>{number}</double>"),
        Value::Number(number) => format!("<int>{number}</int>"),
        Value::String(text) => format!("<string>{}</string>", escape(text)),
        Value::Array(all) => format!("<array><data>{}</data></array>", all.iter().map(written).collect::<String>()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("<member><name>{}</name>{}</member>", escape(name), written(value))
            };
            format!("<struct>{}</struct>", members.iter().map(member).collect::<String>())
        }
    };
    format!("<value>{inner}</value>")
}
