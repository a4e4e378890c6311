//! Outside CI, and what stands in for it: nothing is derived, everything is asked for.
//! Must not guess a run.

use super::platform::{Found, Missing, Platform, Reading, scope};
use super::{Env, IdentityError};

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

/// What a platform says that this version only recognises: its name.
pub(super) fn recognised(platform: &'static Platform) -> Result<Reading, IdentityError> {
    let why = "keeps the runs of different platforms apart";
    let mut reading = Reading {
        scope: Some(Found::new(scope(platform.title, platform.slug, None, None)?, marker(platform), why)),
        ..Reading::default()
    };
    reading.missing.push(Missing::NotDerived(marker(platform)));
    reading.warnings.push(format!(
        "{} is recognised, but this version does not derive its identity: only what the flags give is in the key",
        platform.title
    ));
    Ok(reading)
}

fn marker(platform: &Platform) -> &'static str {
    platform.markers.first().map_or("", |marker| marker.variable())
}
