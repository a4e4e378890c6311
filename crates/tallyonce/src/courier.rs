//! Hands parcels of one command to one target, within one deadline, and settles their outbox entries: an entry goes once it
//! has been said what became of its push, never before.
//! Must not know reports, keys or flags.

use std::path::Path;
use std::time::Duration;

use delivery::{
    Clock as _, Ended, Entry, EntryLock, Keep, LockError, Loose, Outbox, Parcel, RetryPolicy, Settled, Stop,
    SystemClock, Target, Terms, deliver,
};
use domain::{Cause, Delivery};
use rand::rngs::StdRng;

use crate::commands::summary;
use crate::exit::Exit;
use crate::failure::{Failure, Kept, State};
use crate::forward::Forwarding;
use crate::object::PushObject;
use crate::output::Output;
use crate::progress::Watcher;

/// How often an entry is put again because another process delivered it in between.
const TURNS_MAX: u32 = 8;
/// How long to wait before looking again at an entry that another process is delivering, in milliseconds.
const HELD_PAUSE_MS: u64 = 100;

/// How delivering an entry ended well.
#[derive(Debug)]
pub(crate) enum Flushed {
    /// With a receipt in this process's hand. Its entry waits to be forgotten.
    Here(Box<Settled>),
    /// Another process had a receipt first, and removed the entry.
    Elsewhere,
}

/// Delivers.
pub(crate) struct Courier {
    target: Box<dyn Target>,
    clock: SystemClock,
    deadline_ms: u64,
    stop: Stop,
    random: StdRng,
    output: Output,
}

impl Courier {
    /// To this target, until the deadline, counted from now.
    pub(crate) fn new(target: Box<dyn Target>, deadline: Duration, stop: Stop, output: Output) -> Self {
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        Self { target, clock: SystemClock::new(), deadline_ms, stop, random: rand::make_rng(), output }
    }

    /// How much of the deadline is left.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_millis(self.deadline_ms.saturating_sub(self.clock.now_ms()))
    }

    /// Delivers one parcel that is kept there.
    async fn deliver(&mut self, parcel: &Parcel, keep: &mut dyn Keep) -> Ended {
        let left_ms = self.deadline_ms.saturating_sub(self.clock.now_ms());
        let mut watcher = Watcher::new(self.output, parcel.header.key.as_str());
        let terms = Terms {
            policy: RetryPolicy::within(left_ms),
            clock: &self.clock,
            random: &mut self.random,
            stop: &self.stop,
            progress: &mut |progress| watcher.see(&progress),
        };
        deliver(&*self.target, parcel, keep, terms).await
    }

    /// Delivers a parcel that its file keeps, whatever becomes of it; another cut of it would lie in `scratch`.
    pub(crate) async fn deliver_loose(&mut self, parcel: &Parcel, scratch: &Path) -> Ended {
        self.deliver(parcel, &mut Loose::beside(scratch)).await
    }

    /// Once nobody waits for an answer.
    pub(crate) async fn tidy(&self) {
        if !self.stop.is_requested() {
            self.target.tidy().await;
        }
    }

    /// Removes the entry of a push of which all has been said, and all that belongs to it is there. If that fails it is only a nuisance: the entry is
    /// delivered once more, and replayed.
    pub(crate) fn forget(&self, settled: Settled, object: &mut PushObject) {
        if object.stays {
            return;
        }
        if let Err(error) = settled.forget() {
            let warning = format!("{error}; it is recorded, and delivering it again later changes nothing");
            self.output.warning(&warning);
            object.warnings.push(warning);
        }
    }

    /// Keeps a fresh parcel, delivers what the outbox holds of the same key from before, then itself. Its entry, if
    /// there is one of its own, is to be forgotten once all is said; what came of those from before is said here, and
    /// they go on to the target first too, if there is one: a later push may offer a part of what they hold.
    ///
    /// # Errors
    /// It is not recorded. Unless it is refused for good, it is in the outbox then.
    pub(crate) async fn hand_over(
        &mut self,
        outbox: &Outbox,
        entry: Entry,
        parcel: &Parcel,
        forwarding: Option<&Forwarding>,
        object: &mut PushObject,
    ) -> Result<Option<Settled>, Failure> {
        self.deliver_older(outbox, &entry, parcel, forwarding, object).await?;
        let mut entry = entry;
        for _ in 0..TURNS_MAX {
            match entry.lock() {
                Ok(mut lock) => {
                    // An earlier process may have kept it in smaller chunks, which the receiver has in part.
                    let recut = entry.header().form != parcel.header.form;
                    let kept = if recut { load(&entry)? } else { parcel.clone() };
                    let ended = self.deliver(&kept, &mut lock).await;
                    object.ended(&ended, kept_in(&entry))?;
                    return Ok(Settled::of(&entry, lock, &ended));
                }
                // Another process delivers the very same content. Only an answer of our own counts.
                Err(LockError::Held { .. }) => break,
                Err(LockError::Gone { .. }) => entry = put(outbox, parcel)?,
                Err(error @ LockError::Io { .. }) => return Err(outbox_failure(&error)),
            }
        }
        let ended = self.deliver_loose(parcel, outbox.folder()).await;
        // The other process may have removed its entry with a receipt that we have not seen.
        let kept = if matches!(ended.delivery, Delivery::Recorded(_)) { None } else { put(outbox, parcel).ok() };
        object.ended(&ended, kept.as_ref().map_or(Kept::Nowhere, kept_in))?;
        Ok(None)
    }

    async fn deliver_older(
        &mut self,
        outbox: &Outbox,
        own: &Entry,
        parcel: &Parcel,
        forwarding: Option<&Forwarding>,
        object: &mut PushObject,
    ) -> Result<(), Failure> {
        let (entries, _) = outbox.entries().map_err(|error| outbox_failure(&error))?;
        let same = |entry: &&Entry| {
            let (a, b) = (entry.header(), &parcel.header);
            a.key == b.key && a.place.project == b.place.project && a.destination == b.destination
        };
        let older: Vec<&Entry> = entries.iter().filter(same).take_while(|entry| entry.path() != own.path()).collect();
        for entry in older {
            self.output
                .note(&format!("an earlier delivery of this key waits in {}; it goes first", entry.path().display()));
            let mut earlier = PushObject::of(entry.header());
            match self.flush_on(entry, forwarding, &mut earlier).await {
                Ok((Flushed::Here(settled), _)) => {
                    self.say_earlier(&earlier, object);
                    self.forget(*settled, object);
                }
                Ok((Flushed::Elsewhere, _)) => {}
                // Without an answer the order would be lost.
                Err(failure) if failure.exit == Exit::NotConfirmed => return Err(behind(entry, own, &failure.what)),
                // A refusal says nothing about the fresh one.
                Err(failure) => {
                    object
                        .warnings
                        .push(format!("an earlier delivery of this key stays in the outbox: {}", failure.what));
                }
            }
        }
        Ok(())
    }

    /// As [`Self::flush`], and from the target's ledger on to the target. Without an end there, its entry stays.
    ///
    /// # Errors
    /// It is not recorded, or it isn't known whether all of it is at the target.
    pub(crate) async fn flush_on(
        &mut self,
        entry: &Entry,
        forwarding: Option<&Forwarding>,
        object: &mut PushObject,
    ) -> Result<(Flushed, Exit), Failure> {
        let files = entry.attachments().map_err(|error| outbox_failure(&error))?;
        let flushed = self.flush(entry, object).await?;
        let (Flushed::Here(_), Some(forwarding)) = (&flushed, forwarding) else { return Ok((flushed, Exit::Success)) };
        let (parcel, left) = (load(entry)?, self.left());
        let exit = Box::pin(forwarding.push((&parcel, &files), left, &self.stop, object)).await?;
        object.exit = exit.number();
        Ok((flushed, exit))
    }

    /// Says what became of an earlier push. Beside others is not where its sender looks for it.
    fn say_earlier(&self, earlier: &PushObject, object: &mut PushObject) {
        let words = format!("the earlier delivery: {}", summary::closing(earlier));
        let words = words.trim_end().replace('\n', "; ");
        if matches!(earlier.state, State::Recorded | State::Replayed) {
            self.output.note(&words);
        } else {
            object.warnings.push(words);
        }
        for warning in &earlier.warnings {
            object.warnings.push(format!("of the earlier delivery: {warning}"));
        }
    }

    /// Delivers an entry that an earlier process left, with the sender that it was put with.
    ///
    /// # Errors
    /// It is not recorded.
    async fn flush(&mut self, entry: &Entry, object: &mut PushObject) -> Result<Flushed, Failure> {
        let Some(mut lock) = self.take(entry).await? else {
            self.output.note(&format!("{} was delivered by another process meanwhile", entry.path().display()));
            return Ok(Flushed::Elsewhere);
        };
        let parcel = load(entry)?;
        let ended = self.deliver(&parcel, &mut lock).await;
        object.ended(&ended, kept_in(entry))?;
        // With a receipt there always is one.
        Ok(Settled::of(entry, lock, &ended).map_or(Flushed::Elsewhere, |settled| Flushed::Here(Box::new(settled))))
    }

    /// Takes an entry, as soon as no other process holds it; `None` if another one has delivered and removed it.
    async fn take(&self, entry: &Entry) -> Result<Option<EntryLock>, Failure> {
        let mut said = false;
        loop {
            match entry.lock() {
                Ok(lock) => return Ok(Some(lock)),
                Err(LockError::Gone { .. }) => return Ok(None),
                Err(LockError::Held { .. }) => {}
                Err(error @ LockError::Io { .. }) => return Err(outbox_failure(&error)),
            }
            let left_ms = self.deadline_ms.saturating_sub(self.clock.now_ms());
            if left_ms == 0 || self.stop.is_requested() {
                // What it sends right now may be written.
                let cause = Cause::new("another process is delivering it right now");
                return Err(Failure::possibly_written(&cause, kept_in(entry)));
            }
            if !said {
                self.output.note(&format!("another process is delivering {}: waiting for it", entry.path().display()));
                said = true;
            }
            tokio::select! {
                () = self.stop.requested() => {}
                () = self.clock.sleep(HELD_PAUSE_MS.min(left_ms)) => {}
            }
        }
    }
}

/// Where an entry's push is.
pub(crate) fn kept_in(entry: &Entry) -> Kept<'_> {
    Kept::Outbox { file: entry.path(), to: &entry.header().destination }
}

/// A push that is not sent because an earlier one of its key is not confirmed: the order would be lost.
pub(crate) fn behind(earlier: &Entry, own: &Entry, what: &str) -> Failure {
    let what = format!("an earlier delivery of this key ({}) goes first, and: {what}", earlier.path().display());
    Failure::not_sent(&Cause::new(what), kept_in(own))
}

/// Keeps a parcel.
///
/// # Errors
/// The outbox cannot keep it.
pub(crate) fn put(outbox: &Outbox, parcel: &Parcel) -> Result<Entry, Failure> {
    outbox.put(parcel).map_err(|error| outbox_failure(&error))
}

fn load(entry: &Entry) -> Result<Parcel, Failure> {
    entry.load().map_err(|error| outbox_failure(&error))
}

/// The outbox cannot do what it is for.
pub(crate) fn outbox_failure(error: &dyn std::fmt::Display) -> Failure {
    Failure::machine(
        error.to_string(),
        "Free space or mend permissions, or name another folder with --outbox; then run the same command again.",
    )
}
