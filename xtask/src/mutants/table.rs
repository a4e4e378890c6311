//! Which checks are to notice which fault: two layers of them, where there are two that see it. Every one that is named
//! here has to. Must not run anything.

use std::fmt;

use domain::mutants::Mutant;

/// An executable of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Suite {
    /// Decisions and keys by themselves.
    Domain,
    /// The conformance suite on each engine, and what is particular to the file.
    Store,
    /// Parts of the engine in a file by themselves.
    Engine,
    /// Every writing statement fails once; here, what holds them together does.
    Points,
    /// The client over sockets and simulated networks.
    Delivery,
    /// Forwarding into products without keys, in a simulated world.
    Forward,
    /// The API over sockets.
    Server,
    /// Real processes, cut and killed.
    Reality,
}

impl Suite {
    /// The crate's folder, and the target within it.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Suite::Domain => ("domain", "it"),
            Suite::Store => ("store", "it"),
            Suite::Engine => ("store", "lib"),
            Suite::Points => ("store", "points"),
            Suite::Delivery => ("delivery", "it"),
            Suite::Forward => ("delivery", "forward"),
            Suite::Server => ("server", "it"),
            Suite::Reality => ("tallyonce", "reality"),
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (package, target) = self.names();
        write!(f, "{package}/{target}")
    }
}

/// One test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) suite: Suite,
    pub(super) test: &'static str,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.suite, self.test)
    }
}

/// What is known of a fault.
pub(super) enum Fate {
    /// These notice it.
    Killed(&'static [Check]),
    /// It lives in a part that is still to come.
    Waits(&'static str),
}

const fn domain(test: &'static str) -> Check {
    Check { suite: Suite::Domain, test }
}

const fn store(test: &'static str) -> Check {
    Check { suite: Suite::Store, test }
}

const fn server(test: &'static str) -> Check {
    Check { suite: Suite::Server, test }
}

const fn delivery(test: &'static str) -> Check {
    Check { suite: Suite::Delivery, test }
}

const fn forward(test: &'static str) -> Check {
    Check { suite: Suite::Forward, test }
}

const fn reality(test: &'static str) -> Check {
    Check { suite: Suite::Reality, test }
}

const TRANSACTION: Check = Check { suite: Suite::Points, test: "every_point_is_reached_and_may_fail" };
const WAITS_FOR_THE_DISK: Check =
    Check { suite: Suite::Engine, test: "sqlite::connect::tests::every_commit_waits_for_the_disk" };
const TOLD_AFTER_COMMIT: Check =
    Check { suite: Suite::Engine, test: "sqlite::writer::tests::nobody_is_told_of_success_before_the_commit" };
const KILLED_SERVER: Check = reality("kills::k0_to_k7_kill_the_server");

/// Which checks notice which fault.
const NOTICED: &[(Mutant, &[Check])] = &[
    (
        Mutant::M1,
        &[store("sqlite::one_push_a_hundred_times_is_recorded_once"), server("replay::a_hundred_at_once_are_one")],
    ),
    (Mutant::M2, &[TRANSACTION, KILLED_SERVER]),
    (Mutant::M3, &[store("sqlite::a_repeat_is_known_however_late_it_comes"), KILLED_SERVER]),
    (
        Mutant::M4,
        &[
            store("sqlite::b4_another_manifest_waits_while_the_epoch_is_active"),
            server("fences::an_active_epoch_is_waited_for_and_an_idle_one_taken_over"),
        ],
    ),
    (
        Mutant::M5,
        &[
            store("sqlite::b7_an_idle_epoch_is_taken_over"),
            server("fences::an_active_epoch_is_waited_for_and_an_idle_one_taken_over"),
        ],
    ),
    (
        Mutant::M6,
        &[
            store("sqlite::a_second_leg_is_refused_and_the_key_contested"),
            server("problems::a_second_leg_collides_even_with_equal_outcomes"),
        ],
    ),
    (
        Mutant::M7,
        &[domain("key::different_parts_give_different_keys"), domain("key::everything_outside_the_set_is_encoded")],
    ),
    (
        Mutant::M8,
        &[
            domain("key::any_client_s_key_is_accepted_and_never_changed"),
            server("replay::keys_that_differ_in_case_or_at_their_end_are_two"),
        ],
    ),
    (
        Mutant::M9,
        &[
            domain("protocol::s5_a_whole_re_run_revises_and_a_pass_after_a_failure_is_flaky"),
            store("sqlite::s5_a_full_rerun_revises"),
        ],
    ),
    (
        Mutant::M10,
        &[
            domain("protocol::another_place_under_the_key_is_reused_with_each_field"),
            store("sqlite::a_key_in_another_place_is_refused"),
            server("problems::a_key_in_another_place_is_reused"),
        ],
    ),
    (Mutant::M11, &[server("problems::a_store_that_cannot_write_says_that_nothing_is_written")]),
    (Mutant::M12, &[store("sqlite::a_repeat_is_known_however_late_it_comes")]),
    (
        Mutant::M13,
        &[
            domain("protocol::every_attempt_gets_the_receipt_that_it_got_first"),
            store("sqlite::receipts_do_not_tell_how_a_content_travelled"),
        ],
    ),
    (Mutant::M14, &[store("sqlite::a_repeat_gets_the_same_bytes"), server("replay::a_hundred_at_once_are_one")]),
    (Mutant::M15, &[store("sqlite::a_first_push_is_recorded_with_its_receipt"), KILLED_SERVER]),
    (Mutant::M16, &[TRANSACTION, KILLED_SERVER]),
    (
        Mutant::M17,
        &[
            domain("staging::c1_to_c7_commits"),
            store("sqlite::c6_x6_a_delayed_commit_of_a_superseded_epoch_never_answers_success"),
        ],
    ),
    (
        Mutant::M18,
        &[domain("staging::c1_to_c7_commits"), store("sqlite::c1_c2_c3_a_commit_needs_all_chunks_and_may_be_repeated")],
    ),
    (
        Mutant::M19,
        &[domain("staging::c1_to_c7_commits"), store("sqlite::c1_c2_c3_a_commit_needs_all_chunks_and_may_be_repeated")],
    ),
    (
        Mutant::M20,
        &[
            domain("staging::c1_to_c7_commits"),
            store("sqlite::c6_x6_a_delayed_commit_of_a_superseded_epoch_never_answers_success"),
        ],
    ),
    (
        Mutant::M21,
        &[domain("staging::p1_to_p11_chunks"), store("sqlite::p6_p7_a_put_into_a_superseded_epoch_is_refused")],
    ),
    (
        Mutant::M22,
        &[
            domain("staging::g1_g4_only_an_epoch_seen_idle_twice_is_collected"),
            store("sqlite::g4_a_clock_that_jumps_ahead_is_seen_once"),
        ],
    ),
    (Mutant::M23, &[store("sqlite::an_open_epoch_keeps_its_chunks")]),
    (Mutant::M24, &[TOLD_AFTER_COMMIT, TRANSACTION]),
    (
        Mutant::M26,
        &[
            server("problems::an_unknown_commit_stays_unknown_when_the_second_run_writes_nothing"),
            delivery("http::silence_of_every_kind_may_have_been_written"),
        ],
    ),
    (Mutant::M28, &[WAITS_FOR_THE_DISK]),
    (
        Mutant::M29,
        &[
            delivery("http::silence_of_every_kind_may_have_been_written"),
            reality("faults::the_answer_is_dropped_after_the_write"),
        ],
    ),
    (Mutant::M30, &[store("file::what_was_recorded_is_there_after_opening_again"), KILLED_SERVER]),
    (
        Mutant::M31,
        &[
            domain("staging::after_an_ended_epoch_the_next_one_opens"),
            store("sqlite::g1_p15_what_is_idle_for_a_lifetime_is_given_up"),
        ],
    ),
    (Mutant::M32, &[server("problems::an_unknown_commit_is_run_again_once")]),
    (
        Mutant::M33,
        &[
            domain("staging::b2_b3_b8_the_same_manifest_resumes_and_lists_what_is_missing"),
            store("sqlite::b2_b8_the_same_manifest_resumes_and_only_what_is_missing_is_put"),
        ],
    ),
    (
        Mutant::M34,
        &[
            domain("staging::b9_a_client_bound_to_a_dead_epoch_never_opens_another"),
            domain("staging::b10_a_lower_ordinal_is_stale_while_the_epoch_is_active"),
            store("sqlite::b9_a_delayed_begin_of_a_fenced_client_opens_nothing"),
        ],
    ),
    (
        Mutant::M35,
        &[
            domain("ci::a_retry_keeps_the_key_and_other_work_changes_it"),
            reality("situations::s5_failed_jobs_run_again_and_pass"),
        ],
    ),
    (
        Mutant::M36,
        &[
            forward("plain::one_absence_is_no_reason_to_send_again"),
            forward("plain::what_comes_between_two_readings_is_not_sent_again"),
        ],
    ),
    (
        Mutant::M37,
        &[
            forward("plain::a_product_that_knows_our_ids_needs_no_reading"),
            forward("plain::what_exists_under_our_id_is_no_failure"),
        ],
    ),
    (
        Mutant::M38,
        &[
            store("sqlite::of_many_at_once_one_takes_a_step"),
            store("file::ledger::of_two_writers_over_one_file_one_takes_each_step"),
        ],
    ),
    (
        Mutant::M39,
        &[
            delivery("classify::no_damaged_receipt_is_ever_believed"),
            delivery("staged_http::answers_are_believed_only_if_they_are_whole_and_ours"),
        ],
    ),
    (
        Mutant::M40,
        &[
            domain("protocol::s23_outside_ci_a_difference_fails_and_stores_nothing"),
            store("sqlite::auto_keeps_without_a_higher_attempt"),
        ],
    ),
    (
        Mutant::M41,
        &[domain("staging::c1_to_c7_commits"), store("sqlite::c11a_other_work_is_refused_at_commit_and_stays_refused")],
    ),
];

/// Faults that live in parts that are still to come.
const WAITING: &[(Mutant, &str)] = &[
    (Mutant::M25, "the PostgreSQL engine: a standby that is waited for"),
    (Mutant::M27, "replicas: readings that may be behind"),
];

/// What is known of this one.
pub(super) fn fate(mutant: Mutant) -> Fate {
    if let Some((_, part)) = WAITING.iter().find(|(waiting, _)| *waiting == mutant) {
        return Fate::Waits(part);
    }
    Fate::Killed(NOTICED.iter().find(|(noticed, _)| *noticed == mutant).map_or(&[], |(_, checks)| checks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_check_or_waits() {
        for mutant in Mutant::ALL {
            assert!(!matches!(fate(*mutant), Fate::Killed([])), "{}", mutant.name());
        }
        assert_eq!(NOTICED.len() + WAITING.len(), Mutant::ALL.len());
    }
}
