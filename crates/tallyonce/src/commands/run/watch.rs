//! The reports of one command: looks before it and after it, and takes what it wrote. Must not read them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::discover::{self, Candidate, Discovered};
use super::fresh::Before;
use crate::failure::Failure;
use crate::inputs::{self, Input, Search, Searched, Wish};
use crate::output::Output;

/// How many files are named one by one.
const NAMED_MAX: usize = 20;
/// How many are named that were left out, beside others that were not.
const LEFT_OUT_MAX: usize = 5;

/// Why a report is left out.
const OLDER: &str = "is older than the run: the command didn't write it";

/// Looks for what a command writes.
pub(super) struct Watch<'a> {
    /// As typed; none: the usual places.
    paths: &'a [String],
    folder: &'a Path,
    before: Before,
    output: Output,
}

impl<'a> Watch<'a> {
    /// Right before the command starts.
    pub(super) fn begin(paths: &'a [String], wish: &Wish, folder: &'a Path, output: Output) -> Self {
        let files: Vec<PathBuf> = if paths.is_empty() {
            discover::discover(folder, &wish.never).candidates.into_iter().map(|candidate| candidate.path).collect()
        } else {
            inputs::search(paths, wish).inputs.iter().filter_map(|input| input.path().map(Path::to_owned)).collect()
        };
        let before = Before::of(folder, files.iter().map(PathBuf::as_path));
        Self { paths, folder, before, output }
    }

    /// After its end.
    ///
    /// # Errors
    /// It wrote no report, and nobody said that this is fine.
    pub(super) fn end(&self, wish: &Wish) -> Result<Searched, Failure> {
        if self.paths.is_empty() { self.usual(wish) } else { self.named(wish) }
    }

    fn named(&self, wish: &Wish) -> Result<Searched, Failure> {
        let mut searched = inputs::search(self.paths, wish);
        let is_new = |input: &Input| input.path().is_none_or(|path| self.before.is_new(path));
        let (inputs, old): (Vec<_>, Vec<_>) = std::mem::take(&mut searched.inputs).into_iter().partition(is_new);
        let said = |input: &Input| format!("{} {OLDER}", input.shown());
        // Who names one file misses it, however many others there are.
        let is_named = |input: &Input| self.paths.iter().any(|path| input.path() == Some(Path::new(path)));
        let (missed, old): (Vec<_>, Vec<_>) = old.iter().partition(|input| is_named(input));
        let (missed, mut old): (Vec<_>, Vec<_>) =
            (missed.into_iter().map(said).collect(), old.into_iter().map(said).collect());
        searched.inputs = inputs;
        if searched.inputs.is_empty() {
            old.extend(missed);
        } else {
            searched.errors.extend(missed);
        }
        if searched.inputs.is_empty() && !wish.allow_empty {
            searched.errors.extend(old);
            return Err(Failure {
                next: "Look why the command wrote no report, or mend --report; --allow-empty records an empty push where a \
                       shard had no tests. Older reports are pushed by `tallyonce push`."
                    .to_owned(),
                ..Failure::unreadable(searched.errors)
            });
        }
        self.say_left_out(&old, &searched.inputs, wish);
        Ok(searched)
    }

    fn usual(&self, wish: &Wish) -> Result<Searched, Failure> {
        let Discovered { candidates, notes } = discover::discover(self.folder, &wish.never);
        for note in notes {
            self.output.warning(&note);
        }
        let is_new = |candidate: &Candidate| self.before.is_new(&candidate.path);
        let (new, old): (Vec<_>, Vec<_>) = candidates.into_iter().partition(is_new);
        let mut search = Search::new(&wish.never, wish.allow_empty);
        for candidate in &new {
            search.add_file(&candidate.path, Input::Found);
        }
        let searched = search.done("the usual places; name the reports with --report".to_owned());
        let old: Vec<String> =
            old.iter().map(|c| format!("{} {OLDER}", Input::Found(c.path.clone()).shown())).collect();
        if searched.inputs.is_empty() && !wish.allow_empty {
            return Err(nothing_written(old));
        }
        self.say_found(&new, &searched.inputs);
        self.say_left_out(&old, &searched.inputs, wish);
        Ok(searched)
    }

    fn say_found(&self, new: &[Candidate], inputs: &[Input]) {
        let runners: BTreeMap<&Path, &str> = new.iter().map(|c| (c.path.as_path(), c.runner)).collect();
        let lines = inputs.iter().map(|input| {
            let runner = input.path().and_then(|path| runners.get(path)).unwrap_or(&"");
            format!("found {} ({runner})", input.shown())
        });
        for line in shortened(lines.collect(), NAMED_MAX) {
            self.output.note(&line);
        }
    }

    /// Beside a report of this run it is only worth a note; alone it is what somebody looks for.
    fn say_left_out(&self, old: &[String], inputs: &[Input], wish: &Wish) {
        let alone = inputs.is_empty() && wish.allow_empty;
        for line in shortened(old.to_vec(), if alone { NAMED_MAX } else { LEFT_OUT_MAX }) {
            if alone { self.output.warning(&line) } else { self.output.note(&format!("note: {line}, left out")) }
        }
    }
}

fn nothing_written(old: Vec<String>) -> Failure {
    let what = "the command wrote no report in any of the usual places";
    Failure {
        what: what.to_owned(),
        details: old,
        next: "Name what it writes with --report, or let the runner write JUnit XML (docs/run.md lists the places); \
               --allow-empty records an empty push where a shard had no tests."
            .to_owned(),
        ..Failure::unreadable(vec![what.to_owned()])
    }
}

/// The first lines, and how many more there are.
fn shortened(mut lines: Vec<String>, most: usize) -> Vec<String> {
    let more = lines.len().saturating_sub(most);
    if more > 0 {
        lines.truncate(most);
        lines.push(format!("and {more} more files"));
    }
    lines
}
