//! Where what became of a push is shown, as flags, variables and the file say. Must not know platforms.

use std::path::PathBuf;

use super::Layers;
use super::file::AnnounceWord;
use crate::cli::{Announce, AnnounceArgs};

/// Resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnnounceSettings {
    /// True: in the places that the detected platform has.
    pub auto: bool,
    /// Markdown is appended to this file too.
    pub summary: Option<PathBuf>,
    /// Values for later steps go into this file too.
    pub outputs: Option<PathBuf>,
    /// A link to what is recorded is added to this report of links.
    pub links: Option<PathBuf>,
}

impl AnnounceSettings {
    /// From the flags over the file.
    pub(crate) fn resolve(args: AnnounceArgs, layers: &Layers<'_>) -> Self {
        let AnnounceArgs { announce, summary, outputs, links } = args;
        let typed = announce.map(|announce| match announce {
            Announce::Auto => AnnounceWord::Auto,
            Announce::Never => AnnounceWord::Never,
        });
        let announce = layers.pick("announce", typed, "push.announce", |f| f.push.announce);
        let path = |id, typed, key, of: fn(&super::ConfigFile) -> Option<PathBuf>| {
            layers.pick(id, typed, key, of).map(|setting| setting.value)
        };
        Self {
            auto: announce.is_none_or(|setting| setting.value == AnnounceWord::Auto),
            summary: path("summary", summary, "push.summary", |f| f.push.summary.clone()),
            outputs: path("outputs", outputs, "push.outputs", |f| f.push.outputs.clone()),
            links: path("links", links, "push.links", |f| f.push.links.clone()),
        }
    }
}
