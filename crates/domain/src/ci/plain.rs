//! Outside CI, and what stands in for it: nothing is derived, everything is asked for.
//! Must not guess a run.

use super::Env;
use super::platform::Reading;

/// What the environment says outside CI: nothing, with a warning where it claims to be CI.
pub(super) fn read(env: &Env, imitation: bool) -> Reading {
    let mut reading = Reading::default();
    if imitation {
        reading.warnings.push("ACT=true: a local imitation of GitHub Actions counts as outside CI".to_owned());
    } else if super::says_ci(env) {
        reading.warnings.push(
            "CI is set, but no platform is recognised: only what the flags give is in the key. If this runs in a \
             container, forward the platform's variables into it"
                .to_owned(),
        );
    }
    reading
}
