//! One run of a handler: under a lease, to its end, whatever that is, and never without its record knowing.

use std::{
    any::Any,
    collections::VecDeque,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, response::Parts};
use http_body::Body;
use relent::Clock;
use tokio::{sync::watch, task::JoinHandle};
use tower_service::Service;

use super::{
    guard::{Teller, Told},
    shared::Shared,
    surroundings::Surroundings,
};
use crate::{
    Answer, Asked, End, Ended, ErrorKind, Event, Finished, Lease, NoEffect, RequestBody, ResponseBody, Run,
    WhenLost,
    answer::head_size,
    body::{Collected, collect},
    run::Lost,
};

/// The handler's service, ready or not, with what is known where it was called.
pub(super) struct Inner<S, C> {
    service: S,
    readiness: Readiness,
    surroundings: Surroundings<C>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Readiness {
    Ready,
    Unknown,
}

impl<S: Clone, C: Clock> Inner<S, C> {
    pub(super) fn ready(service: S, surroundings: Surroundings<C>) -> Self {
        Self { service, readiness: Readiness::Ready, surroundings }
    }

    /// Gives back what readiness holds (a place in a limit, say) while a repeat waits for another's answer.
    pub(super) fn step_back(&mut self) {
        if self.readiness == Readiness::Ready {
            self.service = self.service.clone();
            self.readiness = Readiness::Unknown;
        }
    }

    /// Calls the service, made ready first if it is not.
    async fn call<Q>(self, request: Q) -> Result<S::Response, Failed<S::Error>>
    where
        S: Service<Q>,
    {
        let Self { mut service, readiness, surroundings } = self;
        let called = async move {
            if readiness == Readiness::Unknown {
                poll_fn(|cx| service.poll_ready(cx)).await.map_err(Failed::NotReady)?;
            }
            service.call(request).await.map_err(Failed::Handler)
        };
        surroundings.around(called).await
    }
}

/// Why there is no response.
enum Failed<E> {
    /// The service did not become ready: nothing was done.
    NotReady(E),
    /// The handler failed; what it did is not known.
    Handler(E),
}

/// How a run ended.
#[expect(clippy::large_enum_variant, reason = "nearly every run ends with a response")]
enum Ending<R: Body, E> {
    Response(Parts, Collected<R>),
    Failed(Failed<E>),
    Panic(Box<dyn Any + Send>),
}

/// Runs the handler under a lease that is renewed, records how it ended, and tells whoever waits.
pub(super) async fn run<S, B, R, C>(
    shared: &Arc<Shared<C>>,
    lease: Lease,
    inner: Inner<S, C>,
    mut request: Request<RequestBody<B>>,
    teller: Teller<R, S::Error>,
) where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
    C: Clock,
{
    let began = shared.clock.now();
    let running = shared.live.begin_run(lease.record.clone());
    let lease = Arc::new(lease);
    if teller.is_closed() {
        // The client went away while the store was asked; a repeat may as well be the first.
        record(shared, &lease, End::NoEffect, began, || ()).await;
        return;
    }
    let (run, lost) = Run::new(Arc::clone(&lease));
    request.extensions_mut().insert(run);
    let renewing = Renewing(tokio::spawn(renew(Arc::clone(shared), Arc::clone(&lease), lost)));
    let ending = catch(handle(shared, inner, request)).await.unwrap_or_else(Ending::Panic);
    let end = end_of(shared, &ending);
    record(shared, &lease, end, began, || drop(teller.send(told(ending)))).await;
    drop((renewing, running));
}

/// Calls the handler and reads its answer, as far as it would be kept.
async fn handle<S, B, R, C>(
    shared: &Shared<C>,
    inner: Inner<S, C>,
    request: Request<RequestBody<B>>,
) -> Ending<R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone,
    R: Body<Data = Bytes>,
    C: Clock,
{
    let response = match inner.call(request).await {
        Ok(response) => response,
        Err(failed) => return Ending::Failed(failed),
    };
    let (parts, body) = response.into_parts();
    let head = head_size(&shared.settings.kept.of(&parts.headers));
    // A head that is too large leaves no room even for an empty body.
    let collected = match shared.settings.max_answer.checked_sub(head) {
        Some(left) => collect(body, left).await,
        None => Collected::TooLarge(VecDeque::new(), Box::pin(body)),
    };
    Ending::Response(parts, collected)
}

/// Runs the handler without any guard.
pub(super) async fn run_unguarded<S, B, R, C>(
    inner: Inner<S, C>,
    request: Request<RequestBody<B>>,
    teller: Teller<R, S::Error>,
) where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone,
    R: Body<Data = Bytes>,
    C: Clock,
{
    let told = match catch(inner.call(request)).await {
        Ok(Ok(response)) => Ok(Ok(response.map(ResponseBody::passed))),
        Ok(Err(Failed::NotReady(error) | Failed::Handler(error))) => Ok(Err(error)),
        Err(panic) => Err(panic),
    };
    drop(teller.send(told));
}

/// Records the end of a run. `tell` is called once: as soon as the end stands, or the store has refused it once.
async fn record<C: Clock>(
    shared: &Shared<C>,
    lease: &Lease,
    end: End,
    began: relent::Timestamp,
    tell: impl FnOnce() + Send,
) {
    let ended = match &end {
        End::Answered(_) => Ended::Answered,
        End::NotKept(_) => Ended::NotKept,
        End::Unknown => Ended::Unknown,
        End::NoEffect => Ended::NoEffect,
    };
    let success = match &end {
        End::Answered(Answer { status, .. }) | End::NotKept(status) => status.is_success(),
        End::Unknown | End::NoEffect => false,
    };
    let finished = match shared.finish(lease, &end, tell).await {
        Ok(finished) => finished,
        Err(Some(ErrorKind::Stale)) => return shared.tell(Event::LeaseLost(lease)),
        Err(_) => return, // each failure was told; the lease runs out
    };
    let shares = shared.settings.when_lost == WhenLost::SharedTransaction;
    if shares && success && finished == Finished::Done {
        shared.tell(Event::NotInTransaction(lease));
    }
    let took = shared.clock.now().since(began);
    // What the handler recorded in its own transaction stands, whatever it said afterwards.
    let ended = if finished == Finished::Already { Ended::Answered } else { ended };
    shared.tell(Event::Ran { lease, ended, took });
}

/// What to record of an ending.
fn end_of<R: Body, E, C>(shared: &Shared<C>, ending: &Ending<R, E>) -> End {
    let unknown = match shared.settings.when_lost {
        WhenLost::Refuse => End::Unknown,
        WhenLost::RunAgain | WhenLost::SharedTransaction => End::NoEffect,
    };
    let (parts, collected) = match ending {
        Ending::Response(parts, collected) => (parts, collected),
        Ending::Failed(Failed::NotReady(_)) => return End::NoEffect,
        Ending::Failed(Failed::Handler(_)) | Ending::Panic(_) => return unknown,
    };
    if parts.extensions.get::<NoEffect>().is_some() || is_rolled_back(shared, parts.status) {
        return End::NoEffect;
    }
    match collected {
        // The connection becomes another protocol's: that cannot be given again.
        _ if parts.status.is_informational() => End::NotKept(parts.status),
        Collected::Whole(body, _) => End::Answered(Answer {
            status: parts.status,
            headers: shared.settings.kept.of(&parts.headers),
            body: body.clone(),
        }),
        Collected::TooLarge(..) => End::NotKept(parts.status),
        Collected::Broken(..) => unknown,
    }
}

/// Whether the handler's transaction is gone: it shares it with the record, and failed.
fn is_rolled_back<C>(shared: &Shared<C>, status: StatusCode) -> bool {
    shared.settings.when_lost == WhenLost::SharedTransaction && status.is_server_error()
}

/// What whoever waits is told.
fn told<R: Body, E>(ending: Ending<R, E>) -> Told<R, E> {
    let (parts, collected) = match ending {
        Ending::Response(parts, collected) => (parts, collected),
        Ending::Failed(Failed::NotReady(error) | Failed::Handler(error)) => return Ok(Err(error)),
        Ending::Panic(panic) => return Err(panic),
    };
    let body = match collected {
        Collected::Whole(bytes, trailers) => ResponseBody::read(bytes, trailers),
        Collected::TooLarge(chunks, rest) => ResponseBody::begun(chunks, rest),
        Collected::Broken(chunks, error) => ResponseBody::broken(chunks, error),
    };
    Ok(Ok(Response::from_parts(parts, body)))
}

/// Renews a lease until it is stopped or the lease is lost. A task of its own, so that a handler that keeps its thread
/// busy does not lose its lease.
async fn renew<C: Clock>(shared: Arc<Shared<C>>, lease: Arc<Lease>, lost: watch::Sender<Lost>) {
    // A sixth to a third of the lease, by chance: leases that began together are not renewed together.
    let every = shared.settings.lease * (256 + u32::from(lease.claim.0[0])) / (6 * 256);
    let mut next = every;
    loop {
        shared.clock.sleep(next).await;
        next = match shared.renew(&lease).await {
            Ok(()) => every,
            Err(error) if error.kind() == ErrorKind::Stale => {
                // Nobody may be listening any more.
                lost.send_replace(Lost::Yes);
                return shared.tell(Event::LeaseLost(&lease));
            }
            Err(error) => {
                shared.tell_failed(Asked::Renew, &lease.record, &error);
                every / 4
            }
        };
    }
}

/// Stops the renewal with its run.
struct Renewing(JoinHandle<()>);

impl Drop for Renewing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The future's output, or its panic.
async fn catch<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    // Nothing of the future is used after a panic but dropping it, so nothing half-changed is seen.
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}
