//! Files to the rows that are settled: at least once, and effectively once, since a row's files are listed before any is
//! sent and a name carries its content. Must not know products, or change what became of an outcome.
//!
//! As with outcomes, silence is *unknown*: a file without an answer is only sent again after the quiet time, and after two
//! readings that don't show it. That an upload begins is kept beside the outbox entry, for whoever comes after a dead process.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Digest, ItemHash};

use super::placed::{count, left_out, row_of, settled, without_row};
use super::{Forwarded, Forwarder, Halt};
use crate::foreign::attachment::{File, Listed};
use crate::foreign::entry::{CycleId, Row};
use crate::foreign::trouble::Trouble;
use crate::outbox::{Attachment, Attachments, LeftOut};

/// A file that was sent so often and is still not seen is left out.
const SENDS_MAX: u32 = 5;
/// Between two readings at least, in milliseconds.
const BETWEEN_READS_MS: u64 = 1000;

const SENDING: &str = "attachments were being sent";

/// What became of the files of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    /// Sent now, and there.
    pub sent: u64,
    /// There already.
    pub there: u64,
    /// Those that don't get there, and why.
    pub left_out: Vec<LeftOut>,
    /// Those that stand at a row more than once: two writers were at work.
    pub doubled: Vec<LeftOut>,
    /// Not known to be there when it had to end, and why it had to: delivering the push again goes on.
    pub open: Option<(u64, Halt)>,
}

/// One file of one row.
struct Job<'a> {
    file: &'a Attachment,
    cycle: CycleId,
    row: Row,
    /// Names the upload in marks.
    upload: Digest,
    /// When it was sent without an answer, in milliseconds since 1970.
    silent_since_ms: Option<u64>,
    cause: String,
    sends: u32,
    sent_now: bool,
    /// This delivery has written the row, so that no earlier one can have sent its files.
    fresh: bool,
    unlisted: bool,
}

impl Job<'_> {
    fn out(&self, why: impl Into<String>) -> LeftOut {
        left_out(self.file, why)
    }
}

/// What a try came to.
enum Tried {
    There,
    Silent,
    Out(String),
    /// Nothing else will be taken either.
    Denied(String),
}

impl Forwarder<'_> {
    /// Brings the files of a forwarded push to their rows. Nothing that happens here is an error of the push.
    pub async fn attach(&mut self, forwarded: &Forwarded, files: &Attachments) -> Attached {
        let mut done = Attached { left_out: files.left_out.clone(), ..Attached::default() };
        if files.files.is_empty() {
            return done;
        }
        let turn = match self.turn().await {
            Ok(turn) => turn,
            Err(halt) => {
                done.open = Some((files.files.len() as u64, halt));
                return done;
            }
        };
        let all = files.files.len() as u64;
        if let Err(halt) = self.attach_in(forwarded, files, &mut done).await {
            let ended = done.sent + done.there + (done.left_out.len() - files.left_out.len()) as u64;
            done.open = Some((all.saturating_sub(ended).max(1), halt));
        }
        if let (Err(error), None) = (self.book.end_turn(self.target, turn).await, &done.open) {
            // All is there; that the turn can't be given back is nothing of the files.
            (self.progress)(super::Step::Waiting { ms: 0, why: error.to_string() });
        }
        done
    }

    async fn attach_in(&mut self, forwarded: &Forwarded, files: &Attachments, done: &mut Attached) -> Result<(), Halt> {
        let mut open = self.jobs(forwarded, files, done).await?;
        let (mut sent, mut denied) = (Vec::new(), None);
        while !open.is_empty() {
            open = self.without_those_there(open, files, &mut sent, done).await?;
            let mut silent = Vec::new();
            for mut job in open {
                if job.silent_since_ms.is_some() {
                    silent.push(job);
                    continue;
                }
                let tried = match &denied {
                    Some(why) => Tried::Denied(String::clone(why)),
                    None => self.upload(&mut job, files).await?,
                };
                match tried {
                    Tried::There => {
                        done.sent += 1;
                        sent.push(job);
                    }
                    Tried::Silent if job.unlisted => done.left_out.push(job.out(format!(
                        "it may be there ({}); what is there can't be listed, so it isn't sent again",
                        job.cause
                    ))),
                    Tried::Silent => silent.push(job),
                    Tried::Out(why) => done.left_out.push(job.out(why)),
                    Tried::Denied(why) => {
                        done.left_out.push(job.out(&*why));
                        denied = Some(why);
                    }
                }
            }
            open = self.after_silence(silent, files, &mut sent, done).await?;
        }
        self.doubled(&sent, done).await
    }

    /// Which file goes to which row, each content once a row.
    async fn jobs<'f>(
        &mut self,
        forwarded: &Forwarded,
        files: &'f Attachments,
        done: &mut Attached,
    ) -> Result<Vec<Job<'f>>, Halt> {
        let mut by_item = BTreeMap::<ItemHash, Vec<&Attachment>>::new();
        for file in &files.files {
            by_item.entry(file.item().unwrap_or(ItemHash([0; 16]))).or_default().push(file);
        }
        let (mut jobs, mut placed) = (Vec::new(), BTreeSet::new());
        for intent in &forwarded.intents {
            let Some((cycle, entries)) = settled(intent) else { continue };
            let mut wanted = Vec::new();
            for entry in entries {
                let mut own = Vec::<&Attachment>::new();
                let items = entry.items.iter().map(domain::ItemName::hash);
                // An item of several cases has its files at the row of each.
                for file in items.filter_map(|item| by_item.get(&item)).flatten().copied() {
                    placed.extend(file.item());
                    if own.iter().any(|known| known.content == file.content) {
                        done.there += 1;
                    } else {
                        own.push(file);
                    }
                }
                if !own.is_empty() {
                    wanted.push((entry, own));
                }
            }
            if wanted.is_empty() {
                continue;
            }
            let (adapter, cases) =
                (self.adapter, wanted.iter().map(|(entry, _)| entry.case.clone()).collect::<Vec<_>>());
            let rows = match self.asking(|| adapter.rows(&cycle, &cases)).await {
                Err(Halt::Denied(why) | Halt::Refused(why) | Halt::Gone(why)) => {
                    let why = format!("the row of its outcome can't be read: {why}");
                    let files = wanted.into_iter().flat_map(|(_, own)| own);
                    done.left_out.extend(files.map(|file| left_out(file, why.clone())));
                    continue;
                }
                rows => rows?,
            };
            for (entry, own) in wanted {
                match row_of(&entry, &rows) {
                    Some(row) => {
                        let fresh = intent.sends > 0 && intent.planned_ms >= files.taken_ms;
                        jobs.extend(own.into_iter().map(|file| job(file, &cycle, row, (files, fresh))));
                    }
                    None => done.left_out.extend(own.into_iter().map(without_row)),
                }
            }
        }
        by_item.retain(|item, _| !placed.contains(item));
        done.left_out.extend(by_item.into_values().flatten().map(without_row));
        Ok(jobs)
    }

    /// Lists the rows, and leaves the files that are not there.
    async fn without_those_there<'f>(
        &mut self,
        jobs: Vec<Job<'f>>,
        files: &Attachments,
        sent: &mut Vec<Job<'f>>,
        done: &mut Attached,
    ) -> Result<Vec<Job<'f>>, Halt> {
        let mut listed = BTreeMap::<_, Listed>::new();
        let mut left = Vec::new();
        for mut job in jobs {
            let place = (job.cycle.clone(), job.row.id.clone());
            let names = if let Some(names) = listed.get(&place) {
                names
            } else {
                let names = self.listing(&job).await?;
                listed.entry(place).or_insert(names)
            };
            match names {
                Listed::TakesNone(why) => done.left_out.push(job.out(why.clone())),
                Listed::Unlisted if files.is_done(job.upload) => done.there += 1,
                Listed::Unlisted if !job.fresh || files.begun_ms(job.upload).is_some() => {
                    done.left_out.push(job.out(
                        "its outcome was there before, or an earlier process began to send it; what is there can't be \
                         listed, so it isn't sent again",
                    ));
                }
                Listed::Names(names) if count(names, job.file) > 0 => {
                    if job.sent_now {
                        done.sent += 1;
                        sent.push(job);
                    } else {
                        done.there += 1;
                    }
                }
                Listed::Unlisted => {
                    job.unlisted = true;
                    left.push(job);
                }
                Listed::Names(_) => left.push(job),
            }
        }
        Ok(left)
    }

    async fn listing(&mut self, job: &Job<'_>) -> Result<Listed, Halt> {
        self.may_go_on(SENDING)?;
        let adapter = self.adapter;
        match self.asking(|| adapter.attachments(&job.cycle, &job.row)).await {
            Err(Halt::Denied(why) | Halt::Refused(why) | Halt::Gone(why)) => Ok(Listed::TakesNone(why)),
            listed => listed,
        }
    }

    /// One file, until it is answered, refused or silent.
    async fn upload(&mut self, job: &mut Job<'_>, files: &Attachments) -> Result<Tried, Halt> {
        if job.sends >= SENDS_MAX {
            return Ok(Tried::Out(format!("sent {} times, and not seen since", job.sends)));
        }
        let bytes = match files.read(job.file) {
            Ok(bytes) => bytes.into(),
            Err(error) => return Ok(Tried::Out(error.to_string())),
        };
        let file = File { name: job.file.name(), bytes };
        let (mut backoff, begun_ms) = (self.backoff(), self.clock.now_ms());
        loop {
            self.may_go_on(SENDING)?;
            if let Err(error) = files.begin(job.upload, self.clock.unix_ms()) {
                return Ok(Tried::Out(format!("that it is sent can't be kept: {error}")));
            }
            (job.sends, job.sent_now) = (job.sends + 1, true);
            let trouble = match self.adapter.attach(&job.cycle, &job.row, &file).await {
                Ok(()) => {
                    if job.unlisted {
                        files.done(job.upload);
                    }
                    return Ok(Tried::There);
                }
                Err(trouble) => trouble,
            };
            match trouble {
                Trouble::Unknown(what) | Trouble::Exists(what) => {
                    (job.silent_since_ms, job.cause) = (Some(self.clock.unix_ms()), what);
                    return Ok(Tried::Silent);
                }
                again @ (Trouble::NotSent(_) | Trouble::Wait { .. }) => {
                    files.unbegin(job.upload);
                    // It surely had no effect: nothing that it could be missed for.
                    (job.sends, job.sent_now) = (job.sends - 1, false);
                    self.before_next(&mut backoff, begun_ms, &again).await?;
                }
                Trouble::Denied(why) => {
                    files.unbegin(job.upload);
                    return Ok(Tried::Denied(why));
                }
                Trouble::Refused(why) | Trouble::TooLarge(why) | Trouble::Gone(why) => {
                    files.unbegin(job.upload);
                    return Ok(Tried::Out(why));
                }
            }
        }
    }

    /// Those that two readings after the quiet time don't show may be sent again.
    async fn after_silence<'f>(
        &mut self,
        silent: Vec<Job<'f>>,
        files: &Attachments,
        sent: &mut Vec<Job<'f>>,
        done: &mut Attached,
    ) -> Result<Vec<Job<'f>>, Halt> {
        let Some(since_ms) = silent.iter().filter_map(|job| job.silent_since_ms).max() else { return Ok(silent) };
        let left_ms = self.quiet_ms.saturating_sub(self.clock.unix_ms().saturating_sub(since_ms));
        let cause = silent.iter().rfind(|job| !job.cause.is_empty()).map_or("no answer", |job| &job.cause);
        let why = format!("{} attachments possibly written ({cause}): read back after a quiet time", silent.len());
        if left_ms > 0 {
            self.pause(left_ms, &why).await?;
        }
        let mut left = self.without_those_there(silent, files, sent, done).await?;
        if !left.is_empty() {
            self.pause(BETWEEN_READS_MS, "read back: not all attachments are there; once more").await?;
            left = self.without_those_there(left, files, sent, done).await?;
        }
        for job in &mut left {
            job.silent_since_ms = None;
        }
        Ok(left)
    }

    /// Two writers at once both find nothing: whoever looks last sees both (R2), and says so.
    async fn doubled(&mut self, sent: &[Job<'_>], done: &mut Attached) -> Result<(), Halt> {
        let mut listed = BTreeMap::new();
        for job in sent {
            let place = (job.cycle.clone(), job.row.id.clone());
            if !listed.contains_key(&place) {
                listed.insert(place.clone(), self.listing(job).await?);
            }
            if let Some(Listed::Names(names)) = listed.get(&place)
                && count(names, job.file) > 1
            {
                done.doubled.push(job.out(format!("it stands {} times at its row", count(names, job.file))));
            }
        }
        Ok(())
    }
}

fn job<'f>(file: &'f Attachment, cycle: &CycleId, row: &Row, (files, fresh): (&Attachments, bool)) -> Job<'f> {
    let mut name = Vec::new();
    for part in [cycle.as_str(), row.id.as_str(), row.case.as_str(), &file.content.to_string()] {
        name.extend_from_slice(&(part.len() as u64).to_le_bytes());
        name.extend_from_slice(part.as_bytes());
    }
    let upload = Digest::of(&name);
    let silent_since_ms = files.begun_ms(upload);
    let (cycle, row, cause) = (cycle.clone(), row.clone(), String::new());
    Job { file, cycle, row, upload, silent_since_ms, cause, sends: 0, sent_now: false, fresh, unlisted: false }
}
