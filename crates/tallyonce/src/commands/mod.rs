//! One file per command, and the one place that resolves settings and hands over. Must not print but through `Output`.

pub(crate) mod drill;
pub(crate) mod flush;
pub(crate) mod key;
pub(crate) mod man;
pub(crate) mod push;
pub(crate) mod rounds;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod summary;
pub(crate) mod targets;

use clap::ArgMatches;
use delivery::foreign::TargetName;
use domain::{CycleName, ProjectId};

use crate::cli::{Cli, CloseArgs, Command, ForwardsArgs, Globals, PromoteArgs, PushArgs, ShowArgs, WaitArgs};
use crate::env::Surroundings;
use crate::exit::{Code, Exit};
use crate::failure::Failure;
use crate::interrupt;
use crate::object::PushObject;
use crate::output::Output;
use crate::repository::Repository;
use crate::settings::key::KeySettings;
use crate::settings::place::{Hints, PlaceSettings};
use crate::settings::push::{self as push_settings, FlushSettings, PushSettings};
use crate::settings::run::RunSettings;
use crate::settings::{ConfigFile, ConnectionSettings, Layers, Source};

/// Where a command that reads or decides looks.
pub(crate) struct Place {
    /// The repository.
    pub repository: Repository,
    /// The project.
    pub project: ProjectId,
    /// The cycle, or why it is unknown: not every command needs it.
    pub cycle: Result<CycleName, Failure>,
}

/// What every command is given.
struct Context<'a> {
    globals: &'a Globals,
    layers: Layers<'a>,
    around: &'a Surroundings,
    output: Output,
}

impl Context<'_> {
    fn connection(&self) -> Result<ConnectionSettings, Failure> {
        ConnectionSettings::resolve(self.globals, &self.layers, &self.around.env)
    }

    /// Within the runtime, where signals are heard.
    fn desk(&self) -> Result<targets::Desk<'_>, Failure> {
        Ok(targets::Desk {
            file: self.layers.file(),
            env: &self.around.env,
            connection: self.connection()?,
            output: self.output,
            stop: interrupt::on_signals()?,
        })
    }

    fn place(
        &self,
        id: &'static str,
        to: Option<String>,
        project: Option<ProjectId>,
        cycle: Option<CycleName>,
    ) -> Result<Place, Failure> {
        let given = to.is_some();
        let mut settings = PlaceSettings::resolve(id, to, project, cycle, &self.layers)?;
        if id == "from" {
            settings = settings.or_where_pushes_go(given, &self.around.env, &self.layers)?;
        }
        let hints = Hints::guess(&self.around.env);
        let destination = settings.destination(&hints)?.value;
        Ok(Place {
            repository: Repository::prepare(&destination, &self.connection()?)?,
            project: settings.project(&hints, &self.around.folder)?.value,
            cycle: settings.cycle(&hints).map(|setting| setting.value),
        })
    }
}

/// Runs the command.
///
/// # Errors
/// It failed; the failure says with which code to exit.
pub(crate) fn run(cli: Cli, matches: &ArgMatches, around: &Surroundings, output: Output) -> Result<Code, Failure> {
    let wants_object = match &cli.command {
        Command::Push(args) => args.send.json,
        Command::Run(args) => args.send.json,
        Command::Flush(args) => args.json,
        _ => false,
    };
    match dispatch(cli, matches, around, output) {
        Ok(code) => Ok(code),
        Err(Ended { failure, said }) => {
            if wants_object && !said {
                let mut object = PushObject::new();
                object.fails(&failure);
                output.object(&object);
            }
            Err(failure)
        }
    }
}

/// A failure, and whether the command has printed its object already.
struct Ended {
    failure: Failure,
    said: bool,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self { failure, said: false }
    }
}

fn dispatch(cli: Cli, matches: &ArgMatches, around: &Surroundings, output: Output) -> Result<Code, Ended> {
    let Cli { globals, command } = cli;
    let typed = matches.subcommand().map_or(matches, |(_, typed)| typed);
    match command {
        Command::Completions { shell } => return Ok(man::completions(shell, output).into()),
        Command::Man { command, dir } => return Ok(man::man(command.as_deref(), dir.as_deref(), output)?.into()),
        _ => {}
    }
    let file = ConfigFile::find(globals.config.as_deref(), &around.folder)?;
    let context = Context { globals: &globals, layers: Layers::new(typed, file.as_ref()), around, output };
    match command {
        Command::Run(args) => {
            let settings = RunSettings::resolve(*args, &context.layers, context.connection()?)?;
            let run = client(run::run(&settings, around, output))?;
            run.map_err(|failure| Ended { failure, said: true })
        }
        command => carry_out(command, &context).map(Code::from),
    }
}

/// Every other command.
fn carry_out(command: Command, context: &Context<'_>) -> Result<Exit, Ended> {
    let Context { globals, around, output, .. } = *context;
    match command {
        Command::Push(args) => {
            let PushArgs { paths, send } = *args;
            let settings = PushSettings::resolve(paths, send, &context.layers, context.connection()?)?;
            let run = client(push::run(&settings, around, output))?;
            run.map_err(|failure| Ended { failure, said: true })
        }
        Command::Flush(args) => {
            let settings = FlushSettings::resolve(args, &context.layers, context.connection()?)?;
            Ok(client(flush::run(&settings, around, output))??)
        }
        Command::Key(args) => Ok(key::run(&KeySettings::resolve(args, &context.layers, &around.env)?, output)?),
        Command::Serve(args) => {
            let settings = serve::ServeSettings::resolve(args, &context.layers, globals.verbose)?;
            let (file, connection) = (context.layers.file(), context.connection()?);
            Ok(served(serve::serve(settings, file, &around.env, &connection, output))??)
        }
        Command::CheckStore(args) => Ok(client(serve::check_store(args, &context.layers, output))??),
        Command::Drill(args) => {
            let connection = context.connection()?;
            let settings = drill::DrillSettings::resolve(args, globals, connection, &around.env, &around.folder)?;
            Ok(served(drill::run(settings, output))??)
        }
        Command::Probe(args) => Ok(client(async { targets::probe(args, context.desk()?).await })??),
        Command::Audit(args) => Ok(client(async { targets::audit(args, context.desk()?).await })??),
        Command::Repair(args) => Ok(client(async { targets::repair(args, context.desk()?).await })??),
        Command::Forwards(args) => Ok(forwards(args, context)?),
        Command::Show(args) => Ok(show(args, context)?),
        Command::Promote(args) => Ok(promote(args, context)?),
        Command::Close(args) => Ok(close(args, context)?),
        Command::Wait(args) => Ok(wait(args, context)?),
        Command::Completions { .. } | Command::Man { .. } | Command::Run(_) => Ok(Exit::Success),
    }
}

fn forwards(mut args: ForwardsArgs, context: &Context<'_>) -> Result<Exit, Failure> {
    let looks = looks(&mut args, context)?;
    client(async { targets::forwards(args, looks, context.desk()?).await })?
}

/// A server is asked by its address; everything else is a target of the file. What a variable says of where pushes go may
/// be anything, and then says nothing here.
fn looks(args: &mut ForwardsArgs, context: &Context<'_>) -> Result<targets::Looks, Failure> {
    let Some(to) = args.to.take() else { return Ok(targets::Looks::AtLedgers) };
    let source = context.layers.typed_source("to");
    let is_typed = matches!(source, Source::Flag(_));
    let refused = |what: String| {
        let next =
            "Give --to a server's address (http://… or https://…), or name a target of tallyonce.toml with --target.";
        Err(Failure::usage(format!("{source}: {what}"), next))
    };
    if to.contains("://") && !to.starts_with("sqlite:") {
        let place = context.place("to", Some(to), args.project.clone(), args.cycle.clone())?;
        return Ok(targets::Looks::AtServer(Box::new(place)));
    }
    match (TargetName::parse(&to), &args.target) {
        (Ok(named), None) => args.target = Some(named),
        (Ok(named), Some(target)) if is_typed && named != *target => {
            return refused(format!("{named} and --target {target} are two targets"));
        }
        (Err(_), _) if is_typed => {
            return refused(format!("{to:?} is neither a server's address nor a target's name"));
        }
        _ => {}
    }
    Ok(targets::Looks::AtLedgers)
}

fn show(args: ShowArgs, context: &Context<'_>) -> Result<Exit, Failure> {
    let ShowArgs { from, project, cycle, round, items, revisions, status, format } = args;
    let place = context.place("from", from, project, cycle)?;
    let wish = show::Wish { round, items, revisions, status, format };
    client(show::run(place, &wish, context.output))?
}

fn promote(args: PromoteArgs, context: &Context<'_>) -> Result<Exit, Failure> {
    let PromoteArgs { key, round, revision, exact, to, project, cycle } = args;
    let place = context.place("to", to, project, cycle)?;
    let what = match (key, round) {
        (Some(key), _) => rounds::Promoted::Key(key),
        (None, round) => rounds::Promoted::Round(round.unwrap_or_default()),
    };
    client(rounds::promote(place, what, revision, exact, context.output))?
}

fn close(args: CloseArgs, context: &Context<'_>) -> Result<Exit, Failure> {
    let CloseArgs { round, to, project, cycle } = args;
    let settings = PlaceSettings::resolve("to", to.clone(), project.clone(), cycle.clone(), &context.layers)?;
    if let Some(section) = settings.target().cloned() {
        let hints = Hints::guess(&context.around.env);
        let project = settings.project(&hints, &context.around.folder)?.value;
        let cycle = settings.cycle(&hints)?.value;
        let outbox = push_settings::outbox_of_pushes(&context.around.env, &context.layers);
        let there = targets::RoundThere { section, project, cycle, round, outbox };
        return client(async { targets::close(there, context.desk()?).await })?;
    }
    let place = context.place("to", to, project, cycle)?;
    client(rounds::close(place, &round, context.output))?
}

fn wait(args: WaitArgs, context: &Context<'_>) -> Result<Exit, Failure> {
    let WaitArgs { round: CloseArgs { round, to, project, cycle }, deadline } = args;
    let deadline = push_settings::deadline(deadline, &context.layers).value;
    let place = context.place("to", to, project, cycle)?;
    client(rounds::wait(place, &round, deadline, context.output))?
}

/// One thread is enough for a client, and starts faster.
fn client<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.map_err(|error| no_runtime(&error))?.block_on(work))
}

fn served<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    Ok(runtime.map_err(|error| no_runtime(&error))?.block_on(work))
}

fn no_runtime(error: &std::io::Error) -> Failure {
    Failure::machine(format!("the runtime cannot start: {error}"), "Free resources of this machine, and try again.")
}
