//! What is written into a repository without keys, and what is read there: cases, cycles, entries and rows, each id in a
//! type of its own. Must not know any product.

use std::fmt;

use domain::intent::{Intent, RefusedItem};
use domain::marker::{Marker, WriteId};
use domain::{DurationUs, ExternalId, IdSource, ItemName, Status};
use serde::{Deserialize, Serialize};

macro_rules! id_type {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(String);

        impl $type {
            /// As the product writes it.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// As text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_type!(
    /// A test case (or what stands for one) as the product's calls name it.
    CaseId
);
id_type!(
    /// A cycle as the product's calls name it.
    CycleId
);
id_type!(
    /// One recorded outcome as the product's calls name it.
    RowId
);
id_type!(
    /// Work that the product goes on with after its answer.
    JobId
);

impl CaseId {
    /// True if the product doesn't say which case it is: two rows of it may be of two tests.
    pub fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }
}

/// An item that needs a case.
#[derive(Debug, Clone, Copy)]
pub struct CaseWanted<'a> {
    /// The item.
    pub item: &'a ItemName,
    /// Ids in other systems that the report gives.
    pub external_ids: &'a [ExternalId],
    /// What the mapping file says of it.
    pub mapped: Option<&'a CaseId>,
}

impl<'a> CaseWanted<'a> {
    /// The ids that are meant as such. Of those in its name only the form of the product's own counts, and requirements
    /// are no cases.
    pub fn given(&self) -> impl Iterator<Item = &'a str> {
        let given = |id: &&ExternalId| id.source() == IdSource::Property;
        self.external_ids.iter().filter(given).map(ExternalId::id)
    }
}

/// A case that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Its id.
    pub id: CaseId,
    /// How people know it.
    pub title: String,
}

/// What became of an item that needs a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseChoice {
    /// It has one.
    Known(Case),
    /// It names several: each gets the outcome, and what can't be one is listed.
    Several {
        /// Those that it has.
        cases: Vec<Case>,
        /// Why others that it names are left out, in words.
        left_out: Vec<String>,
    },
    /// It has none: nothing in its name, properties or the mapping file leads to one. Listed and counted, never
    /// dropped in silence.
    Unmatched {
        /// What was looked for, in words.
        why: String,
    },
}

impl CaseChoice {
    /// Of all that an item names, each looked at alone. A case that is named twice gets the outcome once.
    pub fn of(each: impl IntoIterator<Item = CaseChoice>) -> Self {
        let (mut cases, mut left_out) = (Vec::<Case>::new(), Vec::new());
        for choice in each {
            let (more, why) = choice.into_parts();
            left_out.extend(why);
            for case in more {
                if !cases.iter().any(|known| known.id == case.id) {
                    cases.push(case);
                }
            }
        }
        match (cases.len(), left_out.is_empty()) {
            (1, true) => CaseChoice::Known(cases.remove(0)),
            (0, _) => CaseChoice::Unmatched { why: left_out.join("; ") },
            _ => CaseChoice::Several { cases, left_out },
        }
    }

    /// Its cases, and what is to be said of those that it can't have.
    pub fn into_parts(self) -> (Vec<Case>, Vec<String>) {
        match self {
            CaseChoice::Known(case) => (vec![case], Vec::new()),
            CaseChoice::Several { cases, left_out } => (cases, left_out),
            CaseChoice::Unmatched { why } => (Vec::new(), vec![why]),
        }
    }
}

/// A cycle that is to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleWanted {
    /// What people read; the same for every writer of the round.
    pub name: String,
    /// Finds it again. Its text stands in the name or in a field of the cycle.
    pub id: WriteId,
    /// Where the round came from, for people.
    pub link: Option<String>,
    /// A cycle of the product that the configuration names: it is used as it is, and never created.
    pub given: Option<CycleId>,
}

impl CycleWanted {
    /// A cycle by the product's own id, whatever tag it has: only for a question about that one.
    pub fn by_id(cycle: CycleId) -> Self {
        Self { name: String::new(), id: WriteId(0), link: None, given: Some(cycle) }
    }

    /// The text that the product keeps and finds: `tly` and the 26 characters of the id.
    pub fn tag(&self) -> String {
        format!("tly{}", self.id)
    }
}

/// A cycle that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleFound {
    /// Its id.
    pub id: CycleId,
    /// What people read.
    pub name: String,
    /// True if nothing can be written there any more.
    pub closed: bool,
}

/// What a push says of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The case.
    pub case: CaseId,
    /// How people know it.
    pub title: String,
    /// The verdict; the worst, if several items lead to the case.
    pub status: Status,
    /// How long it took, all items together.
    pub duration_us: Option<DurationUs>,
    /// Messages, bounded, for people.
    pub message: Option<String>,
    /// When the outcomes were recorded by us, milliseconds since 1970.
    pub at_ms: u64,
    /// The items that it stands for.
    pub items: Vec<ItemName>,
    /// What it is found again by.
    pub marker: Marker,
}

impl Entry {
    /// The id for products that take one of ours: the same for the same content of the same attempt of the write.
    pub fn uuid(&self) -> String {
        self.marker.uuid()
    }

    /// True if every item of it was refused for this case.
    pub(super) fn is_refused_in(&self, intent: &Intent) -> bool {
        let is_out = |item: &ItemName| {
            let item = item.to_string();
            intent.refused.iter().any(|refused| !refused.again && refused.is_of(&item, self.case.as_str()))
        };
        !intent.refused.is_empty() && !self.items.is_empty() && self.items.iter().all(is_out)
    }

    /// True if an item that was refused is one of its own, and was refused for this case.
    pub(super) fn is_named_by(&self, refused: &RefusedItem) -> bool {
        self.items.iter().any(|item| refused.is_of(&item.to_string(), self.case.as_str()))
    }

    /// A comment for people whose last line is the marker.
    pub fn comment(&self) -> String {
        let message = self.message.as_deref().map(str::trim_end).filter(|message| !message.is_empty());
        match message {
            Some(message) => format!("{message}\n\n{}", self.marker),
            None => self.marker.to_string(),
        }
    }
}

/// What a recorded outcome says, in our words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowStatus {
    /// One of ours.
    Is(Status),
    /// Nothing yet: the row is a place for a verdict.
    Open,
    /// A status that only the product knows.
    Other(String),
}

/// An outcome that is recorded in the product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: RowId,
    /// Its case.
    pub case: CaseId,
    /// Its verdict.
    pub status: RowStatus,
    /// Whose write it is.
    pub marker: domain::marker::Found,
    /// When it was recorded as the product says, milliseconds since 1970.
    pub at_ms: Option<u64>,
    /// All that people see of it beside its verdict, for evidence; without the marker.
    pub text: String,
}

impl Row {
    /// True if it is of that write, whatever it said.
    pub fn is_of(&self, write: WriteId) -> bool {
        matches!(self.marker, domain::marker::Found::Whole(marker) if marker.write == write)
    }
}
