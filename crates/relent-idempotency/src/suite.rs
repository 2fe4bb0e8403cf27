//! The contract, executable: one named check per rule, for any store.
//!
//! A store's tests hold one line, `relent_idempotency::suite!(…)`, with an expression that makes a [`Fixture`]. Time
//! is the fixture's and no check waits for a clock. Each check panics if its rule is broken.

#![allow(clippy::missing_panics_doc, reason = "a check panics if its rule is broken: that is what it is for")]

mod claim;
mod durable;
mod finish;
mod lease;
mod life;
mod operator;
mod random;
mod words;

use std::{future::Future, pin::Pin, time::Duration};

use async_trait::async_trait;
use relent::{ManualClock, Timestamp};

pub use random::agrees_with_memory;

use crate::{Store, UnsharedMemory};

/// A store under test, empty at first, with room for [`MAX_RECORDS`].
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// The store.
    type Store: Store;

    /// The store, to ask.
    fn store(&self) -> &Self::Store;

    /// The same records as another process sees them: another handle, or a clone where there is no other process.
    async fn another(&self) -> Self::Store;

    /// Moves the store's time on.
    fn advance(&self, length: Duration);

    /// How many records are stored, in whatever state.
    async fn count(&self) -> u64;

    /// Ends the store's process without a word and opens the store again.
    async fn crash(&mut self) -> Crashed;
}

/// Whether a store can outlive its process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Crashed {
    /// It did.
    Reopened,
    /// This store never does; the check says so and ends.
    Unable,
}

/// The limit of records that a fixture's store is made with.
pub const MAX_RECORDS: u64 = 20;

/// One rule's check.
pub struct Check<F> {
    /// The rule, as a sentence.
    pub name: &'static str,
    /// Checks it on an empty store.
    pub run: fn(F) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Makes the list of checks and the macro that runs them, from one list of names.
macro_rules! checks {
    ($d:tt $($module:ident { $($name:ident)+ })+) => {
        /// Every check.
        pub fn checks<F: Fixture>() -> Vec<Check<F>> {
            vec![$($(Check { name: stringify!($name), run: |fixture| Box::pin($module::$name(fixture)) }),+),+]
        }

        /// Runs the suite: one test for each rule, each on a store of its own, which the expression makes. It is a
        /// future: `suite!(MyFixture::new())`, with `async fn new() -> Option<Self>`; `None` skips the test, where a
        /// service is missing and that was said aloud.
        #[macro_export]
        macro_rules! suite {
            ($d fixture:expr) => {
                $($(
                    #[test]
                    fn $name() {
                        $crate::suite::run(stringify!($name), $d fixture);
                    }
                )+)+
            };
        }
    };
}

checks! { $
    claim {
        the_first_claim_of_a_key_is_given_the_lease
        a_key_whose_work_runs_is_not_given_again
        of_many_claims_at_once_one_is_given_the_lease
        the_same_key_of_another_caller_is_another_record
        another_request_under_the_key_is_a_mismatch_in_every_state
    }
    finish {
        an_answer_is_given_back_as_it_was
        an_answer_that_was_not_kept_is_told_by_its_status
        a_run_without_effect_leaves_no_record
        a_run_of_unknown_outcome_is_never_given_again
        an_end_may_be_told_twice
        what_was_answered_stays_answered
        a_late_answer_settles_an_unknown_outcome
        an_end_under_a_claim_that_lost_its_record_is_refused
        an_answer_after_the_records_life_is_refused
    }
    lease {
        a_lease_that_ran_out_is_an_unknown_outcome
        a_lease_that_ran_out_is_given_again_where_its_claim_allowed_it
        a_renewed_lease_lasts_longer
        a_lost_lease_is_not_renewed
        a_lease_never_outlives_its_record
    }
    life {
        an_answer_is_given_back_until_its_life_ends
        an_expired_key_is_refused_until_it_is_forgotten_and_then_anew
        an_unknown_outcome_outlives_its_records_life
        what_is_forgotten_is_purged_and_nothing_else
        a_store_forgets_by_itself_as_it_is_used
        no_more_than_the_newest_records_are_kept
        runs_without_effect_evict_nothing
        what_runs_or_is_unknown_is_never_evicted
    }
    operator {
        a_record_is_read_as_it_stands
        unknown_outcomes_are_listed_the_longest_known_first
        an_unknown_outcome_can_be_answered
        an_unknown_outcome_can_be_run_again
        only_an_unknown_outcome_is_resolved
        a_run_that_was_resolved_has_lost_its_lease
    }
    durable {
        what_was_answered_survives_a_crash
        what_ran_when_the_process_died_is_not_given_again
        another_process_sees_the_same
    }
}

/// Runs one check by its name; what [`suite!`](crate::suite!) calls.
pub fn run<F: Fixture>(name: &str, fixture: impl Future<Output = Option<F>>) {
    let check = checks::<F>().into_iter().find(|check| check.name == name);
    let check = check.unwrap_or_else(|| panic!("no check is called {name}"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        if let Some(fixture) = fixture.await {
            (check.run)(fixture).await;
        }
    });
}

/// [`UnsharedMemory`] under test: also the plainest store to compare another with.
#[derive(Debug)]
pub struct MemoryFixture {
    clock: ManualClock,
    store: UnsharedMemory,
}

impl MemoryFixture {
    /// An empty store.
    #[expect(clippy::unused_async, reason = "the suite takes a future, for stores that must connect")]
    pub async fn new() -> Option<Self> {
        let clock = ManualClock::starting_at(Timestamp::from_secs(1_800_000_000));
        let store = UnsharedMemory::new(clock.clone()).with_max_records(MAX_RECORDS);
        Some(Self { clock, store })
    }
}

#[async_trait]
impl Fixture for MemoryFixture {
    type Store = UnsharedMemory;

    fn store(&self) -> &UnsharedMemory {
        &self.store
    }

    async fn another(&self) -> UnsharedMemory {
        self.store.clone()
    }

    fn advance(&self, length: Duration) {
        self.clock.advance(length);
    }

    async fn count(&self) -> u64 {
        self.store.len() as u64
    }

    async fn crash(&mut self) -> Crashed {
        Crashed::Unable
    }
}
