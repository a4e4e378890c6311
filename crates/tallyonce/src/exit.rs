//! Every exit code: number, name, meaning. One list, from which `docs/reference/exit-codes.md` is written.
//! Must not know what leads to which; `failure` and the commands say that.

macro_rules! exits {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $word:literal, $meaning:literal, $next:literal;)*) => {
        /// How the program ends.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Exit {
            $($(#[$doc])* $variant,)*
        }

        #[cfg_attr(not(test), expect(dead_code, reason = "the whole list is an interface; the reference page shows it"))]
        impl Exit {
            /// Every code, by number.
            pub(crate) const ALL: &'static [Exit] = &[$(Exit::$variant),*];

            /// The number that the shell sees.
            pub(crate) fn number(self) -> u8 {
                match self { $(Exit::$variant => $number,)* }
            }

            /// One word for it.
            pub(crate) fn word(self) -> &'static str {
                match self { $(Exit::$variant => $word,)* }
            }

            /// What it means for the recorded data.
            pub(crate) fn meaning(self) -> &'static str {
                match self { $(Exit::$variant => $meaning,)* }
            }

            /// What to do next.
            pub(crate) fn next(self) -> &'static str {
                match self { $(Exit::$variant => $next,)* }
            }
        }
    };
}

exits! {
    /// All is well.
    Success = 0, "success",
        "Recorded: now, by an earlier delivery (replayed), or as a revision. For other commands: done.",
        "Nothing.";
    /// Done, and what was found is bad.
    Found = 1, "found",
        "Recorded, and `--fail-on failed` found failed or errored tests in this delivery's own report; or `check-store` \
         found damage; or `audit`, `repair` or `probe` found something at a target that isn't as it should be.",
        "Look at the tests, or at what is listed. Nothing has to be delivered again.";
    /// Flags, variables or configuration.
    Usage = 2, "usage",
        "Usage or configuration: nothing was sent, nothing was written. In a detected CI also a push without `--to`; \
         outside CI a push without `--run`; anywhere an outbox that can't be written.",
        "Mend the command; the message says how.";
    /// Input that cannot be read.
    Unreadable = 3, "unreadable",
        "A report could not be read, or no file matched: nothing was sent.",
        "Mend the report or the path; `--partial` pushes what is readable, `--allow-empty` records an empty push.";
    /// Refused for good.
    Rejected = 4, "rejected",
        "Rejected: it arrived, was refused, and nothing of it was written. Other commands: what they were asked about is \
         not there.",
        "Mend the cause; trying the same again is pointless. A refused push stays in the outbox until its file is removed.";
    /// Other work under the key.
    Collision = 5, "collision",
        "Key collision, key reused, shard plan changed, or a difference under `--on-difference fail`: nothing of this \
         delivery counts; what was recorded before stays as it was.",
        "Tell the pieces of work apart (`--job`, `--shard`, `--variant`), or decide about the difference.";
    /// Recorded with exceptions.
    Partly = 6, "partly",
        "Recorded, except for items that a target refused, or attachments that could not be added; they are listed.",
        "Mend the listed items and push again; the others are not written twice.";
    /// Recorded by us, not surely by them.
    Forwarding = 7, "forwarding",
        "Recorded, but at a target it is not known to be whole: parked, or flagged with what may count wrongly (there a person \
         has to look), or, at a target that a server hands on to, still on its way.",
        "`tallyonce forwards` says why (of a server with its `--to`). What is on its way at a server goes on by itself, and the \
         same push with `--wait-forward` waits again.";
    /// Nobody knows.
    NotConfirmed = 75, "not-confirmed",
        "Not confirmed within the deadline, or interrupted: it may be recorded or not. It is kept in the outbox.",
        "Deliver again: `tallyonce flush`, or the same push. The key stays, so nothing is counted twice.";
    /// The command of `run` is there, and cannot be started.
    NotExecutable = 126, "not-executable",
        "`run`: the command can't be executed: no test ran, nothing was sent.",
        "Make it executable, or name what runs it.";
    /// The command of `run` is not there.
    NotFound = 127, "not-found",
        "`run`: there is no such command: no test ran, nothing was sent.",
        "Mend the command, or install it.";
}

/// What the process ends with: one of our codes, or that of a command that `run` ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl From<Exit> for Code {
    fn from(exit: Exit) -> Self {
        Self(exit.number())
    }
}

impl Exit {
    /// The worse of two in a batch: 75, 5, 4, 6, 0 are the order of the design (section 8); the rest stand where
    /// their meaning puts them.
    #[must_use]
    pub(crate) fn worse(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    fn rank(self) -> u8 {
        match self {
            Exit::NotConfirmed => 9,
            Exit::Collision => 8,
            Exit::Rejected => 7,
            Exit::Unreadable => 6,
            Exit::Usage => 5,
            // They stand alone: nothing is pushed where no command ran.
            Exit::NotExecutable | Exit::NotFound => 4,
            Exit::Partly => 3,
            Exit::Forwarding => 2,
            Exit::Found => 1,
            Exit::Success => 0,
        }
    }

    /// The reference page.
    #[cfg(test)]
    pub(crate) fn reference() -> String {
        use std::fmt::Write as _;
        let mut text = String::from(
            "# Exit codes\n\nWritten from `crates/tallyonce/src/exit.rs`; do not edit here.\n\n\
             | code | name | what it means for the recorded data | what to do |\n|---|---|---|---|\n",
        );
        for exit in Self::ALL {
            let _ = writeln!(text, "| {} | {} | {} | {} |", exit.number(), exit.word(), exit.meaning(), exit.next());
        }
        text.push_str(
            "\nWhere one command delivers several pushes, the worst counts: 75, then 5, 4, 3, 2, 6, 7, 1, 0. A process that is \
             ended before its push is in the outbox, by a second Ctrl-C, or by `SIGKILL` has no code of its own: nothing was \
             sent that is not in the outbox, and what is there stays there.\n\n\
             `run` ends with the code of its command where that is not 0, else with one of these (`--exit-with` chooses \
             otherwise); a command that signal N ended counts as 128 + N. What is wrong with flags or configuration is said \
             before the command is started: 2.\n",
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_worst_of_a_batch_follows_the_design() {
        let order = [75, 5, 4, 6, 0];
        for pair in order.windows(2) {
            let by_number = |n: u8| *Exit::ALL.iter().find(|exit| exit.number() == n).unwrap();
            assert_eq!(by_number(pair[0]).worse(by_number(pair[1])).number(), pair[0]);
            assert_eq!(by_number(pair[1]).worse(by_number(pair[0])).number(), pair[0]);
        }
    }

    #[test]
    fn the_help_and_the_first_page_name_every_code_of_a_push() {
        use clap::CommandFactory as _;
        let help = crate::cli::Cli::command().get_after_help().unwrap().to_string();
        let page = include_str!("../../../README.md");
        for exit in Exit::ALL.iter().filter(|exit| exit.number() < 126) {
            let number = exit.number();
            assert!(help.contains(&format!(" {number} ")), "{number} is not in {help}");
            assert!(page.contains(&format!("\n| {number} | ")), "README.md doesn't explain {number}");
        }
    }

    #[test]
    fn numbers_are_the_agreed_ones() {
        let numbers: Vec<u8> = Exit::ALL.iter().map(|exit| exit.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 75, 126, 127]);
    }
}
