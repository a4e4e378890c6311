//! The list of formats, and the one way to open a report. A new format is one file here, one line in [`Format`], one in
//! `detect`. Must not know what becomes of the outcomes.

pub(crate) mod junit;

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use crate::ReadOptions;
use crate::decode;
use crate::detect::{self, Detected};
use crate::error::ReportError;
use crate::event::Reader;
use crate::source::{self, Fault};
use crate::xml::Cursor;

/// A report format that this version reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JUnit XML, all dialects.
    Junit,
}

impl Format {
    /// All formats, for messages and help.
    pub const ALL: [Format; 1] = [Format::Junit];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Junit => f.write_str("junit"),
        }
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Format::ALL.map(|f| f.to_string()).join(", ");
        Format::ALL
            .into_iter()
            .find(|f| f.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("unknown report format {text:?}; one of: {}", known()))
    }
}

/// The bytes under every reader: inflated, UTF-8.
pub(crate) type Input<'a> = Box<dyn Read + 'a>;

/// Opens one report of any format, recognised by its content; `name` is for messages only.
pub fn open<'a, R: Read + 'a>(
    name: &str,
    input: R,
    options: &ReadOptions,
) -> Result<Box<dyn Reader + 'a>, ReportError> {
    let inflated = source::inflated(name, input, options.inflated_bytes_max)?;
    let decoded = decode::utf8(inflated).map_err(|e| beginning(name, e))?;
    let mut cursor = Cursor::new(decoded.bytes);
    // Only one format is read so far, so a wish for one needs no check beyond recognising it.
    match detect::detect(name, &mut cursor)? {
        Detected::Junit { text_in_front } => {
            let mut reader = junit::Junit::new(name, cursor, options.attachments);
            if let Some(warning) = decoded.warning {
                reader.warn(None, warning);
            }
            if text_in_front {
                reader.warn(Some(1), "there is text in front of the report; it was skipped".to_owned());
            }
            Ok(Box::new(reader))
        }
    }
}

/// An input error at the very beginning: nothing was read that could be kept.
pub(crate) fn beginning(name: &str, error: std::io::Error) -> ReportError {
    let file = name.to_owned();
    match error.get_ref().and_then(|e| e.downcast_ref::<Fault>()) {
        Some(Fault::TooLarge(limit)) => ReportError::TooLarge { file, limit: *limit },
        Some(Fault::Inflate(what)) => ReportError::BadCompression { file, what: what.clone() },
        None => ReportError::Io { file, source: error },
    }
}
