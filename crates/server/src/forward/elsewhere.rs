//! A target whose settings name another place than its ledger stands for: nothing goes there, and that is said in the log and
//! with the push that waits. Must not decide which of the two is right: a person does.

use delivery::foreign::BookError;
use store::StoreError;

use super::rest::Hurdle;
use super::worker::{Broken, Did, Session, Worker};
use crate::place;

impl Worker {
    /// What became of the oldest push that waits, if nothing may go there; `None` if all may go on.
    pub(super) async fn elsewhere(&mut self, session: &Session, now_ms: u64) -> Result<Option<Did>, Broken> {
        let settings = &self.target.settings;
        let error = match place::bind(&*self.store, &settings.name, session.turn, &settings.place()).await {
            Ok(()) => return Ok(None),
            Err(BookError::Broken(what)) => return Err(StoreError::NotWritten { what }),
            Err(error @ BookError::OtherPlace { .. }) => error,
            Err(_) => return Ok(Some(Did::Leave)),
        };
        tracing::error!(target = self.name(), %error, "nothing is forwarded");
        if let Some(waiting) = self.next(now_ms).await? {
            let due_ms = now_ms.saturating_add(self.terms.backoff_ms(waiting.tries));
            if !self.store.put_off(session.turn.0, &waiting, due_ms, &error.to_string()).await? {
                return Ok(Some(Did::Leave));
            }
            self.app.board.put_off(self.name());
        }
        Ok(Some(Did::Failed(Hurdle::Denied)))
    }
}
