//! The keys of a generic target, read into calls that are ready to be made. Everything is checked here: a mistake never waits
//! for the first write. Must not make calls.

use std::collections::BTreeSet;

use http::Method;
use serde_json::Value;

use super::calls::{CallSpec, ListSpec, Pointer, need_pointer, pointer};
use super::template::{Body, Place};
use crate::foreign::options::{OptionError, Options};
use crate::foreign::probe::CallsDigest;

/// What each outcome can say.
const OF_ENTRY: &[Place] = &[
    Place::Case,
    Place::Title,
    Place::Status,
    Place::StatusJson,
    Place::DurationMs,
    Place::DurationS,
    Place::Message,
    Place::Comment,
    Place::Marker,
    Place::Id,
    Place::AtMs,
    Place::AtS,
    Place::At,
    Place::Cycle,
    Place::Project,
];
const OF_BATCH: &[Place] = &[Place::Entries, Place::Cycle, Place::Project];
const OF_LIST: &[Place] = &[Place::Cycle, Place::Project, Place::Offset, Place::Page, Place::Cursor];
const OF_FIND: &[Place] = &[Place::Tag, Place::Name, Place::Project, Place::Offset, Place::Page, Place::Cursor];
const OF_CREATE: &[Place] = &[Place::Tag, Place::Name, Place::Link, Place::Project];
const OF_ROW: &[Place] = &[Place::Row, Place::Cycle, Place::Project];
const OF_CYCLE: &[Place] = &[Place::Cycle, Place::Project];

/// Most outcomes of one call.
const BATCH_MAX: u64 = 10_000;

/// Several outcomes in one call.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) max: usize,
    pub(super) atomic: bool,
    /// One outcome.
    pub(super) item: Body,
    /// Where the answer lists them, in the order sent.
    pub(super) rows_at: Option<Pointer>,
    /// What one of them has if it was refused.
    pub(super) error_at: Option<Pointer>,
}

/// How outcomes are written.
#[derive(Debug)]
pub(super) struct WriteSpec {
    pub(super) call: CallSpec,
    pub(super) batch: Option<Batch>,
    pub(super) id_at: Option<Pointer>,
}

impl WriteSpec {
    /// What the call says of an outcome.
    pub(super) fn places(&self) -> BTreeSet<Place> {
        let mut places = self.call.places();
        if let Some(batch) = &self.batch {
            batch.item.places(&mut places);
        }
        places
    }

    fn read(mut options: Options) -> Result<Self, OptionError> {
        let max = match options.value("batch") {
            None | Some(Value::Bool(false)) => None,
            Some(value) => Some(value.as_u64().filter(|max| (1..=BATCH_MAX).contains(max)).ok_or_else(|| {
                options.wrong("batch", format!("it is false, or how many outcomes a call takes, 1 to {BATCH_MAX}"))
            })?),
        };
        let call = CallSpec::read(&mut options, Method::POST, if max.is_some() { OF_BATCH } else { OF_ENTRY })?;
        let batch = max.map(|max| Batch::read(&mut options, max as usize, &call)).transpose()?;
        let spec = Self { id_at: pointer(&mut options, "id-at")?, batch, call };
        options.finish()?;
        Ok(spec)
    }
}

impl Batch {
    fn read(options: &mut Options, max: usize, call: &CallSpec) -> Result<Self, OptionError> {
        if !call.places().contains(&Place::Entries) {
            return Err(options.wrong("body", "a batch needs {entries}, where the outcomes stand as an array"));
        }
        let item = options.need("body-item", "one outcome of a batch, as it stands in {entries}")?;
        let item = Body::parse(&item, OF_ENTRY).map_err(|why| options.wrong("body-item", why))?;
        Ok(Self {
            max,
            item,
            atomic: options.flag("atomic")?.unwrap_or(false),
            rows_at: pointer(options, "rows-at")?,
            error_at: pointer(options, "error-at")?,
        })
    }
}

/// How a cycle's outcomes are read.
#[derive(Debug)]
pub(super) struct ReadSpec {
    pub(super) list: ListSpec,
    pub(super) row_at: Pointer,
    pub(super) case_at: Pointer,
    pub(super) status_at: Pointer,
    pub(super) marker_at: Option<Pointer>,
    pub(super) text_at: Option<Pointer>,
    pub(super) time_at: Option<Pointer>,
    pub(super) cycle_at: Option<Pointer>,
    pub(super) missing_is_empty: bool,
    pub(super) newest_first: bool,
}

impl ReadSpec {
    fn read(mut options: Options) -> Result<Self, OptionError> {
        let spec = Self {
            list: ListSpec::read(&mut options, OF_LIST)?,
            row_at: need_pointer(&mut options, "row-at", "where a row has its id")?,
            case_at: need_pointer(&mut options, "case-at", "where a row has its case")?,
            status_at: need_pointer(&mut options, "status-at", "where a row has its verdict")?,
            marker_at: pointer(&mut options, "marker-at")?,
            text_at: pointer(&mut options, "text-at")?,
            time_at: pointer(&mut options, "time-at")?,
            cycle_at: pointer(&mut options, "cycle-at")?,
            missing_is_empty: options.flag("missing-is-empty")?.unwrap_or(false),
            newest_first: options.flag("newest-first")?.unwrap_or(false),
        };
        if spec.cycle_at.is_none() && !spec.list.call.places().contains(&Place::Cycle) {
            let why = "it must hold {cycle}, or cycle-at must say where a row has its cycle";
            return Err(options.wrong("path", why));
        }
        options.finish()?;
        Ok(spec)
    }
}

/// How a cycle is found by its tag.
#[derive(Debug)]
pub(super) enum FindSpec {
    /// A list, with where the tag stands.
    Listed { list: ListSpec, tag_at: Pointer, show: Shown },
    /// One cycle at an address of its own; `404` if it is not there.
    Single { call: CallSpec, show: Shown },
}

/// Where a cycle has what.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) id: Option<Pointer>,
    pub(super) name: Option<Pointer>,
    pub(super) closed: Option<Pointer>,
}

/// Cycles of the service.
#[derive(Debug)]
pub(super) struct CycleSpec {
    pub(super) find: FindSpec,
    pub(super) create: CallSpec,
    pub(super) id_at: Option<Pointer>,
}

impl CycleSpec {
    fn read(mut find: Options, mut create: Options) -> Result<Self, OptionError> {
        let show = Shown {
            id: pointer(&mut find, "id-at")?,
            name: pointer(&mut find, "name-at")?,
            closed: pointer(&mut find, "closed-at")?,
        };
        let tag_is_id = show.id.is_none();
        let found = match pointer(&mut find, "tag-at")? {
            Some(tag_at) => FindSpec::Listed { list: ListSpec::read(&mut find, OF_FIND)?, tag_at, show },
            None => FindSpec::Single { call: CallSpec::read(&mut find, Method::GET, OF_FIND)?, show },
        };
        if let FindSpec::Single { call, .. } = &found
            && !call.places().contains(&Place::Tag)
        {
            return Err(find.wrong("path", "it must hold {tag}, or tag-at must say where a listed cycle has its tag"));
        }
        find.finish()?;
        let call = CallSpec::read(&mut create, Method::POST, OF_CREATE)?;
        if !call.places().contains(&Place::Tag) {
            return Err(create.wrong("body", "it must hold {tag}: a cycle is found again by it"));
        }
        let id_at = pointer(&mut create, "id-at")?;
        if tag_is_id != id_at.is_none() {
            return Err(
                create.wrong("id-at", "find-cycle and create-cycle have it both, or none where the tag is the id")
            );
        }
        create.finish()?;
        Ok(Self { find: found, create: call, id_at })
    }
}

/// How the service words its errors.
#[derive(Debug)]
pub(super) struct ErrorSpec {
    pub(super) message_at: Vec<Pointer>,
    /// What its words hold if it is there already.
    pub(super) exists: Option<String>,
    /// What its words hold if what is written to takes nothing more.
    pub(super) gone: Option<String>,
    /// Errors come with a status of success too.
    pub(super) in_success: bool,
}

impl ErrorSpec {
    pub(super) fn read(options: Option<Options>) -> Result<Self, OptionError> {
        let usual = ["/error/message", "/error", "/message", "/detail"];
        let mut options = options.unwrap_or_default();
        let message_at = match pointer(&mut options, "message-at")? {
            Some(at) => vec![at],
            None => usual.iter().filter_map(|at| Pointer::parse(at, "errors.message-at").ok()).collect(),
        };
        let spec = Self {
            exists: options.text("exists")?,
            gone: options.text("gone")?,
            in_success: options.flag("in-success")?.unwrap_or(false),
            message_at,
        };
        options.finish()?;
        Ok(spec)
    }

    /// The error that a document tells, if it tells one.
    pub(super) fn told(&self, document: &Value) -> Option<String> {
        let told = |at: &Pointer| match at.of(document)? {
            Value::Bool(false) => None,
            Value::String(text) if text.trim().is_empty() => None,
            _ => at.text_of(document),
        };
        self.message_at.iter().find_map(told)
    }
}

/// The tables that say how the service is called, and how it is read.
const TABLES: [&str; 8] = ["write", "read", "find-cycle", "create-cycle", "amend", "delete", "delete-cycle", "errors"];

/// A digest of the tables of calls. Of headers without a place only the names count: their values may be credentials.
pub(crate) fn calls_digest(options: &Options) -> CallsDigest {
    let mut tables = serde_json::Map::new();
    for key in TABLES {
        let Some(mut table) = options.peek(key).cloned() else { continue };
        if let Some(headers) = table.get_mut("headers").and_then(Value::as_object_mut) {
            for value in headers.values_mut().filter(|value| !value.as_str().is_some_and(|text| text.contains('{'))) {
                *value = Value::Null;
            }
        }
        tables.insert(key.to_owned(), table);
    }
    CallsDigest::of(&Value::Object(tables).to_string())
}

/// All calls.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) write: WriteSpec,
    pub(super) read: Option<ReadSpec>,
    pub(super) cycles: Option<CycleSpec>,
    pub(super) amend: Option<CallSpec>,
    pub(super) delete: Option<CallSpec>,
    pub(super) delete_cycle: Option<CallSpec>,
}

impl Spec {
    pub(super) fn read(options: &mut Options) -> Result<Self, OptionError> {
        let why = "how an outcome is written: method, path and body";
        let write = options.section("write")?.ok_or(OptionError::Missing { key: "write".to_owned(), why })?;
        let cycles = match (options.section("find-cycle")?, options.section("create-cycle")?) {
            (None, None) => None,
            (Some(find), Some(create)) => Some(CycleSpec::read(find, create)?),
            (Some(_), None) => return Err(options.wrong("find-cycle", "create-cycle has to be there too")),
            (None, Some(_)) => return Err(options.wrong("create-cycle", "find-cycle has to be there too")),
        };
        let amend: Vec<Place> = [OF_ENTRY, &[Place::Row]].concat();
        Ok(Self {
            write: WriteSpec::read(write)?,
            read: options.section("read")?.map(ReadSpec::read).transpose()?,
            cycles,
            amend: of_row(options, "amend", Method::PATCH, &amend)?,
            delete: of_row(options, "delete", Method::DELETE, OF_ROW)?,
            delete_cycle: only_call(options, "delete-cycle", Method::DELETE, OF_CYCLE)?,
        })
    }
}

fn only_call(
    options: &mut Options,
    key: &str,
    usual: Method,
    places: &[Place],
) -> Result<Option<CallSpec>, OptionError> {
    let Some(mut section) = options.section(key)? else { return Ok(None) };
    let call = CallSpec::read(&mut section, usual, places)?;
    section.finish()?;
    Ok(Some(call))
}

fn of_row(options: &mut Options, key: &str, usual: Method, places: &[Place]) -> Result<Option<CallSpec>, OptionError> {
    let call = only_call(options, key, usual, places)?;
    match &call {
        Some(call) if !call.places().contains(&Place::Row) => {
            Err(options.wrong(key, "it must hold {row}, the id of the row that is meant"))
        }
        _ => Ok(call),
    }
}
