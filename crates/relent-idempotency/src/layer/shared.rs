//! What all clones of a layer share, and how it asks its store.

use std::{
    fmt::Debug,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Response, request::Parts};
use http_body::Body;
use relent::{Backoff, Clock, Invalid, Pipeline, Policy, RetryPolicy};

use crate::{
    Answer, Asked, Callers, Claim, Claimed, End, Error, ErrorKind, Event, Finished, Lease, Observe, RecordId,
    Refusal, ResponseBody, Settings, Store, live::Live,
};

/// Tells what a request is about.
pub(super) type Resource = Arc<dyn Fn(&Parts) -> String + Send + Sync>;

#[derive(Clone)]
pub(super) struct Shared<C> {
    pub(super) clock: C,
    pub(super) store: Arc<dyn Store>,
    pub(super) callers: Arc<dyn Callers>,
    pub(super) settings: Settings,
    pub(super) observer: Option<Arc<dyn Observe>>,
    pub(super) resource: Resource,
    pub(super) documentation: Option<HeaderValue>,
    pub(super) live: Arc<Live>,
    finishing: Pipeline<C>,
    taking_back: Pipeline<C>,
}

impl<C: Clock> Shared<C> {
    pub(super) fn new(
        clock: C,
        store: Arc<dyn Store>,
        callers: Arc<dyn Callers>,
        settings: Settings,
    ) -> Result<Self, Invalid> {
        settings.validate()?;
        let (finishing, taking_back) = pipelines(&clock, settings.store_timeout)?;
        Ok(Self {
            finishing,
            taking_back,
            clock,
            store,
            callers,
            settings,
            observer: None,
            resource: Arc::new(|parts| {
                parts.uri.path_and_query().map_or("/", |resource| resource.as_str()).into()
            }),
            documentation: None,
            live: Arc::new(Live::new()),
        })
    }

    /// Other terms, which are valid.
    pub(super) fn set(&mut self, settings: Settings) -> Result<(), Invalid> {
        (self.finishing, self.taking_back) = pipelines(&self.clock, settings.store_timeout)?;
        self.settings = settings;
        Ok(())
    }

    pub(super) fn tell(&self, event: Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.observe(&event);
        }
    }

    pub(super) fn tell_failed(&self, asked: Asked, record: &RecordId, error: &Error) {
        self.tell(Event::StoreFailed { asked, record, error });
    }

    /// Tells of a refusal and makes its response.
    pub(super) fn refuse<R: Body>(
        &self,
        refusal: Refusal,
        record: Option<&RecordId>,
    ) -> Response<ResponseBody<R>> {
        self.tell(Event::Refused { refusal, record });
        refusal
            .response(self.settings.retry_after, self.documentation.as_ref())
            .map(|body| ResponseBody::read(body, None))
    }

    /// Tells of a replay and makes its response.
    pub(super) fn replay<R: Body>(&self, answer: Answer, record: &RecordId) -> Response<ResponseBody<R>> {
        self.tell(Event::Replayed(record));
        let mut response = Response::<Bytes>::from(answer).map(|body| ResponseBody::read(body, None));
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        response
    }

    /// What the store makes of a claim; a failure is told.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, it is not known whether the claim was given.
    pub(super) async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let told = self.ask(self.store.claim(claim)).await;
        told.inspect_err(|error| self.tell_failed(Asked::Claim, &claim.record, error))
    }

    /// What the store makes of a renewal.
    pub(super) async fn renew(&self, lease: &Lease) -> Result<(), Error> {
        self.ask(self.store.renew(lease, self.settings.lease)).await
    }

    /// Asks to record the end of a run, again and again for as long as that may help. After the first time, whatever
    /// came of it, `then` is called: the answer is true whatever the record says.
    ///
    /// # Errors
    ///
    /// The store's last failure, told already.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, the end may or may not be recorded; if it is not, the lease runs out.
    pub(super) async fn finish(
        &self,
        lease: &Lease,
        end: &End,
        then: impl FnOnce() + Send,
    ) -> Result<Finished, Option<ErrorKind>> {
        let then = Mutex::new(Some(then));
        let ask = |_| async {
            let told = self.ask(self.store.finish(lease, end.clone())).await;
            if let Err(error) = &told {
                self.tell_failed(Asked::Finish, &lease.record, error);
            }
            let then = then.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(then) = then {
                then();
            }
            told
        };
        let told = self.finishing.safe().run(ask).await;
        // The pipeline's patience may end while the store is asked for the first time.
        let then = then.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(then) = then {
            self.tell_failed(Asked::Finish, &lease.record, &no_answer());
            then();
        }
        told.map_err(|failed| failed.into_inner().map(|error| error.kind()))
    }

    /// Takes back a claim of which nobody knows whether it was given. If that fails, its lease runs out.
    pub(super) async fn take_back(&self, claim: &Claim) {
        let lease = Lease { record: claim.record.clone(), claim: claim.id, run: 1 };
        let told = self.taking_back.safe().run(|_| self.ask(self.store.finish(&lease, End::NoEffect))).await;
        let failure = told.err().and_then(relent::Error::into_inner);
        if let Some(error) = failure.filter(|error| error.kind() != ErrorKind::Stale) {
            self.tell_failed(Asked::TakeBack, &claim.record, &error);
        }
    }

    /// The store's answer, or its absence in time.
    async fn ask<T: Debug>(
        &self,
        question: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        tokio::select! {
            // Whichever is dropped: a question whose answer nobody heard may have been carried out, and that is what
            // the error says; a sleep leaves nothing behind.
            biased;
            told = question => told,
            () = self.clock.sleep(self.settings.store_timeout) => {
                Err(no_answer())
            }
        }
    }
}

fn no_answer() -> Error {
    Error::new(ErrorKind::TimedOut, "the store did not answer in time")
}

/// Those that end runs and that take back claims.
fn pipelines<C: Clock>(clock: &C, store_timeout: Duration) -> Result<(Pipeline<C>, Pipeline<C>), Invalid> {
    // Each question has its own time-out, whose failure is told and lets the caller go. The pipeline's must not come
    // first, so it is out of the way.
    let attempt_timeout = store_timeout.saturating_add(Duration::from_secs(1));
    let taking_back = Policy {
        attempt_timeout,
        total_timeout: Some(FINISH_PATIENCE.max(attempt_timeout)),
        ..Policy::live()
    };
    let finishing = Policy {
        retry: RetryPolicy { max_attempts: None, backoff: FINISH_BACKOFF, ..taking_back.retry.clone() },
        budget: None, // no more of these than handlers ran when the store went down
        ..taking_back.clone()
    };
    let on = |policy| Ok(Pipeline::on(clock.clone(), policy)?.named("idempotency-store"));
    Ok((on(finishing)?, on(taking_back)?))
}

const IDEMPOTENCY_REPLAYED: http::HeaderName = http::HeaderName::from_static("idempotency-replayed");

/// How long the end of a run is kept in memory for a store that does not take it: as long as a restart of a database
/// takes, or the failover to its replica.
const FINISH_PATIENCE: Duration = Duration::from_secs(60);

const FINISH_BACKOFF: Backoff = Backoff::Exponential {
    base: Duration::from_millis(200),
    factor_milli: 2000,
    max: Duration::from_secs(5),
};
