//! What run means by its flags, beyond those of push. Must not look for reports or start anything.

use std::ffi::OsString;

use super::push::PushSettings;
use super::{ConnectionSettings, Layers, Setting, Source};
use crate::cli::{ExitWith, RunArgs};
use crate::failure::Failure;

/// `tallyonce run`, resolved.
#[derive(Debug)]
pub(crate) struct RunSettings {
    /// The push that follows. Its paths are the reports; none: they are looked for.
    pub push: PushSettings,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// Whose exit code counts.
    pub exit_with: Setting<ExitWith>,
}

impl RunSettings {
    /// From the flags over the file.
    ///
    /// # Errors
    /// A value cannot be used; the message says where it came from.
    pub(crate) fn resolve(args: RunArgs, layers: &Layers<'_>, connection: ConnectionSettings) -> Result<Self, Failure> {
        let RunArgs { command, report, exit_with, send } = args;
        // In the variable they stand one a line: a comma may be part of a name.
        let report = match layers.typed_source("report") {
            Source::Variable(_) => report.iter().flat_map(|text| text.lines()).map(str::trim).collect(),
            _ => report.iter().map(String::as_str).collect::<Vec<_>>(),
        };
        let report = report.into_iter().filter(|path| !path.is_empty()).map(str::to_owned).collect();
        let push = PushSettings::resolve(report, send, layers, connection)?;
        if push.paths.iter().any(|path| path == "-") {
            return Err(Failure::usage(
                "the report can't come from standard input: that belongs to the command",
                "Let the command write a file, and name that with --report; or pipe into `tallyonce push -`.",
            ));
        }
        let exit_with = layers
            .pick("exit_with", exit_with, "", |_| None)
            .unwrap_or(Setting::default(ExitWith::Worst, "the command's code if it is not 0, else the push's"));
        Ok(Self { push, command, exit_with })
    }
}
