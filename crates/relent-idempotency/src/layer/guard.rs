//! One guarded request, from its key to its answer.

use std::{
    pin::{Pin, pin},
    sync::Arc,
    thread,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use relent::Clock;
use tokio::sync::{futures::Notified, oneshot};
use tower_service::Service;

use super::{perform::Inner, shared::Shared, surroundings::Surroundings};
use crate::{
    Asked, Claim, ClaimId, Claimed, Error, ErrorKind, Event, Fingerprint, Key, RecordId, Refusal,
    RequestBody, ResponseBody, WhenDown, body::read_request,
};

/// What the task of a request tells whoever waits for it: a response or the handler's own failure, or its panic, with
/// which whoever waits panics in its place, as without the layer.
pub(super) type Told<R, E> = thread::Result<Result<Response<ResponseBody<R>>, E>>;

/// To whom a task tells it. Gone if the client is.
pub(super) type Teller<R, E> = oneshot::Sender<Told<R, E>>;

/// Answers a guarded request.
///
/// From the claim on it is a task of its own, which a client that goes away does not stop.
pub(super) async fn guard<S, B, R, C>(
    shared: Arc<Shared<C>>,
    inner: S,
    key: Result<Key, Refusal>,
    request: Request<B>,
) -> Result<Response<ResponseBody<R>>, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
    C: Clock,
{
    let (claim, request) = match read(&shared, key, request).await {
        Ok(read) => read,
        Err((refusal, record)) => return Ok(shared.refuse(refusal, record.as_ref())),
    };
    let record = claim.record.clone();
    let (teller, told) = oneshot::channel();
    let task = shared.live.begin_task();
    let inner = Inner::ready(inner, Surroundings::here(shared.clock.clone()));
    let serving = serve(Arc::clone(&shared), claim, inner, request, teller);
    tokio::spawn(async move {
        serving.await;
        drop(task);
    });
    match told.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        // The task is gone without a word: the runtime is shutting down, or an observer panicked.
        Err(_) => Ok(shared.refuse(Refusal::OutcomeUnknown, Some(&record))),
    }
}

/// Reads the request whole and makes its claim.
async fn read<B, C>(
    shared: &Shared<C>,
    key: Result<Key, Refusal>,
    request: Request<B>,
) -> Result<(Claim, Request<RequestBody<B>>), (Refusal, Option<RecordId>)>
where
    B: Body<Data = Bytes>,
    C: Clock,
{
    let key = key.map_err(|refusal| (refusal, None))?;
    let (parts, body) = request.into_parts();
    let caller = shared.callers.caller(&parts).ok_or((Refusal::CallerUnknown, None))?;
    let record = RecordId { caller, key };
    let settings = &shared.settings;
    let body =
        read_request(body, settings.max_request).await.map_err(|refusal| (refusal, Some(record.clone())))?;
    let fingerprint = Fingerprint::of(&record.caller, &parts.method, &(shared.resource)(&parts), &body);
    let id = ClaimId::draw().map_err(|error| {
        shared.tell_failed(Asked::Claim, &record, &error);
        (Refusal::StoreUnavailable, Some(record.clone()))
    })?;
    let claim = Claim {
        record,
        fingerprint,
        id,
        lease: settings.lease,
        lifetime: settings.lifetime,
        tombstone: settings.tombstone,
        if_lost: settings.if_lost(),
    };
    Ok((claim, Request::from_parts(parts, RequestBody::read(body))))
}

/// Claims the key and does what that leads to. A client that is gone before the handler begins stops it.
async fn serve<S, B, R, C>(
    shared: Arc<Shared<C>>,
    claim: Claim,
    mut inner: Inner<S, C>,
    request: Request<RequestBody<B>>,
    mut teller: Teller<R, S::Error>,
) where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
    C: Clock,
{
    let claimed = match claim_or_wait(&shared, &claim, || inner.step_back(), &mut teller).await {
        Ok(Some(claimed)) => claimed,
        Ok(None) => return,
        Err(error) => return without_a_store(&shared, &claim, &error, inner, request, teller).await,
    };
    let record = &claim.record;
    let response = match claimed {
        Claimed::Mine(lease) => return super::perform::run(&shared, lease, inner, request, teller).await,
        Claimed::Answered(answer) => shared.replay(answer, record),
        Claimed::Running { .. } => shared.refuse(Refusal::InProgress, Some(record)),
        Claimed::NotKept(status) => shared.refuse(Refusal::AnswerNotKept(status), Some(record)),
        Claimed::Unknown => shared.refuse(Refusal::OutcomeUnknown, Some(record)),
        Claimed::Expired => shared.refuse(Refusal::KeyExpired, Some(record)),
        Claimed::Mismatch => shared.refuse(Refusal::KeyReused, Some(record)),
    };
    // A client that is gone needs no answer.
    drop(teller.send(Ok(Ok(response))));
}

/// What the store makes of the claim, after the run that has the record if the settings say to wait for it. `None` if
/// the client went away meanwhile.
async fn claim_or_wait<R: Body, E, C: Clock>(
    shared: &Shared<C>,
    claim: &Claim,
    mut before_waiting: impl FnMut(),
    teller: &mut Teller<R, E>,
) -> Result<Option<Claimed>, Error> {
    let give_up_at = shared.clock.now().after(shared.settings.wait);
    let mut pause = FIRST_PAUSE;
    loop {
        let here = shared.live.end_of(&claim.record);
        let mut end = pin!(here.as_ref().map(|end| end.notified()));
        // Listened for before the store is asked, or an end between the two would be missed.
        if let Some(end) = end.as_mut().as_pin_mut() {
            end.enable();
        }
        let claimed = shared.claim(claim).await?;
        let left = give_up_at.since(shared.clock.now());
        if left.is_zero() || !matches!(claimed, Claimed::Running { .. }) {
            return Ok(Some(claimed));
        }
        before_waiting();
        tokio::select! {
            // Nothing is lost with either: the store is asked anew.
            () = ended(end) => {}
            () = shared.clock.sleep(pause.min(left)) => {}
            () = teller.closed() => return Ok(None),
        }
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Waits for the end of a run in this process. Of one elsewhere nothing is heard.
async fn ended(end: Pin<&mut Option<Notified<'_>>>) {
    match end.as_pin_mut() {
        Some(end) => end.await,
        None => std::future::pending().await,
    }
}

/// What is done when the store does not answer.
async fn without_a_store<S, B, R, C>(
    shared: &Shared<C>,
    claim: &Claim,
    error: &Error,
    inner: Inner<S, C>,
    request: Request<RequestBody<B>>,
    teller: Teller<R, S::Error>,
) where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
    C: Clock,
{
    let answers_nothing =
        matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable | ErrorKind::Full);
    // A record that is there and cannot be read is no reason to do its work again.
    if answers_nothing && shared.settings.when_down == WhenDown::RunUnguarded {
        shared.tell(Event::RanUnguarded(&claim.record));
        super::perform::run_unguarded(inner, request, teller).await;
    } else {
        let full = error.kind() == ErrorKind::Full;
        let refusal = if full { Refusal::StoreFull } else { Refusal::StoreUnavailable };
        drop(teller.send(Ok(Ok(shared.refuse(refusal, Some(&claim.record))))));
    }
    if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::Unavailable) {
        shared.take_back(claim).await;
    }
}

/// A repeat asks for the answer of another process so often: soon at first, since most answers come soon.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
