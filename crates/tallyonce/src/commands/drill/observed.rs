//! What a server, and where it is ours its tables, hold after a drill, in plain values.
//! Must not compare it with what was pushed: `audit` does.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;

use delivery::Destination;
use domain::listing::PushState;
use domain::{CycleName, ProblemCode, ProjectId, Status};
use proof::oracle::Oracle;

use crate::failure::Failure;
use crate::repository::{self, Reader};

/// Everything that was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Observed {
    /// Rounds by id.
    pub rounds: BTreeMap<String, Round>,
    /// What the tables say by themselves; absent for a server that is not ours.
    pub tables: Option<Tables>,
}

/// One round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Round {
    /// How many items it counts.
    pub total: u64,
    /// Deliveries that were answered from a receipt.
    pub repeats: u64,
    /// Its pushes by key.
    pub pushes: BTreeMap<String, PushSeen>,
    /// Its items, as listed.
    pub items: Vec<ItemSeen>,
}

/// One push.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PushSeen {
    /// How many items it counts.
    pub total: u64,
    /// Its newest revision.
    pub revision: u32,
    /// Deliveries that were accepted.
    pub deliveries: u64,
    /// A second leg was refused under its key.
    pub contested: bool,
}

/// One listed item.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ItemSeen {
    /// Its name as text.
    pub item: String,
    /// What counts.
    pub status: Status,
    /// Passed after a failed execution.
    pub flaky: bool,
    /// The push that says so.
    pub key: String,
    /// Pushes of the round that hold it.
    pub pushes: u32,
}

/// What the independent reader and `check-store` say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tables {
    /// What is there twice, in words.
    pub doubles: Vec<String>,
    /// Contradictions, in words.
    pub damage: Vec<String>,
    /// Status of each item, by round, key and item; absent where the tables can't be read (which is damage).
    pub items: Option<BTreeMap<(String, String, String), Option<Status>>>,
}

/// Asks the server for all rounds, pushes and items of a cycle.
///
/// # Errors
/// It gives no answer. That nothing is there is an answer.
pub(super) async fn ask(reader: &Reader, project: &ProjectId, cycle: &CycleName) -> Result<Observed, Failure> {
    let report = match reader.cycle(project, cycle, "all").await {
        Ok(report) => report,
        Err(failure) if is_absence(&failure) => return Ok(Observed::default()),
        Err(failure) => return Err(failure),
    };
    let mut observed = Observed::default();
    for found in report.rounds {
        let pushes = found.pushes.iter().map(|push| {
            let contested = push.state == PushState::Contested;
            let (total, revision, deliveries) = (push.counts.total, push.revision, push.deliveries);
            (push.key.to_string(), PushSeen { total, revision, deliveries, contested })
        });
        let items = reader.items(project, cycle, found.round.as_str(), None).await?;
        let items = items.into_iter().filter(|item| item.round == found.round).map(|item| ItemSeen {
            item: item.item.to_string(),
            status: item.status,
            flaky: item.flaky,
            key: item.key.to_string(),
            pushes: item.pushes,
        });
        let round = Round {
            total: found.counts.total,
            repeats: found.repeats,
            pushes: pushes.collect(),
            items: items.collect(),
        };
        observed.rounds.insert(found.round.to_string(), round);
    }
    Ok(observed)
}

fn is_absence(failure: &Failure) -> bool {
    matches!(failure.code, Some(ProblemCode::UnknownProject | ProblemCode::NotFound))
}

/// Reads the tables with the independent reader, and lets the store judge itself. What can't be read is damage.
pub(super) async fn read_tables(store: &Path, project: &str, cycle: &str, rounds: &[String]) -> Tables {
    let mut tables = Tables::default();
    if let Err(words) = read_with_oracle(&mut tables, store, project, cycle, rounds) {
        tables.damage.push(words);
    }
    match check(store).await {
        Ok(damage) => tables.damage.extend(damage),
        Err(failure) => tables.damage.push(failure.what),
    }
    tables
}

fn read_with_oracle(
    tables: &mut Tables,
    store: &Path,
    project: &str,
    cycle: &str,
    rounds: &[String],
) -> Result<(), String> {
    let oracle = Oracle::open(store).map_err(|error| format!("{error:#}"))?;
    tables.doubles = oracle.doubles().map_err(|error| format!("{error:#}"))?;
    let mut items = BTreeMap::new();
    for round in rounds {
        for row in oracle.outcomes(project, cycle, round).map_err(|error| format!("{round}: {error:#}"))? {
            items.insert((round.clone(), row.key, row.item), Status::from_str(&row.status).ok());
        }
    }
    tables.items = Some(items);
    Ok(())
}

async fn check(store: &Path) -> Result<Vec<String>, Failure> {
    let damage = repository::existing(&Destination::Sqlite(store.to_owned()))?.check().await;
    let damage = damage.map_err(|error| Failure::store(&error))?;
    Ok(damage.into_iter().map(|found| format!("{}: {}: {}", found.kind, found.place, found.what)).collect())
}
