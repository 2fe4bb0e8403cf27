//! What every request shares.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use relent::{Timestamp, UnixClock};
use relent_deliver::{Deliverer, HttpClient, IntakeLimits, Observe as _, Policies};
use relent_ledger::{ErrorKind, Ledger};

use super::{problem::Problem, token::Token, watch::Watch};

/// The driver as the server runs it.
pub(super) type Driver = Deliverer<HttpClient<UnixClock>, UnixClock>;

/// What every request shares. Nothing in it is behind a lock.
pub(super) struct App {
    /// Where messages are.
    pub(super) ledger: Arc<dyn Ledger>,
    /// What delivers them.
    pub(super) driver: Driver,
    /// What tells of it.
    pub(super) watch: Arc<Watch>,
    /// The policies that a message may name.
    pub(super) policies: Policies,
    /// How much a message may be.
    pub(super) limits: IntakeLimits,
    /// What opens the API.
    pub(super) token: Token,
    /// Whether `/metrics` needs no token.
    pub(super) metrics_public: bool,
    /// Where the store is, in words.
    pub(super) store: String,
    /// The time.
    pub(super) clock: UnixClock,
    /// When the server started.
    pub(super) started: Timestamp,
    /// Whether it is shutting down.
    pub(super) draining: Draining,
}

impl App {
    /// What a client is told of a failure of the ledger, which is counted and logged in full; that it closes at
    /// the end is none.
    pub(super) fn failed(&self, error: relent_ledger::Error) -> Problem {
        if error.kind() != ErrorKind::Closed {
            self.watch.ledger_failed(&error);
        }
        error.into()
    }
}

/// Whether the server is shutting down; once it is, it stays so.
#[derive(Debug, Default)]
pub(super) struct Draining(AtomicBool);

impl Draining {
    /// It is from now on.
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is.
    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
