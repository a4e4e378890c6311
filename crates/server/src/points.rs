//! Named steps of the operations that write: in a build with `failpoints` proof can kill, hold or count a process at each
//! of them (`server:put:k2`). Must not do anything in a release.

/// An operation that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A whole push in one request.
    OneShot,
    /// The manifest of a staged push.
    Begin,
    /// One chunk.
    Put,
    /// The end of a staged push.
    Commit,
    /// The end of a staged push that is given up.
    Cancel,
}

/// A step of an operation, in this order. Steps k3 to k6 are the store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The handler begins: nothing of head or body is read.
    K0,
    /// At least half of the body is there.
    K1,
    /// The whole body is there, and its digest fits.
    Received,
    /// There is a place to decode it in.
    Placed,
    /// It is decoded.
    Decoded,
    /// What was decoded may wait for the store.
    Held,
    /// All is checked, and the store is asked next.
    K2,
    /// The store has answered; nothing of the answer is made.
    Stored,
    /// The answer is ready to leave.
    Answered,
    /// Half of the answer has left; only such a build sends it in halves.
    #[cfg(feature = "failpoints")]
    K7,
}

#[cfg(feature = "failpoints")]
impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::OneShot => "one-shot",
            Self::Begin => "begin",
            Self::Put => "put",
            Self::Commit => "commit",
            Self::Cancel => "cancel",
        }
    }
}

#[cfg(feature = "failpoints")]
impl Step {
    fn word(self) -> &'static str {
        match self {
            Self::K0 => "k0",
            Self::K1 => "k1",
            Self::Received => "received",
            Self::Placed => "placed",
            Self::Decoded => "decoded",
            Self::Held => "held",
            Self::K2 => "k2",
            Self::Stored => "stored",
            Self::Answered => "answered",
            Self::K7 => "k7",
        }
    }
}

/// True if something is to happen at this step.
#[cfg(feature = "failpoints")]
pub(crate) fn armed(operation: Operation, step: Step) -> bool {
    let named = name(operation, step);
    fail::list().iter().any(|(point, _)| *point == named || (operation == Operation::OneShot && point == step.word()))
}

#[cfg(feature = "failpoints")]
fn name(operation: Operation, step: Step) -> String {
    format!("server:{}:{}", operation.word(), step.word())
}

/// The process has come to this step. Steps of a push in one request have their short name too, where it is not the
/// connection's (`k0`).
#[cfg(feature = "failpoints")]
pub(crate) fn point(operation: Operation, step: Step) {
    if operation == Operation::OneShot && step != Step::K0 {
        fail::fail_point!(step.word());
    }
    fail::fail_point!(&name(operation, step));
}

/// The process has come to this step.
#[cfg(not(feature = "failpoints"))]
pub(crate) fn point(_operation: Operation, _step: Step) {}
