//! Repositories that have no push keys: adapters that say what a product does, and strategies, written once over all of
//! them, that record effectively once all the same (design, section 9).
//! Must not know our store's tables, read the environment, or print.
//!
//! Read `adapter` first (what every product is asked for), then `facts` (what is to be known of it), then `forward`.

mod adapter;
mod attachment;
pub mod audit;
mod caller;
mod entry;
mod facts;
mod forward;
mod heard;
pub mod kinds;
mod load;
mod mapping;
mod options;
mod paging;
pub mod patience;
pub mod probe;
pub mod repair;
mod settings;
mod text;
mod trouble;

pub use adapter::{Adapter, Closing, Ending, JobEnd, Listing, Namesake, Written};
pub use attachment::{File, Listed};
pub use caller::{Call, Caller, Nature};
pub use entry::{
    Case, CaseChoice, CaseId, CaseWanted, CycleFound, CycleId, CycleWanted, Entry, JobId, Row, RowId, RowStatus,
};
pub use facts::{
    Bulk, Facts, KeyOnWrite, Kind, MarkerFacts, MarkerLevel, Race, Rate, Repair, Strategy, VerdictRule, Visible,
};
pub use forward::{
    Attached, Book, BookError, Forwarded, Forwarder, Halt, Load, Need, Needs, Of, Step, Turn, Unfit, container_id,
    needs,
};
pub use heard::Heard;
pub use kinds::{OpenError, open, open_and_hear};
pub use mapping::{Fold, IdShape, fold, ids_in, named};
pub use options::{OptionError, Options};
pub use settings::{CyclePer, TargetName, TargetSettings};
pub use trouble::{Trouble, json, judge};
