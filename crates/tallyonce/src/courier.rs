//! Hands parcels of one command to one target, within one deadline, and settles their outbox entries.
//! Must not know reports, keys or flags.

use delivery::{
    Clock as _, Ended, Entry, LockError, Outbox, OutboxError, Parcel, RetryPolicy, Stop, SystemClock, Target, deliver,
    settle,
};
use domain::{Cause, Delivery};
use rand::rngs::StdRng;

use crate::failure::{Failure, State};
use crate::object::PushObject;
use crate::output::Output;
use crate::progress::Watcher;

/// How often an entry is put again because another process delivered it in between.
const TURNS_MAX: u32 = 8;

/// Delivers.
pub(crate) struct Courier {
    target: Box<dyn Target>,
    clock: SystemClock,
    deadline_ms: u64,
    stop: Stop,
    jitter: StdRng,
    output: Output,
}

impl Courier {
    /// To this target, until the deadline, counted from now.
    pub(crate) fn new(target: Box<dyn Target>, deadline: std::time::Duration, stop: Stop, output: Output) -> Self {
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        Self { target, clock: SystemClock::new(), deadline_ms, stop, jitter: rand::make_rng(), output }
    }

    /// Delivers one parcel, whoever keeps it.
    pub(crate) async fn deliver(&mut self, parcel: &Parcel) -> Ended {
        let left_ms = self.deadline_ms.saturating_sub(self.clock.now_ms());
        let policy = RetryPolicy::within(left_ms);
        let mut watcher = Watcher::new(self.output, parcel.header.key.as_str());
        let mut see = |progress| watcher.see(progress);
        deliver(&*self.target, parcel, &policy, &self.clock, &mut self.jitter, &self.stop, &mut see).await
    }

    /// Keeps a fresh parcel, delivers what the outbox holds of the same key from before, then itself, and settles both.
    ///
    /// # Errors
    /// It is not recorded. Unless it is refused for good, it is in the outbox then.
    pub(crate) async fn hand_over(
        &mut self,
        outbox: &Outbox,
        entry: Entry,
        parcel: &Parcel,
        object: &mut PushObject,
    ) -> Result<(), Failure> {
        self.deliver_older(outbox, &entry, parcel, object).await?;
        let mut entry = entry;
        for _ in 0..TURNS_MAX {
            match entry.lock() {
                Ok(lock) => {
                    let ended = self.deliver(parcel).await;
                    let settled = settle(&entry, &ended);
                    drop(lock);
                    object.ended(&ended, true)?;
                    return self.settled(settled, object);
                }
                // Another process delivers the very same content. Only an answer of our own counts.
                Err(LockError::Held { .. }) => break,
                Err(LockError::Gone { .. }) => entry = put(outbox, parcel)?,
                Err(error @ LockError::Io { .. }) => return Err(outbox_failure(&error)),
            }
        }
        let ended = self.deliver(parcel).await;
        // The other process may have removed its entry with a receipt that we have not seen.
        let kept = matches!(ended.delivery, Delivery::Recorded(_)) || put(outbox, parcel).is_ok();
        object.ended(&ended, kept)
    }

    /// A receipt is there, so a failing removal is only a nuisance: the entry is delivered once more, and replayed.
    fn settled(&self, settled: Result<bool, OutboxError>, object: &mut PushObject) -> Result<(), Failure> {
        if let Err(error) = settled {
            let warning = format!("{error}; it is recorded, and delivering it again later changes nothing");
            self.output.warning(&warning);
            object.warnings.push(warning);
        }
        Ok(())
    }

    async fn deliver_older(
        &mut self,
        outbox: &Outbox,
        own: &Entry,
        parcel: &Parcel,
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
            if let Err(failure) = self.flush(entry, &mut earlier).await {
                // A refusal says nothing about the fresh one; without an answer the order would be lost.
                if matches!(failure.state, State::NotSent | State::PossiblyWritten) {
                    return Err(behind(entry, &failure));
                }
                let warning = format!("an earlier delivery of this key stays in the outbox: {}", failure.what);
                self.output.warning(&warning);
                object.warnings.push(warning);
            }
        }
        Ok(())
    }

    /// Delivers an entry that an earlier process left, with the sender that it was put with.
    ///
    /// # Errors
    /// It is not recorded.
    pub(crate) async fn flush(&mut self, entry: &Entry, object: &mut PushObject) -> Result<(), Failure> {
        let lock = match entry.lock() {
            Ok(lock) => lock,
            Err(LockError::Gone { path }) => {
                let warning = format!("{} was delivered by another process meanwhile", path.display());
                self.output.note(&warning);
                object.warnings.push(warning);
                // Its receipt is at the destination; delivering the parcel is the one way to see it.
                return Err(Failure::not_sent(&Cause::new("another process took it; it says what came of it"), false));
            }
            Err(LockError::Held { .. }) => {
                return Err(Failure::not_sent(&Cause::new("another process is delivering it right now"), true));
            }
            Err(error @ LockError::Io { .. }) => return Err(outbox_failure(&error)),
        };
        let parcel = entry.load().map_err(|error| outbox_failure(&error))?;
        let ended = self.deliver(&parcel).await;
        let settled = settle(entry, &ended);
        drop(lock);
        object.ended(&ended, true)?;
        self.settled(settled, object)
    }
}

fn behind(entry: &Entry, failure: &Failure) -> Failure {
    let what =
        format!("an earlier delivery of this key ({}) goes first, and: {}", entry.path().display(), failure.what);
    Failure::not_sent(&Cause::new(what), true)
}

/// Keeps a parcel.
///
/// # Errors
/// The outbox cannot keep it.
pub(crate) fn put(outbox: &Outbox, parcel: &Parcel) -> Result<Entry, Failure> {
    outbox.put(parcel).map_err(|error| outbox_failure(&error))
}

/// The outbox cannot do what it is for.
pub(crate) fn outbox_failure(error: &dyn std::fmt::Display) -> Failure {
    Failure::machine(
        error.to_string(),
        "Free space or mend permissions, or name another folder with --outbox; then run the same command again.",
    )
}
