//! The contract, executable: one named check per rule, for any store.
//!
//! A store's tests hold one line, `relent_ledger::suite!(…)`, with an expression that makes a [`Fixture`]. Time
//! is passed in and no check waits for a clock. Each check panics if its rule is broken. [`MemoryLedger`] is
//! the contract in its plainest form, to compare a store with.

#![allow(clippy::missing_panics_doc, reason = "a check panics if its rule is broken: that is what it is for")]

mod accept;
mod attempt;
mod claim;

mod list;
mod memory;
mod settle;
mod together;
mod whole;
mod wish;
mod words;

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

use async_trait::async_trait;
use relent_core::Timestamp;

pub use memory::{MemoryFixture, MemoryLedger};

use crate::{Ledger, MessageId};

/// A store under test, empty at first.
#[async_trait]
pub trait Fixture: Send + 'static {
    /// The store.
    type Ledger: Ledger;

    /// The store, to ask.
    fn ledger(&self) -> &Self::Ledger;

    /// Ends the store's process without a word and opens the store again at `now`.
    async fn crash(&mut self, now: Timestamp);

    /// Spoils what is stored of a message.
    async fn plant(&mut self, plant: Plant, id: MessageId) -> Planted;
}

/// What of a message to spoil.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Plant {
    /// Its content.
    Content,
    /// Its decision state.
    History,
}

/// Whether something could be spoiled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Planted {
    /// It is.
    Done,
    /// This store has no way to; the check says so and ends.
    Unable,
}

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

        /// Runs the suite: one test for each rule, each on a store of its own, which the expression makes.
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
    accept {
        what_is_accepted_is_read_back_as_it_was_sent
        the_same_key_with_the_same_fingerprint_is_a_replay
        the_same_key_with_another_fingerprint_is_a_conflict
        a_key_is_looked_up_and_nothing_is_stored
        messages_without_a_key_are_all_new
        a_message_without_a_not_before_is_due_at_once
        a_message_is_not_given_out_before_its_not_before
        a_not_before_is_recorded_as_a_wait
        a_second_message_with_the_same_id_is_refused
        what_was_accepted_survives_a_crash
    }
    claim {
        the_longest_due_is_claimed_first
        a_claim_takes_no_more_than_its_limit
        a_claim_leaves_what_it_is_told_to_skip
        the_next_due_is_exact
        a_message_is_never_given_to_two_claims
        work_comes_as_it_was_accepted
        what_was_in_flight_is_due_at_once_after_a_crash
        an_interrupted_attempt_comes_with_the_claim
        spoiled_content_comes_as_unreadable_and_the_others_come
        a_spoiled_history_comes_as_unreadable_and_the_others_come
    }
    attempt {
        an_attempt_is_recorded_before_anything_is_sent
        attempts_are_numbered_from_one_and_on_through_all_cycles
        a_second_attempt_is_not_begun_while_one_is_open
        the_end_of_an_attempt_that_is_not_under_way_is_refused
        the_end_of_an_attempt_is_kept_whole
        an_interrupted_attempt_can_be_ended_under_the_next_ticket
    }
    settle {
        an_acknowledged_message_is_delivered
        a_retry_is_due_after_its_wait
        a_deferral_is_due_after_its_wait
        every_wait_is_recorded_with_its_derivation
        a_dead_letter_has_its_reason
        what_is_left_is_due_at_once_and_its_attempt_stays_open
        the_decision_state_is_kept
        a_ticket_is_over_once_it_is_settled
        a_late_settlement_is_refused
        a_shelved_message_is_dead_as_it_is
    }
    wish {
        a_dead_letter_is_redriven_once
        a_redrive_of_another_cycle_is_refused
        a_redrive_begins_a_new_cycle_and_keeps_the_totals
        a_redrive_is_recorded_as_a_wait
        a_redrive_changes_no_byte_of_the_content
        a_redrive_leaves_an_open_attempt_behind
        a_discarded_dead_letter_is_off_the_list_and_readable
        only_a_dead_letter_is_discarded
        a_discarding_of_another_cycle_is_refused
        what_waits_can_be_cancelled
        what_is_in_flight_is_not_cancelled
        a_message_that_is_not_there_is_not_found
    }
    list {
        a_log_is_read_in_stretches
        a_list_is_newest_first
        a_list_shows_only_the_states_asked_for
        a_list_shows_only_the_reasons_asked_for
        a_list_shows_only_the_destinations_asked_for
        a_page_is_full_however_many_others_lie_between
        pages_are_stable_while_others_come_and_go
        a_line_says_why_its_message_waits
    }
    whole {
        the_tally_is_what_happened
        a_store_is_sound_after_any_work
    }
}

/// Runs one check by its name; what [`suite!`](crate::suite!) calls.
pub fn run<F: Fixture>(name: &str, fixture: F) {
    let check = checks::<F>().into_iter().find(|check| check.name == name);
    let check = check.unwrap_or_else(|| panic!("no check is called {name}"));
    block_on((check.run)(fixture));
}

/// Runs a future on this thread, without a runtime: stores answer from threads of their own.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}
