//! The smallest vendor: `POST /rows/ITEM` with a text as body, `POST /bulk` with `{"rows": [[ITEM, TEXT]]}`,
//! `GET /rows`, `POST /once/ITEM` that checks, then inserts; `POST /jobs/ITEM` and `GET /jobs/ID`.

use proof::stubs::{
    Answer, Call, Door, JobState, Jobs, Kind, Ledger, Rate, RecordedRow, Repeat, Request, Rows, Rule, Stamp, Told,
    Turn, Vendor,
};
use serde_json::{Value, json};

use crate::client::{Client, Sight, once};

pub(crate) type Row = (String, String);

pub(crate) struct Toy {
    pub(crate) rows: Rows<Row>,
    jobs: Jobs<Row>,
}

impl Toy {
    pub(crate) fn new(rule: Rule) -> Self {
        Self { rows: Rows::new(rule, 1), jobs: Jobs::default() }
    }

    pub(crate) fn appending() -> Self {
        Self::new(Rule::honest(Repeat::Append))
    }

    fn write(&mut self, call: &Call<'_>, item: &str, text: &str) -> Answer {
        let row = (item.to_owned(), call.kept(text));
        match self.rows.write(call.now, row, |(other, _)| other == item) {
            Told::Added(id) => Answer::json(201, &json!({ "id": id })),
            Told::Replaced(id) | Told::Collapsed(id) => Answer::json(200, &json!({ "id": id })),
            Told::Refused(id) => Answer::json(409, &json!({ "id": id })),
        }
    }
}

impl Vendor for Toy {
    fn handle(&mut self, call: &Call<'_>) -> Turn<Self> {
        let text = String::from_utf8_lossy(&call.request.body).into_owned();
        let (method, path) = call.request.route();
        match (method, path.as_slice()) {
            ("POST", ["rows", item]) => self.write(call, item, &text).into(),
            ("POST", ["bulk"]) => {
                let body = call.request.json();
                for row in body["rows"].as_array().into_iter().flatten() {
                    self.write(call, row[0].as_str().unwrap(), row[1].as_str().unwrap());
                }
                Answer::empty(204).into()
            }
            ("POST", ["once", item]) => {
                if self.rows.iter().any(|row| row.data.0 == *item) {
                    return Answer::json(200, &json!("there")).into();
                }
                let item = (*item).to_owned();
                Turn::gap("once", move |toy: &mut Self, call| {
                    toy.rows.push(call.now, (item, String::new()));
                    Answer::json(201, &json!("made")).into()
                })
            }
            ("GET", ["rows"]) => {
                let seen: Vec<_> = self.rows.shown(call).collect();
                let offset = call.request.number("offset").unwrap_or(0) as usize;
                let limit = call.request.number("limit").unwrap_or(100) as usize;
                let page: Vec<Value> = call.page(&seen, offset, limit).iter().map(|(_, row)| json!(row)).collect();
                Answer::json(200, &json!({ "rows": page, "now": call.unix_ms() })).into()
            }
            ("POST", ["jobs", item]) => {
                let id = self.jobs.accept(call, ((*item).to_owned(), text));
                Answer::json(202, &json!({ "job": id })).into()
            }
            ("GET", ["jobs", id]) => match self.jobs.poll(id.parse().unwrap()) {
                Some(JobState::Pending) => Answer::text(200, "pending").into(),
                Some(JobState::Done) => Answer::text(200, "done").into(),
                Some(JobState::Failed) => Answer::text(200, "failed").into(),
                None => self.problem(404, "no such job").into(),
            },
            _ => self.problem(404, "no such path").into(),
        }
    }

    fn classify(&self, request: &Request) -> Kind {
        let what = request.route().1.first().copied().unwrap_or_default().to_owned();
        if request.method == "GET" { Kind::Read(what) } else { Kind::Write(what) }
    }

    fn ledger(&self) -> Ledger {
        let row = |row: &proof::stubs::Row<Row>| RecordedRow {
            id: row.id.to_string(),
            marker: row.data.1.clone(),
            order: row.created.order,
            created_ms: row.created.unix_ms,
            ..RecordedRow::default()
        };
        self.rows.iter().map(|one| (one.data.0.clone(), row(one))).collect()
    }

    fn part(&self, request: &Request, count: usize) -> Option<Request> {
        request.with_first("/rows", count)
    }

    fn settle(&mut self, now: Stamp) {
        for (_, row) in self.jobs.due(now) {
            self.rows.push(now, row);
        }
    }

    fn rate(&self) -> Option<Rate> {
        Some(Rate { requests: 2, per_ms: 10_000, tells: true })
    }
}

/// Writes one row on a connection of its own.
pub(crate) fn write(stub: &Door, item: &str, text: &str) -> anyhow::Result<Sight> {
    once(stub.addr(), "POST", &format!("/rows/{item}"), text.as_bytes())
}

/// The texts of a list.
pub(crate) fn read(stub: &Door, query: &str) -> anyhow::Result<Vec<String>> {
    let Sight::Answer(200, _, body) = Client::connect(stub.addr())?.send("GET", &format!("/rows{query}"), b"")? else {
        anyhow::bail!("no list");
    };
    let body: Value = serde_json::from_str(&body)?;
    Ok(body["rows"].as_array().unwrap().iter().map(|row| row[1].as_str().unwrap().to_owned()).collect())
}

/// How many rows an item has.
pub(crate) fn count(stub: &Door, item: &str) -> usize {
    stub.ledger().rows(item).len()
}
