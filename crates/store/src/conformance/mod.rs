//! What every engine must do, as named tests over any `Store`. Must not know an engine.
//!
//! [`for_each_conformance_test!`] lists them; `tests/it` runs each on every engine. A test here panics where an engine
//! breaks a rule, as tests do.
#![expect(clippy::expect_used, reason = "this module is a test suite that other crates' tests call")]
#![allow(clippy::panic, clippy::missing_panics_doc, missing_docs, reason = "as above; names say what is tested")]

pub mod begins;
pub mod build;
pub mod cancels;
pub mod commits;
pub mod counting;
pub mod deletion;
pub mod leases;
pub mod ledger;
pub mod listing;
pub mod loads;
pub mod one_shots;
pub mod overlays;
pub mod places;
pub mod promotion;
pub mod puts;
pub mod recording;
pub mod refusals;
pub mod rounds;
pub mod staged_races;
pub mod staged_reruns;
pub mod sweeps;
pub mod together;
pub mod waits;

use std::sync::Arc;

use crate::Store;

/// Makes an empty store.
pub type Make<'a> = &'a (dyn Fn() -> Arc<dyn Store> + Sync);

/// Calls a macro with the path of every test: `callback! { module::test, … }`.
#[macro_export]
macro_rules! for_each_conformance_test {
    ($callback:ident) => {
        $callback! {
            recording::a_first_push_is_recorded_with_its_receipt,
            recording::a_repeat_gets_the_same_bytes,
            recording::a_repeat_is_known_however_late_it_comes,
            recording::an_empty_push_is_recorded,
            recording::equal_body_bytes_are_the_same_content,
            recording::a_cosmetic_difference_is_a_replay,
            recording::other_files_and_an_unknown_executor_are_doubts,
            recording::everything_of_an_outcome_comes_back,
            recording::the_log_holds_every_delivery,
            recording::two_projects_share_nothing,
            refusals::a_key_in_another_place_is_refused,
            refusals::another_commit_is_refused_where_both_say,
            refusals::a_second_leg_is_refused_and_the_key_contested,
            refusals::other_work_under_a_key_is_refused_with_samples,
            refusals::another_shard_total_is_refused,
            refusals::a_refused_first_delivery_leaves_no_trace,
            refusals::outside_ci_a_difference_is_refused,
            overlays::s5_a_full_rerun_revises,
            overlays::s6_a_rerun_of_the_failed_tests_revises,
            overlays::s7_a_late_first_attempt_changes_nothing,
            overlays::an_overtaken_attempt_changes_nothing,
            overlays::a_replayed_attempt_wins_an_overlap,
            overlays::s8_a_longer_second_attempt_counts,
            overlays::s9_fail_pass_fail_shows_three_attempts,
            overlays::s25_two_reports_under_one_key_collide,
            overlays::keep_adds_only_new_items,
            overlays::fail_stores_nothing,
            overlays::auto_keeps_without_a_higher_attempt,
            promotion::a_kept_revision_is_promoted,
            promotion::exact_leaves_that_content_alone,
            promotion::a_promotion_is_idempotent_under_its_key,
            promotion::a_stale_receipt_is_a_mismatch,
            promotion::unknown_pushes_and_revisions_are_said,
            counting::s21_an_overlap_counts_once_and_worst,
            counting::a_higher_attempt_wins_an_overlap,
            counting::variants_are_counted_apart,
            counting::s10_items_that_moved_between_shards_count_once,
            counting::differences_are_listed_item_by_item,
            rounds::s22_two_runs_are_two_rounds,
            rounds::s27_an_incomplete_round_counts_when_closed,
            rounds::s28_two_workflows_make_one_headline,
            rounds::s29_yesterdays_outbox_changes_no_headline,
            rounds::s30_a_renamed_item_is_not_seen_since,
            rounds::a_late_push_is_recorded_and_said,
            rounds::a_pinned_round_is_authoritative,
            rounds::expect_completes_a_job,
            listing::filters_search_and_totals,
            listing::pages_never_overlap_in_any_order,
            listing::cursors_of_other_listings_are_refused,
            listing::a_history_goes_round_by_round,
            listing::absent_things_are_named,
            deletion::a_dropped_round_leaves_tombstones,
            deletion::what_other_rounds_share_survives,
            together::one_push_a_hundred_times_is_recorded_once,
            together::two_legs_at_once_are_one_recorded_and_one_refused,
            together::many_pushes_at_once_all_count,
            together::s26_one_report_in_two_projects,
            begins::b1_a_begin_opens_the_first_epoch_and_shows_nothing,
            begins::b2_b8_the_same_manifest_resumes_and_only_what_is_missing_is_put,
            begins::b4_another_manifest_waits_while_the_epoch_is_active,
            begins::b5_b6_b10_the_higher_attempt_wins_whatever_the_order,
            begins::b7_an_idle_epoch_is_taken_over,
            begins::b9_a_delayed_begin_of_a_fenced_client_opens_nothing,
            begins::b11_a_key_of_another_place_is_refused,
            begins::b12_b13_a_recorded_content_is_replayed_however_it_is_cut,
            begins::b14_other_outcomes_are_staged_and_what_is_recorded_is_said,
            begins::b15_a_tombstone_answers_a_begin,
            begins::an_incarnation_is_bound_to_one_epoch,
            begins::r1_another_shard_total_is_refused_at_begin,
            begins::r1_another_shard_total_is_refused_at_commit,
            begins::h1_staging_ends_in_a_receipt,
            begins::h2_another_project_stages_under_its_own_key,
            puts::p1_p2_p3_chunks_come_in_any_order_and_again,
            puts::p4_p5_bytes_that_were_not_promised_are_refused,
            puts::a_chunk_of_other_items_or_of_another_number_is_not_taken,
            puts::p6_p7_a_put_into_a_superseded_epoch_is_refused,
            puts::p8_p9_a_late_put_into_a_committed_epoch_changes_nothing,
            puts::p10_a_put_into_an_ended_epoch_is_gone,
            puts::p11_a_number_that_the_manifest_does_not_have_is_refused,
            puts::p14_chunks_that_are_never_committed_never_show,
            puts::what_was_never_begun_is_unknown,
            puts::c12_a_dropped_round_takes_what_is_staged_for_it,
            commits::c1_c2_c3_a_commit_needs_all_chunks_and_may_be_repeated,
            commits::an_empty_push_is_staged,
            commits::c6_x6_a_delayed_commit_of_a_superseded_epoch_never_answers_success,
            commits::c10_x2_another_content_after_a_commit_is_laid_over_it,
            commits::c11a_other_work_is_refused_at_commit_and_stays_refused,
            commits::other_work_is_refused_at_begin_if_the_manifest_names_items,
            commits::a_lying_item_vector_decides_nothing,
            commits::a_difference_under_fail_is_refused,
            commits::chunks_that_do_not_make_the_content_kill_the_epoch,
            commits::what_counts_already_is_replayed_at_begin_and_at_commit,
            commits::v4_an_overlay_that_is_given_up_leaves_what_counts,
            commits::v5_a_delayed_commit_gets_its_own_receipt_after_a_later_revision,
            commits::x1_x5_the_dead_winner_loses_nobody_s_report,
            commits::x3_two_clients_with_the_same_bytes_share_an_epoch,
            commits::r2_overlaps_of_staged_pushes_count_once_at_every_moment,
            commits::everything_of_a_staged_outcome_comes_back,
            cancels::n1_a_commit_after_a_cancel_and_a_cancel_after_a_commit,
            cancels::n2_a_cancel_may_be_repeated,
            cancels::g1_p15_what_is_idle_for_a_lifetime_is_given_up,
            cancels::g1_a_begin_or_put_is_activity,
            cancels::g2_g3_dead_epochs_are_swept_and_nothing_visible_moves,
            cancels::an_open_epoch_keeps_its_chunks,
            cancels::g4_a_clock_that_jumps_ahead_is_seen_once,
            cancels::g5_a_clock_that_goes_back_gives_nothing_up,
            cancels::c7_collection_and_commit,
            staged_reruns::s3_a_second_leg_is_refused_while_the_first_is_staged,
            staged_reruns::s3_a_second_leg_is_refused_after_the_first_was_staged,
            staged_reruns::everyone_who_staged_is_accepted,
            staged_reruns::s5_s6_staged_reruns_whole_and_in_part,
            staged_reruns::s9_fail_pass_fail_staged,
            staged_reruns::receipts_do_not_tell_how_a_content_travelled,
            staged_reruns::a_long_difference_is_listed_alike,
            staged_reruns::a_promotion_between_puts_and_commit_is_counted,
            staged_reruns::a_staged_overlay_is_read_item_by_item,
            staged_races::c4_x4_one_staged_push_eight_times_is_recorded_once,
            staged_races::x4_eight_clients_of_one_staged_push_all_get_its_receipt,
            staged_races::c5_two_contents_at_once_never_mix,
            staged_races::readers_see_all_of_a_staged_push_or_nothing,
            staged_races::c7_n1_a_commit_beside_whatever_ends_its_epoch,
            staged_races::p7_puts_beside_a_begin_that_supersedes,
            one_shots::o1_beside_an_epoch_of_other_content,
            one_shots::b11_a_key_that_is_staged_for_another_place_is_refused,
            one_shots::a_leg_that_only_staged_is_not_accepted_beside_one_that_delivered,
            one_shots::s3_a_contested_key_stays_contested_when_its_epoch_is_superseded,
            one_shots::o1_takes_an_idle_epoch_over,
            one_shots::o1_after_a_staged_commit_it_is_a_replay_or_an_overlay,
            one_shots::o2_of_the_same_content_it_commits_the_epoch,
            one_shots::o2_accepts_who_staged_it,
            one_shots::o2_over_a_recorded_push,
            one_shots::what_is_staged_does_not_hold_up_a_repeat,
            one_shots::s3_a_whole_second_leg_is_refused_while_the_first_is_staged,
            ledger::everything_of_an_intent_comes_back,
            ledger::planning_again_finds_what_is_kept,
            ledger::intents_of_another_target_are_not_planned,
            ledger::an_overtaken_turn_keeps_nothing,
            ledger::turns_of_targets_are_apart,
            ledger::a_step_is_kept_from_the_kept_state_alone,
            ledger::a_step_leaves_what_was_planned,
            ledger::intents_come_oldest_first,
            ledger::intents_are_found_by_what_they_are,
            ledger::what_is_in_doubt_is_found_apart_from_the_rest,
            ledger::a_cycle_there_is_kept_and_forgotten,
            places::a_ledger_stands_for_its_first_place_until_it_is_moved,
            places::places_of_targets_are_apart,
            places::an_overtaken_turn_keeps_no_place,
            ledger::of_many_at_once_one_takes_a_step,
            ledger::turns_taken_at_once_are_all_different,
            ledger::a_dropped_round_leaves_what_was_forwarded,
            waits::a_push_waits_for_every_target_that_takes_it,
            waits::whatever_changes_what_counts_waits_once,
            waits::a_repeat_and_what_is_refused_make_nothing_wait,
            waits::what_is_kept_beside_waits_only_with_items_of_its_own,
            waits::the_oldest_that_is_due_comes_next,
            waits::an_end_takes_older_waits_of_the_push_along,
            waits::a_dropped_round_ends_what_waits,
            leases::a_second_holder_waits_until_the_lease_ends,
            leases::a_clock_that_went_back_holds_nobody_up_for_longer_than_a_lease,
            leases::a_turn_taken_without_a_lease_ends_it,
            leases::an_overtaken_holder_writes_nothing,
            leases::of_many_at_once_one_holds_a_target,
            loads::a_load_is_what_counts,
            loads::a_staged_load_is_what_counts,
            loads::a_load_of_nothing_is_absent,
            loads::everything_of_a_push_is_found_together,
            sweeps::what_settled_is_due_after_an_hour_and_after_a_day,
            sweeps::what_is_left_out_hides_nothing_and_what_was_refused_late_is_due,
            sweeps::a_change_of_state_is_swept_anew,
            sweeps::forwarding_is_told_in_numbers,
        }
    };
}
