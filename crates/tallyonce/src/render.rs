//! Failures as text: what happened, what it means for the recorded data, what to do next. The only maker of error text.
//! Must not decide anything.

use std::fmt::Write as _;

use crate::failure::Failure;

/// How many single findings are listed.
const DETAILS_MAX: usize = 20;

/// The words for standard error.
pub(crate) fn failure(failure: &Failure) -> String {
    let exit = failure.exit;
    failure_ending(failure, &format!("{} ({})", exit.number(), exit.word()))
}

/// The same where the process ends with another code than the failure's. `exit`: what is said of it.
pub(crate) fn failure_ending(failure: &Failure, exit: &str) -> String {
    let Failure { what, details, means, next, .. } = failure;
    let mut text = format!("error: {}\n", indented(what));
    for detail in details.iter().take(DETAILS_MAX) {
        let _ = writeln!(text, "  - {}", indented(detail));
    }
    if details.len() > DETAILS_MAX {
        let _ = writeln!(text, "  - and {} more", details.len() - DETAILS_MAX);
    }
    let _ = writeln!(text, "  data: {means}");
    let _ = writeln!(text, "  next: {next}");
    let _ = writeln!(text, "  exit: {exit}");
    text
}

fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_it_means_and_what_to_do() {
        let text = failure(&Failure::unreadable(vec!["a.xml: is empty".into(), "b.xml: is a folder".into()]));
        insta::assert_snapshot!(text);
    }
}
