//! Why no identity can be derived, in words that say what to do. Must not decide anything.

use thiserror::Error;

use crate::id::IdError;
use crate::key::ScopeError;

/// What a good run value is: said wherever one is asked for.
const TEACH: &str = "The run names one execution of the suite. It must be the same whenever this push is tried again, or \
    the outcomes are counted twice; and it must be new for every real run, or a real run is taken for a retry of an \
    earlier one and is never recorded.\n\
    \n\
    Good: the run or build id of whatever started the tests, or an id that you make once, before the tests run, and \
    keep beside the report: --run \"nightly-$(cat run-id)\".\n\
    Bad: a date or time, or a random value made at the push: every retry is a new write.\n\
    Bad: a commit SHA or a branch name: two real runs of one commit collapse into one, silently.\n\
    Bad: a hash of the report: a retry that runs the tests again has other durations, and so another hash.\n\
    Bad: an attempt number: it changes with every retry.\n\
    \n\
    `tallyonce key --run VALUE --check` judges a value.";

/// Why the environment and the flags give no identity.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdentityError {
    /// Outside CI nothing names the run.
    #[error("no CI platform is recognised here, so --run is required.\n\n{TEACH}")]
    RunRequired,
    /// `act` imitates GitHub Actions with invented numbers.
    #[error(
        "this is `act` (ACT=true), a local imitation of GitHub Actions, whose run id is no real one; it counts as \
         outside CI, so --run is required.\n\n{TEACH}"
    )]
    ImitationNeedsRun,
    /// The platform is recognised, but a variable that it always sets is not there.
    #[error(
        "this is {platform}, but {variable} is not set, so the {part} is unknown; without it different work would share \
         a key. If this runs in a container, forward the variable into it; else pass {flag}"
    )]
    MissingVariable {
        /// The platform's name.
        platform: &'static str,
        /// The variable that is missing.
        variable: &'static str,
        /// Which part of the key it gives.
        part: &'static str,
        /// The flag that gives it instead.
        flag: &'static str,
    },
    /// The platform tells the process no run.
    #[error("{platform} tells this process nothing that names the run, so --run is required. {how}")]
    NoRun {
        /// The platform's name.
        platform: &'static str,
        /// How to pass one.
        how: &'static str,
    },
    /// The platform tells the process no job, and several jobs of a run may push.
    #[error("{platform} tells this process nothing that names the job, so --job is required. {how}")]
    NoJob {
        /// The platform's name.
        platform: &'static str,
        /// How to pass one.
        how: &'static str,
    },
    /// A variable holds what its part of the key cannot be.
    #[error("{platform}: {variable} cannot be used: {source}")]
    BadVariable {
        /// The platform's name.
        platform: &'static str,
        /// The variable.
        variable: &'static str,
        /// What is wrong with its value.
        source: IdError,
    },
    /// The variables that make the scope hold what a scope cannot be.
    #[error("{platform}: {source}")]
    BadScope {
        /// The platform's name.
        platform: &'static str,
        /// What is wrong.
        source: ScopeError,
    },
    /// The leg of a matrix that was handed over cannot be read.
    #[error(
        "{variable} cannot be used: {reason}. It must be what toJSON(matrix) gives, a JSON object; without it the legs of \
         a matrix would share one key"
    )]
    BadMatrix {
        /// The variable.
        variable: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
}
