//! Which of the files that reports name go along with a push to a target, where they are, and what is said of them.
//! A path comes from whatever the tests did: nothing outside of the working folder and the report's is taken.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use delivery::foreign::Attached;
use delivery::{AttachmentWanted, AttachmentsWanted, Clock as _, LeftOut, SystemClock};
use domain::{ItemHash, Outcome};
use reports::{Attachment, Gathered};
use serde::Serialize;

use crate::failure::Failure;
use crate::inputs::Reports;
use crate::object::PushObject;
use crate::settings::target::{AttachmentSettings, AttachmentsWord};

/// Folders of tools, whose files may hold secrets and are nobody's attachments.
const NEVER: [&str; 2] = [".git", ".tallyonce"];
/// How many files that are left out are said one by one.
const SAID_MAX: usize = 20;

/// What became of a push's files at a target, as `push --json` prints it. Field names are an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct AttachmentsObject {
    /// Sent by this delivery.
    pub sent: u64,
    /// There already.
    pub there: u64,
    /// Not known to be there: the push stays in the outbox, and delivering it again goes on.
    pub open: u64,
    /// What does not get there, and why.
    pub left_out: Vec<LeftOut>,
}

/// The files that go along.
///
/// # Errors
/// The outcomes can't be read back.
pub(crate) fn wanted(
    reports: &Reports,
    settings: AttachmentSettings,
    folder: &Path,
) -> Result<AttachmentsWanted, Failure> {
    let named = &reports.collected.attachments;
    let AttachmentSettings { which, bytes_max } = settings;
    let taken_ms = SystemClock::new().unix_ms();
    if which == AttachmentsWord::Never || named.is_empty() {
        return Ok(AttachmentsWanted::default());
    }
    let mut items: BTreeMap<ItemHash, Option<String>> = named.iter().map(|one| (one.item, None)).collect();
    let mut see = |hash: &ItemHash, outcome: &Outcome| {
        if let Some(shown) = items.get_mut(hash)
            && (which == AttachmentsWord::All || outcome.status.is_bad())
        {
            *shown = Some(outcome.item.to_string());
        }
    };
    match &reports.collected.outcomes {
        Gathered::Held { hashes, outcomes } => hashes.iter().zip(outcomes).for_each(|(hash, one)| see(hash, one)),
        Gathered::Spilled(spilled) => {
            for part in spilled.parts() {
                let part = part.map_err(|error| crate::courier::outbox_failure(&error))?;
                part.hashes.iter().zip(&part.outcomes).for_each(|(hash, one)| see(hash, one));
            }
        }
    }
    let of = |one: &Attachment| {
        let shown = items.get(&one.item)?.clone()?;
        let source = place(&one.report, &one.path, folder);
        Some(AttachmentWanted { item: one.item, shown, path: one.path.clone(), source })
    };
    Ok(AttachmentsWanted { files: named.iter().filter_map(of).collect(), bytes_max, taken_ms })
}

/// Where a file is that a report names.
fn place(report: &str, path: &str, folder: &Path) -> Result<PathBuf, String> {
    let root = |folder: &Path| folder.canonicalize().ok().filter(|root| root.parent().is_some());
    let beside = folder.join(report);
    let beside = beside.parent().filter(|_| report != "-").unwrap_or(folder);
    let (beside_root, folder_root) = (root(beside), root(folder));
    // What is absolute stays as it is.
    let found = [beside, folder].into_iter().find_map(|folder| folder.join(path).canonicalize().ok());
    let found = found.ok_or("there is no such file beside the report or in the working folder")?;
    let inside = [beside_root, folder_root].into_iter().flatten().find_map(|root| {
        let inner = found.strip_prefix(&root).ok()?;
        Some(
            inner.components().all(|part| !matches!(part, Component::Normal(name) if NEVER.iter().any(|n| name == *n))),
        )
    });
    match inside {
        Some(true) => Ok(found),
        Some(false) => Err("it belongs to a tool's own folder, and is never taken".to_owned()),
        None => Err("it lies outside of the working folder and the report's, and is not taken".to_owned()),
    }
}

/// Takes down what became of a push's files; true if all of them are there.
pub(crate) fn tell(target: &str, attached: Attached, object: &mut PushObject) -> bool {
    let Attached { sent, there, left_out, doubled, open } = attached;
    let out = |one: &LeftOut| format!("{target}: attachment {} of {} is left out: {}", one.file, one.item, one.why);
    object.warnings.extend(left_out.iter().take(SAID_MAX).map(out));
    if left_out.len() > SAID_MAX {
        object.warnings.push(format!("{target}: {} attachments more are left out", left_out.len() - SAID_MAX));
    }
    for one in &doubled {
        object.warnings.push(format!("{target}: attachment {} of {}: {}", one.file, one.item, one.why));
    }
    if let Some((open, why)) = &open {
        object.stays = true;
        object.warnings.push(format!(
            "{target}: {open} attachments are not known to be there ({why}); all outcomes are. The push stays in the \
             outbox: `tallyonce flush --to {target}` goes on"
        ));
    }
    let all = left_out.is_empty() && doubled.is_empty() && open.is_none();
    let open = open.map_or(0, |(open, _)| open);
    if (sent + there + open > 0 || !left_out.is_empty())
        && let Some(forward) = &mut object.forward
    {
        forward.attachments = Some(AttachmentsObject { sent, there, open, left_out });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_the_working_folder_or_the_reports_is_taken() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("work");
        for (name, text) in [
            ("work/r/a.png", ""),
            ("work/b.png", ""),
            ("work/.git/config", ""),
            ("elsewhere/c.xml", ""),
            ("elsewhere/d.png", ""),
            ("secret", ""),
        ] {
            let path = outer.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(outer.path().join("secret"), folder.join("link.png")).unwrap();
        let at = |report: &str, path: &str| place(report, path, &folder);
        assert!(at("r/x.xml", "a.png").is_ok());
        assert!(at("r/x.xml", "b.png").is_ok(), "in the working folder");
        assert!(at("r/x.xml", "../b.png").is_ok());
        assert!(at("-", "r/a.png").is_ok());
        assert!(at("r/x.xml", folder.join("b.png").to_str().unwrap()).is_ok());
        assert!(at("../elsewhere/c.xml", "d.png").is_ok(), "beside the report");
        for (path, why) in [
            ("../../secret", "outside"),
            (outer.path().join("secret").to_str().unwrap(), "outside"),
            ("../../elsewhere/d.png", "outside"),
            ("../link.png", "outside"),
            ("../.git/config", "a tool's own"),
            ("gone.png", "no such file"),
        ] {
            let refused = at("r/x.xml", path);
            let skipped = cfg!(not(unix)) && path.contains("link");
            assert!(skipped || refused.as_ref().is_err_and(|said| said.contains(why)), "{path}: {refused:?}");
        }
    }
}
