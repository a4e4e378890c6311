//! What a described service holds and is given: values for the places of a call, rows and cycles from its answers.
//! Must not know how calls are made.

use std::sync::PoisonError;

use domain::Status;
use domain::marker::{Found, Marker};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::calls::Pointer;
use super::config::{Batch, CycleSpec, FindSpec, ReadSpec, Shown};
use super::template::Place;
use super::{Generic, listing};
use crate::foreign::adapter::Written;
use crate::foreign::entry::{CaseId, CycleFound, CycleId, CycleWanted, Entry, Row, RowId, RowStatus};
use crate::foreign::facts::Visible;
use crate::foreign::text::{above, cut, holds_tag, without_marker};
use crate::foreign::trouble::Trouble;

/// A number of seconds since 1970 is smaller than this for thousands of years, one of milliseconds was in 1973.
const SECONDS_MAX: f64 = 1e11;

impl Generic {
    /// What a place of a call about a cycle is filled with.
    pub(super) fn of_cycle(&self, place: Place, cycle: &CycleId) -> Value {
        match place {
            Place::Cycle => json!(cycle),
            Place::Project => json!(self.project),
            _ => Value::Null,
        }
    }

    /// What a place of a call about an outcome is filled with.
    pub(super) fn of_entry(&self, place: Place, cycle: &CycleId, entry: &Entry) -> Value {
        let word = self.words.get(&entry.status).map_or(entry.status.word(), String::as_str);
        let message = entry.message.as_deref().map(str::trim).filter(|message| !message.is_empty());
        let chars_max = self.facts.marker.chars_max;
        match place {
            Place::Case => json!(entry.case),
            Place::Title => json!(entry.title),
            Place::Status => json!(word),
            Place::StatusJson => serde_json::from_str(word).unwrap_or(Value::Null),
            Place::DurationMs => json!(entry.duration_us.map(|duration| duration.0.div_ceil(1000))),
            Place::DurationS => json!(entry.duration_us.map(|duration| duration.0 as f64 / 1e6)),
            Place::Message => json!(message.map(|message| cut(message, chars_max))),
            Place::Comment => json!(above(message.unwrap_or_default(), &entry.marker.to_string(), chars_max)),
            Place::Marker => json!(entry.marker.to_string()),
            Place::Id => json!(entry.uuid()),
            Place::AtMs => json!(entry.at_ms),
            Place::AtS => json!(entry.at_ms / 1000),
            Place::At => json!(rfc3339(entry.at_ms)),
            other => self.of_cycle(other, cycle),
        }
    }

    fn of_wanted(&self, place: Place, wanted: &CycleWanted) -> Value {
        match place {
            Place::Tag => json!(wanted.tag()),
            Place::Name => json!(cut(&wanted.name, self.name_max)),
            Place::Link => json!(wanted.link),
            Place::Project => json!(self.project),
            _ => Value::Null,
        }
    }

    /// Refuses a reading in which nothing of what the service has confirmed can be known again: whatever was missing then
    /// would be sent again. Not where something was known again before: then it was taken away.
    pub(super) fn knows_again(&self, read: &ReadSpec, cycle: &CycleId, rows: &[Row]) -> Result<(), Trouble> {
        let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(proven) = confirmed.get_mut(cycle) else { return Ok(()) };
        *proven |= rows.iter().any(|row| matches!(row.marker, Found::Whole(_)));
        if *proven || read.marker_at.is_none() || self.facts.visible != Visible::AtOnce {
            return Ok(());
        }
        let shows = match rows.len() {
            0 => "no row with a verdict there".to_owned(),
            n => format!("{n} rows there, none with a marker of ours"),
        };
        Err(Trouble::Refused(format!(
            "the service has confirmed outcomes, and then shows {shows}. So nothing more is sent. Look at read.status-at, \
             read.marker-at, at what write sends the marker into, at comment-max (what is longer is cut), and at lag-ms"
        )))
    }

    /// Every row of a cycle with a verdict, oldest first.
    pub(super) async fn all_rows(&self, read: &ReadSpec, cycle: &CycleId) -> Result<Vec<Row>, Trouble> {
        let fill = |place: Place| self.of_cycle(place, cycle);
        let listed = match listing::all(&self.service, &read.list, &read.row_at, &fill).await {
            Err(Trouble::Gone(_)) if read.missing_is_empty => return Ok(Vec::new()),
            listed => listed?,
        };
        let of_cycle = |row: &&Value| match &read.cycle_at {
            Some(at) => at.text_of(row).as_deref() == Some(cycle.as_str()),
            None => true,
        };
        let rows = listed.iter().filter(of_cycle).filter_map(|row| self.row(read, row).transpose());
        let mut rows = rows.collect::<Result<Vec<Row>, Trouble>>()?;
        if read.newest_first {
            rows.reverse();
        }
        count_up(&mut rows, |row| row.id.as_str());
        Ok(rows)
    }

    fn row(&self, read: &ReadSpec, row: &Value) -> Result<Option<Row>, Trouble> {
        let Some(status) = read.status_at.text_of(row) else { return Ok(None) };
        let need = |at: &Pointer, what: &str| at.text_of(row).ok_or_else(|| at.leads_nowhere(row, what));
        let ours = Status::ALL.into_iter().find(|ours| self.words.get(ours) == Some(&status));
        let marked = read.marker_at.as_ref().and_then(|at| at.text_of(row)).unwrap_or_default();
        let text = read.text_at.as_ref().and_then(|at| at.text_of(row));
        Ok(Some(Row {
            id: RowId::new(need(&read.row_at, "id in a row")?),
            case: CaseId::new(need(&read.case_at, "case in a row")?),
            status: ours.map_or(RowStatus::Other(status), RowStatus::Is),
            marker: if marked.is_empty() { Found::Nothing } else { Marker::find(&marked) },
            at_ms: read.time_at.as_ref().and_then(|at| unix_ms(at.of(row)?)),
            text: without_marker(text.as_deref().unwrap_or(&marked)),
        }))
    }

    pub(super) async fn listed_cycles(
        &self,
        cycles: &CycleSpec,
        wanted: &CycleWanted,
    ) -> Result<Vec<CycleFound>, Trouble> {
        let fill = |place: Place| self.of_wanted(place, wanted);
        match &cycles.find {
            FindSpec::Single { call, show } => match self.service.read(call, &fill, None).await {
                Err(Trouble::Gone(_)) => Ok(Vec::new()),
                found => Ok(vec![found_cycle(&found?, show, wanted)?]),
            },
            FindSpec::Listed { list, tag_at, show } => {
                let id_at = show.id.as_ref().unwrap_or(tag_at);
                let listed = listing::all(&self.service, list, id_at, &fill).await?;
                let tag = wanted.tag();
                let ours =
                    listed.iter().filter(|cycle| tag_at.text_of(cycle).is_some_and(|text| holds_tag(&text, &tag)));
                let mut found = ours.map(|cycle| found_cycle(cycle, show, wanted)).collect::<Result<Vec<_>, _>>()?;
                count_up(&mut found, |cycle| cycle.id.as_str());
                Ok(found)
            }
        }
    }

    pub(super) async fn made_cycle(&self, cycles: &CycleSpec, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        let made = self.service.write(&cycles.create, &|place| self.of_wanted(place, wanted)).await;
        let Some(at) = &cycles.id_at else {
            return match made {
                Ok(_) | Err(Trouble::Exists(_)) => Ok(CycleId::new(wanted.tag())),
                Err(trouble) => Err(trouble),
            };
        };
        new_id(made?.as_ref(), at).map(CycleId::new)
    }

    /// What became of a batch of so many.
    pub(super) fn new_rows(&self, answer: Option<&Value>, batch: &Batch, sent: usize) -> Result<Written, Trouble> {
        let Some(at) = &batch.rows_at else { return Ok(Written { rows: vec![None; sent], ..Written::default() }) };
        let rows = answer.and_then(|answer| at.of(answer)).and_then(Value::as_array);
        let rows = rows.filter(|rows| rows.len() == sent).ok_or_else(|| {
            Trouble::Unknown(format!(
                "{sent} outcomes were sent, and the answer has no such array at {:?}",
                at.as_str()
            ))
        })?;
        let mut written = Written::default();
        for (n, row) in rows.iter().enumerate() {
            let refused = batch.error_at.as_ref().and_then(|at| at.of(row)).filter(|error| **error != json!(false));
            if let Some(error) = refused {
                written.refused.push((n, self.service.told(row).unwrap_or_else(|| error.to_string())));
                written.rows.push(None);
            } else {
                let id = match &self.spec.write.id_at {
                    Some(at) => Some(new_id(Some(row), at)?),
                    // An element may be the id itself.
                    None => (row.is_string() || row.is_number()).then(|| bare(row)),
                };
                written.rows.push(id.map(RowId::new));
            }
        }
        Ok(written)
    }
}

/// Sorts by ids if all are numbers, as those count up; of other ids the list's own order says more.
fn count_up<T>(all: &mut [T], id: impl Fn(&T) -> &str) {
    if all.iter().all(|one| id(one).parse::<u64>().is_ok()) {
        all.sort_by_key(|one| id(one).parse::<u64>().unwrap_or(u64::MAX));
    }
}

fn bare(row: &Value) -> String {
    row.as_str().map_or_else(|| row.to_string(), str::to_owned)
}

/// The id in an answer that has to have one.
pub(super) fn new_id(answer: Option<&Value>, at: &Pointer) -> Result<String, Trouble> {
    let id = answer.and_then(|answer| at.text_of(answer));
    id.ok_or_else(|| {
        let nowhere = at.leads_nowhere(answer.unwrap_or(&Value::Null), "id in the answer to a write that succeeded");
        Trouble::Unknown(nowhere.to_string())
    })
}

fn found_cycle(cycle: &Value, show: &Shown, wanted: &CycleWanted) -> Result<CycleFound, Trouble> {
    let id = match &show.id {
        Some(at) => at.text_of(cycle).ok_or_else(|| at.leads_nowhere(cycle, "id of a cycle"))?,
        None => wanted.tag(),
    };
    let name = show.name.as_ref().and_then(|at| at.text_of(cycle)).unwrap_or_else(|| wanted.name.clone());
    let closed = show.closed.as_ref().and_then(|at| at.of(cycle));
    // A flag, or the time of closing.
    let closed = closed.is_some_and(|closed| !matches!(closed, Value::Bool(false)) && *closed != json!(""));
    Ok(CycleFound { id: CycleId::new(id), name, closed })
}

fn rfc3339(ms: u64) -> Option<String> {
    let time = Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()?;
    Some(format!("{time:.3}"))
}

/// A time in seconds or milliseconds since 1970, or as RFC 3339.
fn unix_ms(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => match text.parse::<f64>() {
            Ok(number) => of_number(number),
            Err(_) => u64::try_from(text.parse::<Timestamp>().ok()?.as_millisecond()).ok(),
        },
        other => of_number(other.as_f64()?),
    }
}

fn of_number(number: f64) -> Option<u64> {
    let ms = if number < SECONDS_MAX { number * 1000.0 } else { number };
    (ms >= 0.0).then_some(ms as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_that_services_have() {
        let ms = Some(1_790_000_000_500);
        for value in [
            json!(1_790_000_000_500_u64),
            json!(1_790_000_000.5),
            json!("1790000000500"),
            json!("2026-09-21T16:13:20.5+02:00"),
        ] {
            assert_eq!(unix_ms(&value), ms, "{value}");
        }
        for value in [json!(null), json!("yesterday"), json!(-1), json!([])] {
            assert_eq!(unix_ms(&value), None, "{value}");
        }
        assert_eq!(rfc3339(1_790_000_000_500).as_deref(), Some("2026-09-21T14:13:20.500Z"));
    }
}
