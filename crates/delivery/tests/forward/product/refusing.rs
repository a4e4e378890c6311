//! What the product refuses whatever the outcomes, as a test says. Must not know the calls.

use delivery::foreign::{CycleId, Trouble};

use super::Product;

impl Product {
    pub(super) fn if_there(&self, cycle: &CycleId) -> Result<(), Trouble> {
        let gone = self.deleted.lock().unwrap().contains(cycle);
        // As some products say it, in a form of their own.
        if gone { Err(Trouble::Refused(format!("{cycle} is not a valid cycle"))) } else { Ok(()) }
    }

    pub(super) fn if_it_answers(&self) -> Result<(), Trouble> {
        let refuses = *self.refuses.lock().unwrap();
        if refuses { Err(Trouble::Refused("statuses.passed: no such status".to_owned())) } else { Ok(()) }
    }

    pub(super) fn if_taken(&self) -> Result<(), Trouble> {
        if *self.refuses_cycles.lock().unwrap() {
            Err(Trouble::Refused("the project is closed".to_owned()))
        } else {
            Ok(())
        }
    }
}
