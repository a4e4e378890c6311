//! `tallyonce drill`: pushes through a link that breaks them, kills, and an audit at the end, on the user's own machine
//! or against a server of their own. Must not hold a rule of what is right: `audit` does.

mod audit;
mod crew;
mod observed;
mod report;
mod script;
mod stage;
mod story;
mod told;

use std::collections::BTreeMap;
use std::path::Path;

use delivery::{Destination, HttpUrl, ProxySettings, Stop};
use domain::ci::Env;
use domain::{CycleName, ProjectId};
use proof::spawn::Binary;
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::cli::{DrillArgs, Globals};
use crate::env::TOKEN;
use crate::exit::Exit;
use crate::failure::{Failure, State};
use crate::interrupt;
use crate::output::Output;
use crate::repository::{Reader, Repository};
use crate::settings::ConnectionSettings;
use audit::{Expected, Fault, Verdict, audit};
use observed::Observed;
use report::Report;
use script::PushScript;
use stage::{Credentials, Given, Halt, Stage};
use story::{Common, Played};

/// The cycle of all pushes.
const CYCLE: &str = "drill";

/// `drill`, resolved.
pub(crate) struct DrillSettings {
    pushes: u32,
    seed: u64,
    to: Option<HttpUrl>,
    keep: bool,
    json: bool,
    connection: ConnectionSettings,
    credentials: Credentials,
}

impl DrillSettings {
    /// From the flags.
    ///
    /// # Errors
    /// The server is none that can be drilled.
    pub(crate) fn resolve(
        args: DrillArgs,
        globals: &Globals,
        connection: ConnectionSettings,
        env: &Env,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let DrillArgs { pushes, seed, to, keep, json } = args;
        // 32 bits are easier to type, and enough.
        let seed = seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
        let to = to.as_deref().map(drillable).transpose()?;
        let mut credentials = Credentials::default();
        if to.is_some() {
            credentials.env.extend(env.get(TOKEN).map(|token| (TOKEN.to_owned(), token.to_owned())));
            let file = globals.token_file.as_ref().map(|file| folder.join(file).display().to_string());
            credentials.flags.extend(file.into_iter().flat_map(|file| ["--token-file".to_owned(), file]));
        }
        Ok(Self { pushes, seed, to, keep, json, connection, credentials })
    }
}

fn drillable(to: &str) -> Result<HttpUrl, Failure> {
    let refused = |what: String| {
        let next = "Give the http:// address of a server, as seen from this machine, or leave --to out: then the drill \
                    starts a server of its own.";
        Failure::usage(format!("--to: {what}"), next)
    };
    match Destination::parse(to) {
        Ok(Destination::Http(url)) if !url.is_https() => Ok(url),
        Ok(Destination::Http(url)) => Err(refused(format!(
            "{url} can't be drilled: the link breaks requests and answers, and can't look inside TLS. Behind a proxy that \
             ends TLS, drill the plain http:// address of the server itself"
        ))),
        Ok(Destination::Sqlite(_)) => Err(refused(
            "a store in a file has no link that could break; its kills are tested with the program".to_owned(),
        )),
        Err(error) => Err(refused(error.to_string())),
    }
}

/// Drills.
///
/// # Errors
/// No server is there, the machine fails, or somebody asked to stop: then nothing is said about the data.
pub(crate) async fn run(settings: DrillSettings, output: Output) -> Result<Exit, Failure> {
    let folder = tempfile::Builder::new().prefix("tallyonce-drill-").tempdir().map_err(machine)?;
    let stop = interrupt::on_every_signal()?;
    let result = drill(&settings, folder.path(), stop, output).await;
    leave(folder, settings.keep, output);
    let report = result?;
    if settings.json {
        output.object(&report);
    } else {
        output.result(&report.table());
    }
    Ok(if report.is_clean() { Exit::Success } else { Exit::Found })
}

fn leave(folder: TempDir, keep: bool, output: Output) {
    if keep {
        output.note(&format!("kept: {}", folder.keep().display()));
    } else if let Err(error) = folder.close() {
        output.warning(&format!("the drill's folder can't be removed: {error}"));
    }
}

async fn drill(settings: &DrillSettings, folder: &Path, stop: Stop, output: Output) -> Result<Report, Failure> {
    let script = script::write(settings.seed, settings.pushes, settings.to.is_none())
        .map_err(|error| machine(error.to_string()))?;
    let project = project(settings)?;
    let (stage, reader) = set_up(settings, &project, folder, stop, output).await?;
    let common = Common { project: project.to_string(), cycle: CYCLE.to_owned() };
    let (played, stage, script) = tokio::task::spawn_blocking(move || {
        let played = crew::perform(&stage, &common, &script, output);
        (played, stage, script)
    })
    .await
    .map_err(machine)?;
    let played = played.map_err(|halt| halted(&halt))?;
    output.note("audit: everything is read back and compared with the reports");
    let mut expected = expect(&script, &played);
    let observed = observe(settings, &project, reader, stage, &script, &mut expected).await?;
    let verdict = audit(&expected.pushes, &observed);
    Ok(count(settings, &project, &played, &expected, &verdict))
}

/// What must be found, and what happened beside the pushes.
struct Expectation {
    pushes: Vec<Expected>,
    server_kills: u32,
    odd_ends: Vec<String>,
}

/// A project of its own. On a server that stays, no other drill has had it, not even one of the same seed.
fn project(settings: &DrillSettings) -> Result<ProjectId, Failure> {
    let name = match settings.to {
        None => format!("drill-{}", settings.seed),
        Some(_) => format!("drill-{}-{:06x}", settings.seed, rand::random::<u32>() >> 8),
    };
    ProjectId::parse(&name).map_err(machine)
}

/// The server, and somebody who asks it past every link.
async fn set_up(
    settings: &DrillSettings,
    project: &ProjectId,
    folder: &Path,
    stop: Stop,
    output: Output,
) -> Result<(Stage, Option<Reader>), Failure> {
    let binary = std::env::current_exe().map_err(machine)?;
    let binary = Binary::at(binary).map_err(|error| machine(format!("{error:#}")))?;
    let (pushes, seed) = (settings.pushes, settings.seed);
    let Some(url) = &settings.to else {
        output.note(&format!(
            "drill with seed {seed}: {pushes} pushes to a server of its own, over a store that is thrown away"
        ));
        let stage = Stage::with_own_server(folder, binary, Handle::current(), stop);
        return Ok((stage.map_err(|halt| halted(&halt))?, None));
    };
    output.note(&format!(
        "drill with seed {seed}: {pushes} pushes to {url}, into project {project}, which stays there; the server is not killed"
    ));
    let reader = Repository::prepare(&Destination::Http(url.clone()), &settings.connection)?.reader()?;
    // Before anything is pushed: a server that can't be asked can't be judged.
    observed::ask(&reader, project, &cycle()?).await.map_err(unreachable)?;
    let given = given(url, settings.credentials.clone()).await?;
    Ok((Stage::before(folder, binary, Handle::current(), stop, given), Some(reader)))
}

fn cycle() -> Result<CycleName, Failure> {
    CycleName::parse(CYCLE).map_err(machine)
}

async fn given(url: &HttpUrl, credentials: Credentials) -> Result<Given, Failure> {
    let text = url.to_string();
    let bare = text.strip_prefix("http://").unwrap_or(&text);
    let (host, base) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    // An address in brackets ends in one; a port follows the last colon.
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let with_port = if has_port { host.to_owned() } else { format!("{host}:80") };
    let mut found = tokio::net::lookup_host(&with_port).await.map_err(machine)?;
    let addr = found.next().ok_or_else(|| machine(format!("{host} has no address")))?;
    Ok(Given { addr, host: host.to_owned(), base: base.to_owned(), credentials })
}

fn expect(script: &[PushScript], played: &[Played]) -> Expectation {
    let pushes = script.iter().zip(played).map(|(push, played)| Expected {
        key: push.key.to_string(),
        round: push.round.to_string(),
        items: push.counting(),
        flaky: push.flaky(),
        attempts: push.reports.len(),
        tellings: played.tellings.clone(),
        kept: played.kept,
        accepted: crew::accepted(&played.events),
    });
    Expectation { pushes: pushes.collect(), server_kills: 0, odd_ends: Vec::new() }
}

/// Asks the server; then ends it, if it is ours, and reads its tables.
async fn observe(
    settings: &DrillSettings,
    project: &ProjectId,
    reader: Option<Reader>,
    stage: Stage,
    script: &[PushScript],
    expected: &mut Expectation,
) -> Result<Observed, Failure> {
    let cycle = cycle()?;
    if let Some(reader) = reader {
        return observed::ask(&reader, project, &cycle).await;
    }
    let url = HttpUrl::parse(&stage.direct_url()).map_err(machine)?;
    let reader = Repository::prepare(&Destination::Http(url), &plain(settings))?.reader()?;
    let mut observed = observed::ask(&reader, project, &cycle).await?;
    let store = stage.store();
    expected.server_kills = stage.server_kills();
    expected.odd_ends = tokio::task::spawn_blocking(move || stage.close()).await.map_err(machine)?;
    let mut rounds: Vec<String> = script.iter().map(|push| push.round.to_string()).collect();
    rounds.extend(observed.rounds.keys().cloned());
    rounds.sort();
    rounds.dedup();
    observed.tables = Some(observed::read_tables(&store, project.as_str(), CYCLE, &rounds).await);
    Ok(observed)
}

/// How our own server is reached: directly, without anything that is meant for others.
fn plain(settings: &DrillSettings) -> ConnectionSettings {
    ConnectionSettings {
        ca_file: None,
        client_identity: None,
        timeout: settings.connection.timeout,
        token: None,
        proxy: ProxySettings::default(),
    }
}

fn count(
    settings: &DrillSettings,
    project: &ProjectId,
    played: &[Played],
    expected: &Expectation,
    verdict: &Verdict,
) -> Report {
    let events = || played.iter().flat_map(|played| &played.events);
    let mut faults: BTreeMap<&'static str, u64> = script::faults().into_iter().map(|fault| (fault.name(), 0)).collect();
    for fault in events().filter_map(|event| event.fault) {
        *faults.entry(fault.name()).or_default() += 1;
    }
    let odd = expected.odd_ends.iter().map(|words| format!("unexplained: {words}"));
    let findings = verdict.findings.iter().map(|finding| format!("{}: {}", finding.fault.word(), finding.what));
    Report {
        pushes: played.len() as u64,
        deliveries: events().filter(|event| crew::is_delivery(event)).count() as u64,
        recorded: verdict.recorded,
        replayed: verdict.replayed,
        doubled: verdict.count(Fault::Doubled),
        lost: verdict.count(Fault::Lost),
        suppressed: verdict.count(Fault::Suppressed),
        unexplained: verdict.count(Fault::Unexplained) + expected.odd_ends.len() as u64,
        faults,
        revised: verdict.revised,
        outcomes: verdict.outcomes,
        server_kills: u64::from(expected.server_kills),
        client_kills: played.iter().map(|played| u64::from(played.client_kills)).sum(),
        seed: settings.seed,
        to: settings.to.as_ref().map(ToString::to_string),
        project: project.to_string(),
        findings: odd.chain(findings).collect(),
    }
}

fn halted(halt: &Halt) -> Failure {
    match halt {
        Halt::Stopped => nothing_said("interrupted", "Start it again; it begins anew."),
        Halt::Machine(what) => machine(what),
    }
}

fn machine(error: impl std::fmt::Display) -> Failure {
    let next =
        "Free what is missing (processes, ports, memory, disk), and start it again, perhaps with fewer --pushes.";
    nothing_said(&error.to_string(), next)
}

/// A server that gives no answer, or refuses us.
fn unreachable(failure: Failure) -> Failure {
    let exit = if failure.exit == Exit::NotConfirmed { Exit::NotConfirmed } else { Exit::Usage };
    Failure { exit, means: "Nothing was pushed.".to_owned(), ..failure }
}

fn nothing_said(what: &str, next: &str) -> Failure {
    Failure {
        exit: Exit::NotConfirmed,
        state: State::NotSent,
        code: None,
        what: format!("the drill did not come to its end: {what}"),
        details: Vec::new(),
        means: "The drill says nothing about what it was to show. Only its own pushes were made.".to_owned(),
        next: next.to_owned(),
    }
}
