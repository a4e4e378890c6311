//! What is known of a delivery besides its outcomes, the same for a push in one request and a staged one.
//! Must not know tables.

use domain::protocol::Offer;
use domain::push::ContentId;
use domain::{Manifest, OnDifference, Origin, Place, Push, PushId, PushKey, ReportSummary, Sender, mutant};

use super::mutants;
use super::waiting::Forward;
use crate::RecordedAt;

/// A delivery without its outcomes.
#[derive(Clone, Copy)]
pub(super) struct Delivered<'a> {
    pub(super) key: &'a PushKey,
    pub(super) place: &'a Place,
    pub(super) origin: &'a Origin,
    pub(super) sender: &'a Sender,
    pub(super) on_difference: OnDifference,
    pub(super) outside_ci: bool,
    pub(super) expect: Option<u32>,
    pub(super) files: &'a [String],
    pub(super) report: ReportSummary,
    pub(super) incomplete: bool,
    pub(super) content: ContentId,
    pub(super) at: &'a RecordedAt,
    /// What it waits for once it is recorded.
    pub(super) forward: Forward<'a>,
}

impl<'a> Delivered<'a> {
    pub(super) fn of(push: &'a Push, at: &'a RecordedAt, forward: Forward<'a>) -> Self {
        Self {
            key: &push.key,
            place: &push.place,
            origin: &push.origin,
            sender: &push.sender,
            on_difference: push.on_difference,
            outside_ci: push.outside_ci,
            expect: push.expect,
            files: &push.files,
            report: push.report,
            incomplete: push.incomplete,
            content: push.content,
            at,
            forward,
        }
    }

    pub(super) fn begun(manifest: &'a Manifest, at: &'a RecordedAt) -> Self {
        Self {
            key: &manifest.key,
            place: &manifest.place,
            origin: &manifest.origin,
            sender: &manifest.sender,
            on_difference: manifest.on_difference,
            outside_ci: manifest.outside_ci,
            expect: manifest.expect,
            files: &manifest.files,
            report: manifest.report,
            incomplete: manifest.incomplete,
            content: manifest.content,
            at,
            forward: Forward::NEVER,
        }
    }

    pub(super) fn uid(&self) -> PushId {
        let uid = PushId::of(&self.place.project, self.key);
        match &self.sender.executor {
            Some(executor) if mutant!(M6) => mutants::mixed(uid, executor.as_str().as_bytes()),
            _ => uid,
        }
    }

    /// What the decision on it looks at.
    pub(super) fn offer(&self) -> Offer<'a> {
        Offer {
            place: self.place,
            commit: self.origin.commit.as_ref(),
            sender: self.sender,
            on_difference: self.on_difference,
            outside_ci: self.outside_ci,
            files: self.files,
            content: self.content,
        }
    }
}
