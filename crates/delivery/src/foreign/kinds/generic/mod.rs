//! A service of one's own: HTTP calls and JSON answers that the configuration describes, for services that are small and
//! that nobody else knows. Must not know strategies, nor any product.

mod calls;
mod config;
mod listing;
mod promise;
mod rows;
mod service;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use domain::{ItemName, Status};
use http::HeaderName;
use serde_json::{Value, json};

use super::OpenError;
use crate::clock::Clock;
use crate::foreign::adapter::{Adapter, Closing, Listing, Written};
use crate::foreign::caller::Caller;
use crate::foreign::entry::{
    Case, CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, Row, RowId,
};
use crate::foreign::facts::{Facts, Strategy};
use crate::foreign::options::{OptionError, Options};
use crate::foreign::settings::TargetSettings;
use crate::foreign::text::cut;
use crate::foreign::trouble::Trouble;
use crate::secret::Secret;
use calls::CallSpec;
pub(crate) use config::calls_digest;
use config::{ErrorSpec, Spec};
use promise::Claims;
pub(crate) use promise::FACTS;
use service::Service;
use template::Place;

/// How an item that no mapping names becomes a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// Its suite, class and name, within so many characters.
    Name(usize),
    /// `item` and 32 hexadecimal digits.
    Hash,
    /// Not at all.
    Mapping,
}

/// A described service.
#[derive(Debug)]
pub(crate) struct Generic {
    service: Service,
    spec: Spec,
    facts: Facts,
    project: String,
    naming: Naming,
    /// Most characters of a cycle's name.
    name_max: usize,
    words: BTreeMap<Status, String>,
    /// Cycles into which the service has confirmed an outcome: true once a marker of ours was read there, whole.
    confirmed: Mutex<BTreeMap<CycleId, bool>>,
}

/// Reads all keys. What is wrong with any is said now, not at the first write.
pub(crate) fn open(mut settings: TargetSettings, caller: Caller, clock: Arc<dyn Clock>) -> Result<Generic, OpenError> {
    let mut options = std::mem::take(&mut settings.options);
    let claims = Claims::read(&mut options)?;
    let naming = naming(&mut options)?;
    let name_max = options.number("name-max")?.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
    let auth = options.text("auth")?;
    let spec = Spec::read(&mut options)?;
    let errors = ErrorSpec::read(options.section("errors")?)?;
    options.finish()?;
    let facts = claims.facts(&spec, settings.strategy)?;
    let words = words(&settings, &spec)?;
    let caller = authorised(caller, &settings, auth.as_deref())?.paced(claims.rate, clock);
    let service = Service::new(caller, errors);
    Ok(Generic {
        service,
        spec,
        facts,
        project: settings.project,
        naming,
        name_max,
        words,
        confirmed: Mutex::default(),
    })
}

fn naming(options: &mut Options) -> Result<Naming, OptionError> {
    let max = options.number("case-max")?;
    match options.text("case")?.as_deref() {
        None | Some("name") => match max {
            None => Ok(Naming::Name(usize::MAX)),
            Some(max) if max as usize > HASH_CHARS => Ok(Naming::Name(max as usize)),
            Some(_) => Err(options.wrong("case-max", format!("a shorter name ends with {HASH_CHARS} characters"))),
        },
        Some("hash") => Ok(Naming::Hash),
        Some("mapping") => Ok(Naming::Mapping),
        Some(_) => Err(options.wrong("case", "it is one of name, hash and mapping")),
    }
}

/// The service's word for each status.
fn words(settings: &TargetSettings, spec: &Spec) -> Result<BTreeMap<Status, String>, OptionError> {
    let word = |status: Status| settings.status(status).unwrap_or(status.word()).to_owned();
    let words: BTreeMap<Status, String> = Status::ALL.map(|status| (status, word(status))).into();
    let amended = spec.amend.as_ref().is_some_and(|call| call.places().contains(&Place::StatusJson));
    if amended || spec.write.places().contains(&Place::StatusJson) {
        for (status, word) in &words {
            if serde_json::from_str::<Value>(word).is_err() {
                let key = format!("statuses.{status}");
                let why = format!("{word:?} is no JSON, and {{status_json}} sends it as such: a number, true or false");
                return Err(OptionError::Wrong { key, why });
            }
        }
    }
    Ok(words)
}

/// `auth`: bearer, basic, none, or a header such as `X-Api-Key: {token}`.
fn authorised(caller: Caller, settings: &TargetSettings, auth: Option<&str>) -> Result<Caller, OpenError> {
    let token = || settings.token.as_ref().ok_or(OpenError::Credential("token"));
    let wrong = |why: &str| OptionError::Wrong { key: "auth".to_owned(), why: why.to_owned() };
    match auth.unwrap_or("bearer") {
        "none" => Ok(caller),
        "bearer" => Ok(caller.bearer(token()?)?),
        "basic" => {
            let user = settings.user.as_deref().ok_or(OpenError::Credential("user"))?;
            Ok(caller.basic(user, token()?)?)
        }
        header => {
            let (name, value) = header
                .split_once(':')
                .filter(|(_, value)| value.contains("{token}"))
                .ok_or_else(|| wrong("it is bearer, basic, none, or a header such as \"X-Api-Key: {token}\""))?;
            let name = HeaderName::try_from(name.trim()).map_err(|_| wrong("it begins with no name of a header"))?;
            Ok(caller.always(name, &with_token(value.trim(), token()?))?)
        }
    }
}

fn with_token(value: &str, token: &Secret) -> String {
    value.replace("{token}", token.expose())
}

/// Characters of what stands for the rest of a name that is too long.
const HASH_CHARS: usize = 33;

/// An item's name as a case. The same for ever: rows are found by it.
fn case_name(item: &ItemName, chars_max: usize) -> String {
    let mut parts: Vec<&str> = item.suite().collect();
    parts.extend(item.class());
    parts.push(item.name());
    let ordinal = if item.ordinal() > 0 { format!(" #{}", item.ordinal() + 1) } else { String::new() };
    let whole = format!("{}{ordinal}", parts.join(" > "));
    if whole.chars().count() <= chars_max {
        return whole;
    }
    format!("{}~{}", cut(&whole, chars_max.saturating_sub(HASH_CHARS)), item.hash())
}

impl Generic {
    fn case(&self, wanted: &CaseWanted<'_>) -> CaseChoice {
        let id = match (wanted.mapped, self.naming) {
            (Some(mapped), _) => mapped.clone(),
            (None, Naming::Name(chars_max)) => CaseId::new(case_name(wanted.item, chars_max)),
            (None, Naming::Hash) => CaseId::new(format!("item{}", wanted.item.hash())),
            (None, Naming::Mapping) => {
                return CaseChoice::Unmatched {
                    why: "no line of the mapping file names this item, and case = \"mapping\"".to_owned(),
                };
            }
        };
        CaseChoice::Known(Case { id, title: wanted.item.to_string() })
    }
}

impl Generic {
    async fn written(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let write = &self.spec.write;
        match (&write.batch, batch) {
            (_, []) => Ok(Written::default()),
            (None, [entry]) => {
                let answer = self.service.write(&write.call, &|place| self.of_entry(place, cycle, entry)).await?;
                let id = write.id_at.as_ref().map(|at| rows::new_id(answer.as_ref(), at)).transpose()?;
                Ok(Written { rows: vec![id.map(RowId::new)], ..Written::default() })
            }
            (None, _) => Err(Trouble::TooLarge("the service takes one outcome a call".to_owned())),
            (Some(several), _) => {
                let one = |entry: &Entry| {
                    several.item.filled(&|place| self.of_entry(place, cycle, entry), write.call.omit_null)
                };
                let entries: Value = batch.iter().map(one).collect();
                let fill = |place: Place| match place {
                    Place::Entries => entries.clone(),
                    other => self.of_cycle(other, cycle),
                };
                let answer = self.service.write(&write.call, &fill).await?;
                self.new_rows(answer.as_ref(), several, batch.len())
            }
        }
    }
}

/// A call that only some services have.
fn call_for<'a>(call: Option<&'a CallSpec>, key: &str) -> Result<&'a CallSpec, Trouble> {
    call.ok_or_else(|| Trouble::Refused(format!("the target's configuration says no [{key}]")))
}

#[async_trait]
impl Adapter for Generic {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn held_back_ms(&self, calls: usize) -> u64 {
        self.service.held_back_ms(calls)
    }

    fn own_cases(&self, wanted: &[CaseWanted<'_>]) -> Option<Vec<CaseChoice>> {
        Some(wanted.iter().map(|wanted| self.case(wanted)).collect())
    }

    async fn find_cycles(&self, wanted: &CycleWanted) -> Result<Vec<CycleFound>, Trouble> {
        let as_it_is = |id: CycleId| CycleFound { name: id.to_string(), id, closed: false };
        match (&wanted.given, &self.spec.cycles) {
            (Some(given), _) => Ok(vec![as_it_is(given.clone())]),
            // The service makes a cycle by its first outcome: the tag is its id.
            (None, None) => Ok(vec![as_it_is(CycleId::new(wanted.tag()))]),
            (None, Some(cycles)) => self.listed_cycles(cycles, wanted).await,
        }
    }

    fn tells_cycles(&self) -> bool {
        false
    }

    async fn create_cycle(&self, wanted: &CycleWanted) -> Result<CycleId, Trouble> {
        match &self.spec.cycles {
            None => Ok(CycleId::new(wanted.tag())),
            Some(cycles) => self.made_cycle(cycles, wanted).await,
        }
    }

    async fn add_cases(&self, _cycle: &CycleId, _cases: &[CaseId]) -> Result<Vec<(CaseId, String)>, Trouble> {
        Ok(Vec::new())
    }

    fn keeps_to_its_cycle(&self) -> Result<(), String> {
        if self.spec.write.places().contains(&Place::Cycle) {
            return Ok(());
        }
        Err("[write] says {cycle} nowhere, so all of it would come into the place that pushes are written into; put {cycle} \
             into its path, body or headers where the service takes one, or go without a probe"
            .to_owned())
    }

    fn listing(&self) -> Listing {
        // Rows that don't say whose they are can't be told apart: an id of ours is then all there is.
        let told_apart = self.spec.read.as_ref().is_some_and(|read| read.marker_at.is_some());
        if told_apart || (self.spec.read.is_some() && self.facts.default_strategy() != Strategy::Idempotent) {
            Listing::Cycle
        } else {
            Listing::Nothing
        }
    }

    async fn rows(&self, cycle: &CycleId, cases: &[CaseId]) -> Result<Vec<Row>, Trouble> {
        let Some(read) = &self.spec.read else {
            return Err(Trouble::Refused("the target's configuration says no [read]".to_owned()));
        };
        let mut rows = self.all_rows(read, cycle).await?;
        self.knows_again(read, cycle, &rows)?;
        let cases: BTreeSet<&CaseId> = cases.iter().collect();
        rows.retain(|row| cases.is_empty() || cases.contains(&row.case));
        Ok(rows)
    }

    async fn write(&self, cycle: &CycleId, batch: &[Entry]) -> Result<Written, Trouble> {
        let written = self.written(cycle, batch).await?;
        if written.refused.len() < batch.len() {
            let mut confirmed = self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
            confirmed.entry(cycle.clone()).or_default();
        }
        Ok(written)
    }
    async fn amend(&self, cycle: &CycleId, row: &RowId, entry: &Entry) -> Result<(), Trouble> {
        let call = call_for(self.spec.amend.as_ref(), "amend")?;
        let fill = |place: Place| match place {
            Place::Row => json!(row),
            other => self.of_entry(other, cycle, entry),
        };
        self.service.write(call, &fill).await.map(drop)
    }

    async fn delete(&self, cycle: &CycleId, row: &RowId) -> Result<(), Trouble> {
        let call = call_for(self.spec.delete.as_ref(), "delete")?;
        let fill = |place: Place| match place {
            Place::Row => json!(row),
            other => self.of_cycle(other, cycle),
        };
        self.service.delete(call, &fill).await
    }

    async fn close_cycle(&self, _cycle: &CycleId, _why: Closing) -> Result<(), Trouble> {
        Ok(())
    }

    async fn delete_cycle(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let call = call_for(self.spec.delete_cycle.as_ref(), "delete-cycle")?;
        self.service.delete(call, &|place| self.of_cycle(place, cycle)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cases_are_stable_for_ever() {
        let item = ItemName::new(["shop", "cart"], Some("Adds"), "one").with_ordinal(1);
        assert_eq!(case_name(&item, 100), "shop > cart > Adds > one #2");
        let long = ItemName::new(["shop", "cart"], None, "puts one more of the same into it");
        let short = case_name(&long, 40);
        assert_eq!(short, format!("shop > ~{}", long.hash()));
        assert_eq!(short.chars().count(), 40);
    }
}
