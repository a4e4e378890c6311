//! Begins of staged pushes, in the writer's transaction. Must not decide.

use domain::protocol::{Decision, DifferenceClass, Refusal, decide};
use domain::staging::{self, Begin, BeginDecision, Fate};
use domain::{Epoch, Manifest};
use rusqlite::Connection;

use super::super::accept;
use super::super::connect::broken;
use super::super::content::Snap;
use super::super::delivered::Delivered;
use super::super::known::{Lookups, Offered, Standing};
use super::super::points::{Op, Tx};
use super::super::write::project;
use super::{rows, write};
use crate::{Begun, Fence, Now, Staging, StoreError, Stored};

/// Runs one begin.
pub(in crate::sqlite) fn begin(connection: &Connection, manifest: &Manifest, now: &Now) -> Result<Begun, StoreError> {
    let (tx, snap) = (Tx::of(connection, Op::BEGIN), Snap::over(connection));
    let of = Delivered::begun(manifest, &now.at);
    let standing = Standing::of(&snap, &of)?;
    let offered = match &manifest.items {
        Some(items) => Offered::Items(items),
        None => Offered::ToCome,
    };
    let known = standing.known.as_ref().map(|known| &known.known);
    let mut lookups = Lookups { snap: &snap, place: of.place, standing: &standing, offered: &offered };
    let difference = match (decide(&of.offer(), known, standing.tombstoned, &mut lookups)?, &standing.known) {
        (Decision::Record | Decision::Undecided, _) => None,
        (Decision::Overlay { difference, .. }, _) => Some(difference.class),
        (Decision::Replay { revision, class, doubts }, Some(known)) => {
            return accept::replay(tx, &of, known, revision, (class, doubts)).map(Begun::Replayed);
        }
        (Decision::Refuse { refusal, contest }, known) => {
            let of_key = (standing.project, known.as_ref());
            // The items have no names before their chunks come.
            let refused = accept::refuse((tx, &snap), &of, of_key, (refusal, contest), |_| Ok(Vec::new()))?;
            return Ok(Begun::Refused(refused));
        }
        (Decision::Replay { .. }, None) => return Err(broken("a replay of a push that is not recorded")),
    };
    stage((tx, &snap), manifest, now, &standing, difference)
}

/// What the domain says to a content that is to be staged, carried out.
fn stage(
    (tx, snap): (Tx<'_>, &Snap<'_>),
    manifest: &Manifest,
    now: &Now,
    standing: &Standing,
    difference: Option<DifferenceClass>,
) -> Result<Begun, StoreError> {
    let of = Delivered::begun(manifest, &now.at);
    let project = standing.project.map_or_else(|| project(tx, &of.place.project), Ok)?;
    let latest = rows::latest(&tx, project, of.uid())?;
    let known = latest.as_ref().map(|latest| rows::known(&tx, latest, now.ms)).transpose()?;
    let bound = rows::bound(&tx, project, of.uid(), of.sender.incarnation)?;
    let fields = latest.as_ref().map(|latest| rows::differing_fields(&tx, latest, &of)).transpose()?;
    let offer = Begin {
        manifest: manifest.digest(),
        content: of.content.content,
        sender: of.sender.clone(),
        fields: fields.unwrap_or_default(),
    };
    let recorded = || rows::recorded(&tx, project, of.uid());
    match (staging::begin(&offer, known.as_ref(), bound), &latest) {
        (BeginDecision::Open { epoch, supersedes }, latest) => {
            if let Some(latest) = latest.as_ref().filter(|_| supersedes.is_some()) {
                write::end(tx, latest.id, Fate::Superseded)?;
            }
            let stage = write::open(tx, project, manifest, epoch, now)?;
            // Legs that share the key are no fewer because one of them begins anew.
            if supersedes.is_some() && latest.as_ref().is_some_and(|latest| latest.contested) {
                write::contest(tx, stage)?;
            }
            write::sender(tx, (project, stage), of.uid().0, of.sender)?;
            let missing = (0..manifest.chunks.len() as u32).collect();
            Ok(staging_of(manifest, (epoch, false), missing, difference, recorded()?))
        }
        (BeginDecision::Resume { epoch, missing, .. }, Some(latest)) => {
            // The ordinal to store is the highest of the senders.
            write::sender(tx, (project, latest.id), of.uid().0, of.sender)?;
            write::touch(tx, latest.id, now.ms)?;
            Ok(staging_of(manifest, (epoch, true), missing, difference, recorded()?))
        }
        (BeginDecision::Replay { revision }, _) => {
            let known = standing.known.as_ref();
            accept::repeat(tx, &of, known, (revision, DifferenceClass::Structural)).map(Begun::Replayed)
        }
        (BeginDecision::InProgress { epoch }, _) => Ok(Begun::Fenced(Fence::InProgress { epoch })),
        (BeginDecision::Stale { epoch }, _) => Ok(Begun::Fenced(Fence::Stale { epoch })),
        (BeginDecision::Superseded { bound }, _) => {
            Ok(Begun::Fenced(Fence::Superseded { epoch: bound, recorded: recorded()? }))
        }
        (BeginDecision::Collides(refusal), Some(latest)) => {
            write::contest(tx, latest.id)?;
            refused((tx, snap), &of, (project, standing), refusal)
        }
        (BeginDecision::Reused(refusal), _) => refused((tx, snap), &of, (project, standing), refusal),
        (BeginDecision::Resume { .. } | BeginDecision::Collides(_), None) => {
            Err(broken("a decision on an epoch that is not there"))
        }
    }
}

fn refused(
    (tx, snap): (Tx<'_>, &Snap<'_>),
    of: &Delivered<'_>,
    (project, standing): (i64, &Standing),
    refusal: Refusal,
) -> Result<Begun, StoreError> {
    let of_key = (Some(project), standing.known.as_ref());
    accept::refuse((tx, snap), of, of_key, (refusal, false), |_| Ok(Vec::new())).map(Begun::Refused)
}

fn staging_of(
    manifest: &Manifest,
    (epoch, resumed): (Epoch, bool),
    missing: Vec<u32>,
    difference: Option<DifferenceClass>,
    recorded: Option<Stored>,
) -> Begun {
    let chunks = manifest.chunks.len() as u32;
    Begun::Staging(Staging { epoch, resumed, chunks, missing, difference, recorded })
}
