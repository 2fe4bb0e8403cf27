//! One fault per rule, and the checks that must find it.

/// What a broken store does wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    CountsRunsFromZero,
    ForgetsTheTimeLeft,
    GivesTwiceAtOnce,
    HasOneCaller,
    IgnoresFingerprints,
    DropsAHeader,
    NotKeptIsAlwaysOk,
    NoEffectIsUnknown,
    AsksTheLaterClaimWhetherItMayRunAgain,
    RefusesASecondEnd,
    KeepsTheLastAnswer,
    RefusesLateAnswers,
    TakesAnyonesEnd,
    TakesAnswersAfterTheLife,
    ReadsLostLeasesAsRunning,
    NeverRunsAgain,
    RenewsForHalfTheTime,
    RenewsLostLeases,
    LeasesOutliveRecords,
    ExpiresASecondEarly,
    HasNoTombstones,
    LetsUnknownExpire,
    PurgesWithoutALimit,
    NeverForgetsByItself,
    KeepsAnyNumber,
    EvictsByRunsNotRecords,
    EvictsWhatRuns,
    ReadsEveryRunAsTheFirst,
    ListsTheNewestFirst,
    ResolvesWithAnEmptyBody,
    RunAgainResolvesNothing,
    ResolvesAnything,
    TakesEndsOfResolvedRuns,
    LosesEverythingInACrash,
    FreesWhatRanInACrash,
    ShowsNothingToOthers,
}

use Fault::*;

/// Each fault with the checks that it fails: those of its rule, and those that cannot hold without it.
pub(crate) const FAULTS: &[(Fault, &[&str])] = &[
    (
        CountsRunsFromZero,
        &[
            "a_run_without_effect_leaves_no_record",
            "an_expired_key_is_refused_until_it_is_forgotten_and_then_anew",
            "the_first_claim_of_a_key_is_given_the_lease",
        ],
    ),
    (
        ForgetsTheTimeLeft,
        &[
            "a_key_whose_work_runs_is_not_given_again",
            "a_lease_never_outlives_its_record",
            "a_lease_that_ran_out_is_an_unknown_outcome",
            "a_lease_that_ran_out_is_given_again_where_its_claim_allowed_it",
        ],
    ),
    (GivesTwiceAtOnce, &["of_many_claims_at_once_one_is_given_the_lease"]),
    (HasOneCaller, &["the_same_key_of_another_caller_is_another_record"]),
    (IgnoresFingerprints, &["another_request_under_the_key_is_a_mismatch_in_every_state"]),
    (DropsAHeader, &["an_answer_is_given_back_as_it_was"]),
    (NotKeptIsAlwaysOk, &["an_answer_that_was_not_kept_is_told_by_its_status"]),
    (
        NoEffectIsUnknown,
        &[
            "a_late_answer_settles_an_unknown_outcome",
            "a_run_without_effect_leaves_no_record",
            "runs_without_effect_evict_nothing",
        ],
    ),
    (
        AsksTheLaterClaimWhetherItMayRunAgain,
        &["a_lease_that_ran_out_is_an_unknown_outcome", "a_run_of_unknown_outcome_is_never_given_again"],
    ),
    (RefusesASecondEnd, &["an_end_may_be_told_twice", "what_was_answered_stays_answered"]),
    (KeepsTheLastAnswer, &["what_was_answered_stays_answered"]),
    (RefusesLateAnswers, &["a_late_answer_settles_an_unknown_outcome"]),
    (
        TakesAnyonesEnd,
        &["a_run_without_effect_leaves_no_record", "an_end_under_a_claim_that_lost_its_record_is_refused"],
    ),
    (TakesAnswersAfterTheLife, &["an_answer_after_the_records_life_is_refused"]),
    (
        ReadsLostLeasesAsRunning,
        &[
            "a_lease_that_ran_out_is_an_unknown_outcome",
            "an_answer_after_the_records_life_is_refused",
            "what_is_forgotten_is_purged_and_nothing_else",
        ],
    ),
    (
        NeverRunsAgain,
        &[
            "a_lease_that_ran_out_is_given_again_where_its_claim_allowed_it",
            "a_lost_lease_is_not_renewed",
            "a_record_is_read_as_it_stands",
            "an_end_under_a_claim_that_lost_its_record_is_refused",
            "unknown_outcomes_are_listed_the_longest_known_first",
            "what_ran_when_the_process_died_is_not_given_again",
        ],
    ),
    (RenewsForHalfTheTime, &["a_renewed_lease_lasts_longer"]),
    (
        RenewsLostLeases,
        &[
            "a_lease_never_outlives_its_record",
            "a_lost_lease_is_not_renewed",
            "a_record_is_read_as_it_stands",
            "a_run_that_was_resolved_has_lost_its_lease",
        ],
    ),
    (LeasesOutliveRecords, &["a_lease_never_outlives_its_record"]),
    (ExpiresASecondEarly, &["an_answer_is_given_back_until_its_life_ends"]),
    (
        HasNoTombstones,
        &[
            "an_answer_is_given_back_until_its_life_ends",
            "an_expired_key_is_refused_until_it_is_forgotten_and_then_anew",
        ],
    ),
    (LetsUnknownExpire, &["an_unknown_outcome_outlives_its_records_life"]),
    (PurgesWithoutALimit, &["what_is_forgotten_is_purged_and_nothing_else"]),
    (NeverForgetsByItself, &["a_store_forgets_by_itself_as_it_is_used"]),
    (KeepsAnyNumber, &["no_more_than_the_newest_records_are_kept"]),
    (EvictsByRunsNotRecords, &["runs_without_effect_evict_nothing"]),
    (EvictsWhatRuns, &["what_runs_or_is_unknown_is_never_evicted"]),
    (ReadsEveryRunAsTheFirst, &["a_record_is_read_as_it_stands"]),
    (ListsTheNewestFirst, &["unknown_outcomes_are_listed_the_longest_known_first"]),
    (ResolvesWithAnEmptyBody, &["an_unknown_outcome_can_be_answered"]),
    (
        RunAgainResolvesNothing,
        &[
            "a_run_that_was_resolved_has_lost_its_lease",
            "an_unknown_outcome_can_be_run_again",
            "only_an_unknown_outcome_is_resolved",
        ],
    ),
    (ResolvesAnything, &["only_an_unknown_outcome_is_resolved"]),
    (TakesEndsOfResolvedRuns, &["a_run_that_was_resolved_has_lost_its_lease"]),
    (
        LosesEverythingInACrash,
        &["what_ran_when_the_process_died_is_not_given_again", "what_was_answered_survives_a_crash"],
    ),
    (FreesWhatRanInACrash, &["what_ran_when_the_process_died_is_not_given_again"]),
    (
        ShowsNothingToOthers,
        &[
            "another_process_sees_the_same",
            "no_more_than_the_newest_records_are_kept",
            "of_many_claims_at_once_one_is_given_the_lease",
        ],
    ),
];
