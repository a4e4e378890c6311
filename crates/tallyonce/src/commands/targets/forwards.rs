//! `tallyonce forwards`: what is on its way to targets, what arrived, and what a person has to look at. Must not judge.

use std::fmt::Write as _;

use delivery::foreign::TargetName;
use domain::intent::{Intent, IntentId};
use domain::listing::{ForwardsReport, IntentReport};
use server::ForwardsQuery;
use store::{IntentQuery, Store};

use super::Desk;
use crate::cli::ForwardsArgs;
use crate::commands::Place;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::forward::{self, Forwarding};
use crate::repository::Reader;
use crate::settings::push::DEADLINE;
use crate::settings::target::TargetSection;

/// Where `forwards` looks.
pub(crate) enum Looks {
    /// At what the file's targets have: the ledger of each.
    AtLedgers,
    /// At a server.
    AtServer(Box<Place>),
}

/// What a person says of an intent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict<'a> {
    /// Read it back again, and send what is missing.
    TakeUp(IntentId),
    /// It stays as it is, and why.
    Leave(IntentId, &'a str),
}

impl Verdict<'_> {
    /// Of which intent.
    pub(crate) fn id(self) -> IntentId {
        match self {
            Verdict::TakeUp(id) | Verdict::Leave(id, _) => id,
        }
    }
}

/// Lists intents, and what waits to become some. Exit 7 if one is uncertain, parked or flagged as wrong.
///
/// # Errors
/// A ledger can't be read, or the server doesn't answer.
pub(crate) async fn forwards(args: ForwardsArgs, looks: Looks, desk: Desk<'_>) -> Result<Exit, Failure> {
    let query = ForwardsQuery {
        target: args.target.as_ref().map(ToString::to_string),
        project: args.project.clone(),
        cycle: args.cycle.clone(),
        state: args.state,
        limit: None,
    };
    let report = match looks {
        Looks::AtServer(_) if args.sweep => {
            return Err(Failure::usage(
                "a server reads back by itself: an hour and a day after it was sent",
                "Leave --sweep out; or run it where the server's tallyonce.toml is.",
            ));
        }
        Looks::AtServer(_) if args.moved || verdict(&args).is_some() => {
            return Err(Failure::usage(
                "--resume, --give-up and --moved work on a ledger, and a server's is its store",
                "Run them where the server's tallyonce.toml is.",
            ));
        }
        Looks::AtServer(place) => {
            let query = ForwardsQuery { project: Some(place.project), ..query };
            place.repository.reader()?.listed_forwards(&query).await?
        }
        Looks::AtLedgers => at_ledgers(&args, &query, &desk).await?,
    };
    if args.json {
        desk.output.object(&report);
    } else {
        desk.output.text(&text(&report));
    }
    Ok(if report.forwards.iter().any(IntentReport::is_in_doubt) { Exit::Forwarding } else { Exit::Success })
}

async fn at_ledgers(args: &ForwardsArgs, query: &ForwardsQuery, desk: &Desk<'_>) -> Result<ForwardsReport, Failure> {
    let file = desk.file()?;
    let names: Vec<TargetName> = match &args.target {
        Some(name) => vec![name.clone()],
        None => file.target.keys().cloned().collect(),
    };
    if args.moved && args.target.is_none() {
        return Err(Failure::usage("--moved is said of one target", "Name it: --target NAME."));
    }
    let (mut forwards, mut said) = (Vec::new(), None);
    for name in names {
        let section = file.target(&name)?;
        if args.moved {
            moved(&section, args, desk).await?;
        }
        if let Some(verdict) = verdict(args)
            && let Some(parked) = by_id(&section, verdict.id()).await?
        {
            let mut forwarding = Forwarding::prepare(&section, desk.env, &desk.connection, desk.output)?;
            // What is taken up again is sent like a push; what is left sends nothing.
            if matches!(verdict, Verdict::TakeUp(_)) {
                forwarding = forwarding.granted(false)?;
                forwarding.doubt().into_iter().for_each(|doubt| desk.output.warning(doubt));
            }
            forwarding.decide(parked, verdict, args.deadline.unwrap_or(DEADLINE), &desk.stop).await?;
            said = Some(name.clone());
        }
        if args.sweep {
            let forwarding = Forwarding::prepare(&section, desk.env, &desk.connection, desk.output)?;
            forwarding.sweep(args.deadline.unwrap_or(DEADLINE), &desk.stop).await?;
        }
        if let Some(ledger) = forward::existing_ledger(&section.ledger()?)? {
            warn_of_another_place(&section, &*ledger, desk).await?;
            let query = ForwardsQuery { target: Some(name.to_string()), ..query.clone() };
            forwards.extend(Reader::Embedded(ledger).listed_forwards(&query).await?.forwards);
        }
    }
    if let (Some(verdict), None) = (verdict(args), said) {
        return Err(Failure::usage(
            format!("no ledger of these targets has {}", verdict.id()),
            "Take the id from `tallyonce forwards --json`, where the push was made or its ledger was kept.",
        ));
    }
    Ok(ForwardsReport::new(forwards))
}

/// The target is at another address, or its project has another name, and is the same all the same.
async fn moved(section: &TargetSection, args: &ForwardsArgs, desk: &Desk<'_>) -> Result<(), Failure> {
    let forwarding = Forwarding::prepare(section, desk.env, &desk.connection, desk.output)?;
    let before = forwarding.move_here(args.deadline.unwrap_or(DEADLINE), &desk.stop).await?;
    let before = before.map_or_else(|| "none yet".to_owned(), |place| place.to_string());
    let now = forwarding.target().settings.place();
    desk.output.note(&format!("{}: its ledger stands for {now} now; before: {before}", section.name));
    Ok(())
}

/// What is listed may be of another place than the file names. Without the variables of the file nobody can tell.
async fn warn_of_another_place(section: &TargetSection, ledger: &dyn Store, desk: &Desk<'_>) -> Result<(), Failure> {
    let Ok(target) = section.resolve(desk.env) else { return Ok(()) };
    let known = ledger.place(section.name.as_str()).await.map_err(|error| Failure::store(&error))?;
    let now = target.settings.place();
    if let Some(known) = known.filter(|known| *known != now) {
        let failure = Failure::other_place(&section.name, &known, &now);
        desk.output.warning(&format!("{}. {}", failure.what, failure.next));
    }
    Ok(())
}

/// What a person says of one intent.
fn verdict(args: &ForwardsArgs) -> Option<Verdict<'_>> {
    match (args.resume, args.give_up, &args.because) {
        (Some(id), ..) => Some(Verdict::TakeUp(id)),
        (None, Some(id), Some(why)) => Some(Verdict::Leave(id, why)),
        _ => None,
    }
}

async fn by_id(section: &TargetSection, id: IntentId) -> Result<Option<Intent>, Failure> {
    let Some(ledger) = forward::existing_ledger(&section.ledger()?)? else { return Ok(None) };
    let query = IntentQuery { ids: vec![id], target: Some(section.name.to_string()), ..IntentQuery::default() };
    Ok(ledger.intents(query).await.map_err(|error| Failure::store(&error))?.pop())
}

fn text(report: &ForwardsReport) -> String {
    let mut text = String::new();
    for one in &report.forwards {
        let _ = write!(text, "{:<12} {:<12} {}", one.target, one.state, one.key);
        if let Some(waiting) = &one.waiting {
            let _ = write!(text, ", revision {}, tried {} times", waiting.revision, waiting.tries);
        } else {
            let there = one.cycle_there.as_deref().unwrap_or("-");
            let _ = write!(text, " part {}, {} cases, there {there}, sent {} times", one.number, one.cases, one.sends);
        }
        for flag in &one.flags {
            let _ = write!(text, ", {flag}");
        }
        if !one.refused.is_empty() {
            let _ = write!(text, ", {} items of them refused", one.refused.len());
        }
        let is_over = one.state.is_settled() && one.state != domain::intent::IntentState::Parked;
        let cause = one.cause.as_deref().filter(|_| !is_over);
        if let Some(id) = one.id.filter(|_| one.is_in_doubt()) {
            let _ = write!(text, ", id {id}");
        }
        let _ = writeln!(text, "{}", cause.map(|cause| format!(": {cause}")).unwrap_or_default());
    }
    let states: Vec<String> = report.states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let all = if states.is_empty() { "nothing was forwarded from here".to_owned() } else { states.join(", ") };
    let shown = if report.more { format!("of the {} shown: ", report.forwards.len()) } else { String::new() };
    let _ = writeln!(text, "{shown}{all}");
    if report.more {
        let _ = writeln!(
            text,
            "there are more, none of them in greater doubt: narrow the question with --state, --target or --cycle"
        );
    }
    for (flag, count) in &report.flags {
        let _ = writeln!(text, "{flag} ({count}): {}", forward::meaning(*flag));
    }
    text
}
