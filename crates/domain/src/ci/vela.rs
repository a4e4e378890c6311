//! Vela: <https://go-vela.github.io/docs/reference/environment/variables/>.
//! Must not know other platforms.

use super::partition::{self, warn_of_rerun};
use super::platform::{
    Context, Effect, Found, Marker, Missing, Platform, Reading, Strength, renewed, rerun, scope, server_of, shared,
};
use super::{Env, IdentityError, Overrides};
use crate::id::{Commit, WorkflowName};

const TITLE: &str = "Vela";
const SLUG: &str = "vela";

pub(super) const PLATFORM: Platform = Platform {
    slug: SLUG,
    title: TITLE,
    markers: &[Marker::Is("VELA", "true")],
    fallback: &[],
    imitates: &[],
    strength: Strength::Weak,
    read,
    left_out: &[
        renewed("VELA_BUILD_PARENT", "the build that was restarted: it only shows that this is a restart"),
        shared("VELA_BUILD_COMMIT", "two builds of one commit would collapse into one"),
    ],
    reruns: &[
        rerun(
            "Restart build",
            Effect::YouDecide,
            "a new build number, VELA_BUILD_PARENT names the old one: for a retry pass a run of your own as --run, the \
             same in both",
        ),
        rerun("Push, schedule", Effect::NewKey, "a new build number"),
    ],
};

fn read(env: &Env, overrides: &Overrides) -> Result<Reading, IdentityError> {
    let mut reading = Reading { context: context(env), ..Reading::default() };
    let repository = env.get("VELA_REPO_FULL_NAME");
    if repository.is_none() {
        reading.missing.push(Missing::Scope("VELA_REPO_FULL_NAME"));
    }
    // What comes after is the build's own path.
    let own_path = repository.map(|repository| format!("/{repository}/"));
    let url = env.get("VELA_BUILD_LINK").zip(own_path).and_then(|(url, path)| url.split(path.as_str()).next());
    let server = url.and_then(server_of);
    if server.is_none() {
        reading.warnings.push(
            "VELA_BUILD_LINK is not set: builds with the same number of repositories with the same name on two servers \
             would share keys"
                .to_owned(),
        );
    }
    reading.scope = Some(Found::new(
        scope(TITLE, SLUG, server.as_deref(), repository)?,
        "VELA_BUILD_LINK, VELA_REPO_FULL_NAME",
        "the server in the address, and the repository: build numbers count within it",
    ));
    let why = "the same in every step of the build; new for every new build, and for a restart too";
    partition::run(TITLE, env, &mut reading, "VELA_BUILD_NUMBER", why)?;
    let why = "the step's name in the file; pass what tells parts of a step apart as --shard or --variant";
    // A pipeline has stages or steps, and a step's name is its own within its stage only.
    if env.has("VELA_STEP_STAGE") {
        let variables = &["VELA_STEP_STAGE", "VELA_STEP_NAME"];
        partition::job(TITLE, env, &mut reading, variables, "VELA_STEP_STAGE, VELA_STEP_NAME", why)?;
    } else {
        partition::job(TITLE, env, &mut reading, &["VELA_STEP_NAME"], "VELA_STEP_NAME", why)?;
    }
    // A build that nobody restarted says 0.
    if let Some(parent) = env.get("VELA_BUILD_PARENT").filter(|parent| *parent != "0") {
        let earlier = format!("build {parent} (VELA_BUILD_PARENT)");
        warn_of_rerun(overrides, &mut reading, &earlier, "with a value that both builds know if it is to be a retry");
    }
    Ok(reading)
}

fn context(env: &Env) -> Context {
    let pull_request = env.first(&["VELA_PULL_REQUEST", "VELA_BUILD_PULL_REQUEST"]).map(|(_, number)| number);
    Context {
        workflow: workflow(env),
        run_counter: env.get("VELA_BUILD_NUMBER").and_then(|number| number.parse().ok()),
        commit: env.get("VELA_BUILD_COMMIT").and_then(|sha| Commit::parse(sha).ok()),
        branch: env.first(&["VELA_PULL_REQUEST_SOURCE", "VELA_BUILD_BRANCH"]).map(|(_, branch)| branch.to_owned()),
        pull_request: pull_request.filter(|number| *number != "0").map(str::to_owned),
        unnumbered_change: false,
        run_url: env.get("VELA_BUILD_LINK").map(str::to_owned),
        repository: env.get("VELA_REPO_FULL_NAME").map(str::to_owned),
    }
}

/// One file holds all steps, and these events usually start others than a push does: they are workflows of their own,
/// or a nightly round would displace that of a push.
fn workflow(env: &Env) -> Option<WorkflowName> {
    let event = env.get("VELA_BUILD_EVENT").filter(|event| ["schedule", "deployment"].contains(event))?;
    WorkflowName::parse(event).ok()
}
