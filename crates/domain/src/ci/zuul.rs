//! Zuul: <https://zuul-ci.org/docs/zuul/latest/job-content.html>. All that names the run are Ansible variables, so it is
//! only named, never recognised. Must not know other platforms.

use super::platform::{Effect, Platform, Reading, Strength, rerun};
use super::{Env, IdentityError, Overrides, unmarked};

const HOW: &str = "Write Ansible's variables into the task that pushes: --run \"{{ zuul.buildset }}\" --job \"{{ zuul.job }}\" \
                   --attempt \"{{ zuul.attempts }}\", and a variable of your own as --shard I/N. Never {{ zuul.build }}: \
                   another attempt has another.";

pub(super) const PLATFORM: Platform = Platform {
    slug: "zuul",
    title: "Zuul",
    markers: &[],
    fallback: &[],
    imitates: &[],
    strength: Strength::None,
    read,
    left_out: &[],
    reruns: &[
        rerun(
            "Another attempt after an unreachable node or a failed pre-run",
            Effect::SameKey,
            "zuul.build changes, zuul.attempts rises, the buildset stays",
        ),
        rerun("recheck", Effect::NewKey, "a new buildset"),
    ],
};

fn read(_env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    Ok(unmarked::reading(overrides, HOW))
}
