//! A described list, read with all its pages. Must not know what is listed.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::calls::{ListSpec, Next, Pointer};
use super::service::Service;
use super::template::{Fill, Place};
use crate::foreign::paging::{Reading, Step};
use crate::foreign::trouble::Trouble;

/// Most pages of a list.
const PAGES_MAX: u64 = 100_000;

/// Reads a list. `id_at`: what tells its rows apart.
pub(super) async fn all(
    service: &Service,
    list: &ListSpec,
    id_at: &Pointer,
    fill: Fill<'_>,
) -> Result<Vec<Value>, Trouble> {
    let (rows, total) = match &list.next {
        Next::Offset => by_offset(service, list, id_at, fill).await?,
        _ => by_page(service, list, id_at, fill).await?,
    };
    match total {
        Some(total) if (rows.len() as u64) < total => {
            let read = rows.len();
            Err(Trouble::Unknown(format!("the list says that it has {total} rows, and shows {read} of them")))
        }
        _ => Ok(rows),
    }
}

/// One page: its rows with their ids, and how many there are in all.
struct Paged {
    rows: Vec<(String, Value)>,
    /// Now: while a list is read it may grow.
    total: Option<u64>,
    /// Where it goes on, if it says so.
    next: Option<String>,
}

/// The smallest number of rows that any page told: all of those have to be read.
fn least(told: Option<u64>, now: Option<u64>) -> Option<u64> {
    told.into_iter().chain(now).min()
}

async fn page(
    service: &Service,
    list: &ListSpec,
    id_at: &Pointer,
    fill: Fill<'_>,
    link: Option<String>,
) -> Result<Paged, Trouble> {
    let mut answer = service.read(&list.call, fill, link).await?;
    let total = list.total_at.as_ref().map(|at| number_at(&answer, at)).transpose()?;
    let next = match &list.next {
        Next::Cursor(at) | Next::Link(at) => at.text_of(&answer).filter(|next| !matches!(next.as_str(), "" | "false")),
        Next::None | Next::Offset | Next::Page(_) => None,
    };
    if !list.items_at.of(&answer).is_some_and(Value::is_array) {
        return Err(list.items_at.leads_nowhere(&answer, "array in the answer"));
    }
    let items = answer.pointer_mut(list.items_at.as_str()).map(Value::take);
    let items = if let Some(Value::Array(items)) = items { items } else { Vec::new() };
    let with_id = |item: Value| match id_at.text_of(&item) {
        Some(id) => Ok((id, item)),
        None => Err(id_at.leads_nowhere(&item, "id in a row of the list")),
    };
    Ok(Paged { rows: items.into_iter().map(with_id).collect::<Result<_, _>>()?, total, next })
}

/// A list that goes away while it is read is none that has nothing.
fn later(trouble: Trouble, is_later: bool) -> Trouble {
    match trouble {
        Trouble::Gone(what) if is_later => Trouble::Unknown(format!("a later page of the list is not there: {what}")),
        other => other,
    }
}

fn number_at(answer: &Value, at: &Pointer) -> Result<u64, Trouble> {
    let number = at.of(answer).and_then(Value::as_u64);
    number.ok_or_else(|| at.leads_nowhere(answer, "number in the answer"))
}

async fn by_offset(
    service: &Service,
    list: &ListSpec,
    id_at: &Pointer,
    fill: Fill<'_>,
) -> Result<(Vec<Value>, Option<u64>), Trouble> {
    let (mut reading, mut total) = (Reading::default(), None);
    loop {
        let offset = reading.offset();
        let fill = |place: Place| if place == Place::Offset { json!(offset) } else { fill(place) };
        let paged = page(service, list, id_at, &fill, None).await.map_err(|trouble| later(trouble, offset > 0))?;
        total = least(total, paged.total);
        if reading.take(paged.rows, None)? == Step::Done {
            return Ok((reading.rows(), total));
        }
    }
}

/// Lists that say where they go on, or whose pages are numbered.
async fn by_page(
    service: &Service,
    list: &ListSpec,
    id_at: &Pointer,
    fill: Fill<'_>,
) -> Result<(Vec<Value>, Option<u64>), Trouble> {
    let (mut rows, mut ids) = (Vec::new(), HashSet::new());
    let first = if let Next::Page(first) = list.next { first } else { 0 };
    let (mut onward, mut total): (Option<String>, Option<u64>) = (None, None);
    let mut before: Vec<String> = Vec::new();
    for number in first..first.saturating_add(PAGES_MAX) {
        let fill = |place: Place| match place {
            Place::Page => json!(number),
            Place::Cursor => json!(onward),
            other => fill(other),
        };
        let link = match &list.next {
            Next::Link(_) => onward.as_deref().map(|link| service.path_of_link(link)).transpose()?,
            _ => None,
        };
        let paged = match page(service, list, id_at, &fill, link).await {
            // Some services have no page behind the last one.
            Err(Trouble::Gone(_)) if matches!(list.next, Next::Page(_)) && number > first => return Ok((rows, total)),
            paged => paged.map_err(|trouble| later(trouble, number > first))?,
        };
        let shown: Vec<String> = paged.rows.iter().map(|(id, _)| id.clone()).collect();
        if !shown.is_empty() && shown == before {
            return Err(Trouble::Unknown(
                "a page of the list is the same as the one before: it can't be read".to_owned(),
            ));
        }
        rows.extend(paged.rows.into_iter().filter(|(id, _)| ids.insert(id.clone())).map(|(_, row)| row));
        total = least(total, paged.total);
        let next = match &list.next {
            Next::Page(_) if !shown.is_empty() => Some(String::new()),
            _ => paged.next,
        };
        if next.is_none() {
            return Ok((rows, total));
        }
        if next == onward && !matches!(list.next, Next::Page(_)) {
            return Err(Trouble::Unknown("the list goes on where the page began: it can't be read".to_owned()));
        }
        (onward, before) = (next, shown);
    }
    Err(Trouble::Unknown(format!("a list has more than {PAGES_MAX} pages")))
}
