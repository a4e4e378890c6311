//! A file as a product is asked to keep it beside a row, and as an HTTP body of parts. Must not know products or where files
//! come from.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::caller::{Call, Nature};

/// What a product shows of the files of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// It takes none, or none for this row: why, in words.
    TakesNone(String),
    /// It takes some, and lists none: one whose answer is lost is never sent again.
    Unlisted,
    /// Their names, as often as they are there.
    Names(Vec<String>),
}

/// A file for a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name there, which carries its content's digest.
    pub name: String,
    /// Its content.
    pub bytes: Bytes,
}

impl File {
    /// The media type that its name's ending stands for.
    pub fn media_type(&self) -> &'static str {
        let ending = self.name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match ending.as_str() {
            "png" => "image/png",
            "jpg" | "jpeg" => "image/jpeg",
            "gif" => "image/gif",
            "webp" => "image/webp",
            "svg" => "image/svg+xml",
            "mp4" => "video/mp4",
            "webm" => "video/webm",
            "txt" | "log" | "md" => "text/plain",
            "html" | "htm" => "text/html",
            "json" => "application/json",
            "xml" => "application/xml",
            "zip" => "application/zip",
            "pdf" => "application/pdf",
            _ => "application/octet-stream",
        }
    }
}

/// A writing `POST` of one part, a file.
pub(crate) fn post_file(path: impl Into<String>, field: &str, file: &File) -> Call {
    post_with(path, None, field, file)
}

/// A writing `POST` of a part that is JSON, if there is one, and a file (RFC 7578). The boundary is a digest of the content,
/// which can't stand in it.
pub(crate) fn post_with(path: impl Into<String>, first: Option<(&str, &Value)>, field: &str, file: &File) -> Call {
    let boundary = format!("tallyonce-{}", &blake3::hash(&file.bytes).to_hex()[..32]);
    let first = first.map(|(name, value)| {
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\nContent-Type: application/json\r\n\r\n\
             {value}\r\n"
        )
    });
    let head = format!(
        "{}--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{}\"\r\nContent-Type: {}\r\n\r\n",
        first.unwrap_or_default(),
        file.name,
        file.media_type()
    );
    let mut body = Vec::with_capacity(head.len() + file.bytes.len() + boundary.len() + 8);
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&file.bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    Call::new(Method::POST, path, Nature::Writes).typed(&format!("multipart/form-data; boundary={boundary}"), body)
}
