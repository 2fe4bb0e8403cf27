//! Bodies that are sent again: the same bytes each time, or no second time.

use std::{
    collections::VecDeque,
    future::{Ready, ready},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Collected, Empty, Full};
use relent::{Event, ManualClock, Observe, Pipeline, Policy, Scene};
use relent_tower::{BoxError, Error, PipelineLayer, Replay, ReplayBody, ReplayError};
use tower::{Layer, Service};

/// A stream that gives what a test has put in, and waits where there is nothing yet.
#[derive(Clone, Default)]
struct Tap(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    frames: VecDeque<Given>,
    polled_by: Option<Waker>,
    hint: SizeHint,
}

enum Given {
    Data(&'static str),
    Trailer(&'static str),
    Fails,
    Panics,
    Ends,
}

impl Tap {
    fn with(frames: impl IntoIterator<Item = Given>) -> Self {
        let tap = Self::default();
        frames.into_iter().for_each(|frame| tap.give(frame));
        tap
    }

    fn give(&self, frame: Given) {
        let mut inside = self.0.lock().unwrap();
        inside.frames.push_back(frame);
        if let Some(waker) = inside.polled_by.take() {
            drop(inside);
            waker.wake();
        }
    }

    fn announcing(self, length: u64) -> Self {
        self.0.lock().unwrap().hint = SizeHint::with_exact(length);
        self
    }
}

impl Body for Tap {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut inside = self.0.lock().unwrap();
        let given = inside.frames.pop_front();
        if given.is_none() {
            inside.polled_by = Some(cx.waker().clone());
        }
        drop(inside);
        match given {
            None => Poll::Pending,
            Some(Given::Data(data)) => {
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data.as_bytes())))))
            }
            Some(Given::Trailer(value)) => {
                let mut trailers = HeaderMap::new();
                trailers.insert("digest", HeaderValue::from_static(value));
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Some(Given::Fails) => Poll::Ready(Some(Err(io::Error::other("the disk is gone")))),
            Some(Given::Panics) => panic!("as planned"),
            Some(Given::Ends) => Poll::Ready(None),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().unwrap().hint
    }
}

/// One frame of a body, or why there is none.
type Polled<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

/// How often a body's reader was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<B: Body + Unpin>(body: &mut B, woken: &Arc<Woken>) -> Poll<Option<Polled<B>>> {
    Pin::new(body).poll_frame(&mut Context::from_waker(&Waker::from(Arc::clone(woken))))
}

fn next<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> Option<Bytes>
where
    B::Error: std::fmt::Debug,
{
    match poll(body, &Arc::default()) {
        Poll::Ready(Some(frame)) => Some(frame.unwrap().into_data().unwrap()),
        _ => None,
    }
}

/// What a future gives at its first poll.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

async fn whole(body: ReplayBody<Tap>) -> Bytes {
    body.collect().await.expect("it does not fail").to_bytes()
}

#[tokio::test]
async fn bytes_are_sent_again_without_a_copy() {
    let bytes = Bytes::from(b"hello world".to_vec());
    let body = ReplayBody::<Tap>::bytes(bytes.clone());
    for _ in 0..3 {
        let mut again = body.replay().unwrap();
        assert_eq!(again.size_hint().exact(), Some(11));
        let sent = next(&mut again).unwrap();
        assert_eq!((sent.as_ptr(), sent.len()), (bytes.as_ptr(), bytes.len()));
        assert!(again.is_end_stream() && next(&mut again).is_none());
    }
    assert!(ReplayBody::<Tap>::bytes("").is_end_stream());
    let full = Full::new(bytes.clone());
    let sent = next(&mut full.replay().unwrap()).unwrap();
    assert_eq!(sent.as_ptr(), bytes.as_ptr(), "a body that is cheap to clone is cloned");
}

#[tokio::test]
async fn a_body_can_be_made_anew_for_each_attempt() {
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    let body = ReplayBody::made_by(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Tap::with([Given::Data("hello "), Given::Data("world"), Given::Ends]).announcing(11)
    });
    assert_eq!(made.load(Ordering::SeqCst), 0, "nothing is made before it is sent");
    for attempt in 1..=3 {
        let again = body.replay().unwrap();
        assert_eq!(again.size_hint().exact(), Some(11));
        assert_eq!(whole(again).await, "hello world");
        assert_eq!(made.load(Ordering::SeqCst), attempt, "and once for each attempt");
    }
}

#[tokio::test]
async fn a_stream_that_can_be_read_once_is_sent_once() {
    // RT-01
    let body = ReplayBody::once(Tap::with([Given::Data("hello"), Given::Ends]));
    assert!(!body.is_replayable() && body.replay().is_none());
    assert_eq!(whole(body).await, "hello");
}

#[tokio::test]
async fn a_stream_is_kept_while_it_is_sent() {
    let tap = Tap::with([Given::Data("hello "), Given::Data("world"), Given::Trailer("d"), Given::Ends]);
    let kept = ReplayBody::recorded(tap.announcing(11), 11);
    for _ in 0..3 {
        let again = kept.replay().unwrap();
        assert_eq!(again.size_hint().exact(), Some(11));
        let collected = again.collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["digest"], "d");
        assert_eq!(collected.to_bytes(), "hello world");
    }
}

#[tokio::test]
async fn a_stream_that_was_not_read_is_whole_in_the_second_attempt() {
    // RT-03: refused before the body was read, while its first bytes are still to come; a hundred times.
    for _ in 0..100 {
        let tap = Tap::default();
        let kept = ReplayBody::recorded(tap.clone().announcing(11), 1024);
        let mut first = kept.replay().unwrap();
        assert!(poll(&mut first, &Arc::default()).is_pending());
        let second = kept.replay().unwrap();
        let sent = tokio::spawn(whole(second));
        tokio::task::yield_now().await;
        drop(first);
        tap.give(Given::Data("hello world"));
        tap.give(Given::Ends);
        assert_eq!(sent.await.unwrap(), "hello world");
    }
}

#[tokio::test]
async fn a_stream_that_broke_off_in_the_middle_is_read_on_from_there() {
    let tap = Tap::with([Given::Data("hello ")]);
    let kept = ReplayBody::recorded(tap.clone(), 1024);
    let mut first = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), "hello ");
    drop(first);
    tap.give(Given::Data("world"));
    tap.give(Given::Ends);
    assert_eq!(whole(kept.replay().unwrap()).await, "hello world");
}

#[test]
fn who_waits_is_woken_whoever_reads_on() {
    let tap = Tap::default();
    let kept = ReplayBody::recorded(tap.clone(), 1024);
    let [mut first, mut second] = [kept.replay().unwrap(), kept.replay().unwrap()];
    let [one, two] = [Arc::new(Woken::default()), Arc::new(Woken::default())];
    assert!(poll(&mut first, &one).is_pending());
    assert!(poll(&mut second, &two).is_pending(), "the stream will wake this one");
    drop(second);
    assert_eq!(one.0.load(Ordering::SeqCst), 1, "so the other must look for itself");
    assert!(poll(&mut first, &one).is_pending());
    tap.give(Given::Data("hello"));
    assert_eq!(one.0.load(Ordering::SeqCst), 2);
    assert_eq!(next(&mut first).unwrap(), "hello");
}

#[tokio::test]
async fn a_stream_beyond_the_limit_is_sent_to_its_end_and_not_again() {
    let tap = Tap::with([Given::Data("hello"), Given::Data(" wor"), Given::Data("ld"), Given::Ends]);
    let kept = ReplayBody::recorded(tap, 8);
    let mut behind = kept.replay().unwrap();
    let mut first = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), "hello");
    assert!(kept.is_replayable(), "so far it could be sent again");
    assert_eq!(next(&mut first).unwrap(), " wor");
    assert!(!kept.is_replayable() && kept.replay().is_none());
    assert_eq!(next(&mut first).unwrap(), "ld");
    assert!(next(&mut first).is_none() && first.is_end_stream());
    // Who is behind must not pass off the rest, or nothing, as the whole.
    assert!(!behind.is_end_stream());
    assert!(matches!(poll(&mut behind, &Arc::default()), Poll::Ready(Some(Err(_)))));
}

/// A connection that reads on after the answer comes to the limit, and then there is another attempt.
#[tokio::test]
async fn what_a_promised_attempt_needs_is_not_let_go() {
    let tap = Tap::with([Given::Data("hello"), Given::Data(" world"), Given::Ends]);
    let kept = ReplayBody::recorded(tap, 8);
    let mut first = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), "hello");
    assert!(kept.promise_replay() && kept.promise_replay());
    let woken = Arc::new(Woken::default());
    assert!(poll(&mut first, &woken).is_pending() && !first.is_end_stream(), "it waits at the limit");
    assert!(kept.is_replayable());
    let second = kept.replay().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(&mut first, &woken), Poll::Ready(Some(Err(_)))), "and ends there");
    assert_eq!(whole(second).await, "hello world");
    assert!(!kept.promise_replay() && !kept.is_replayable(), "the newest one went beyond the limit");
}

#[test]
fn an_earlier_attempt_does_not_go_beyond_the_limit_before_the_next_has_begun_to_read() {
    let tap = Tap::with([Given::Data("hello"), Given::Data(" world"), Given::Ends]);
    let kept = ReplayBody::recorded(tap, 8);
    let mut first = kept.replay().unwrap();
    let mut second = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), "hello");
    assert!(matches!(poll(&mut first, &Arc::default()), Poll::Ready(Some(Err(_)))));
    assert_eq!(next(&mut second).unwrap(), "hello");
    assert_eq!(next(&mut second).unwrap(), " world");
    assert!(next(&mut second).is_none());
}

#[test]
fn who_waits_at_the_limit_goes_on_when_there_is_no_other_attempt() {
    for read in [false, true] {
        let tap = Tap::with([Given::Data("hello"), Given::Data(" world"), Given::Ends]);
        let mut kept = ReplayBody::recorded(tap, 8);
        let mut first = kept.replay().unwrap();
        assert_eq!(next(&mut first).unwrap(), "hello");
        assert!(kept.promise_replay());
        let woken = Arc::new(Woken::default());
        assert!(poll(&mut first, &woken).is_pending());
        match read {
            true => assert_eq!(next(&mut kept).unwrap(), "hello"),
            false => drop(kept),
        }
        assert_eq!(woken.0.load(Ordering::SeqCst), 1, "read: {read}");
        assert_eq!(next(&mut first).unwrap(), " world");
        assert!(next(&mut first).is_none() && first.is_end_stream());
    }
}

/// A server that answers the first request before it has read it.
#[derive(Clone)]
struct Early(Arc<Seen>);

#[derive(Default)]
struct Seen {
    first: Mutex<Option<ReplayBody<Tap>>>,
    second: Mutex<Option<Result<Bytes, ReplayError>>>,
    statuses: [u16; 2],
}

impl Service<Request<ReplayBody<Tap>>> for Early {
    type Response = Response<Empty<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Tap>>) -> Self::Future {
        let mut body = request.into_body();
        let attempt = usize::from(self.0.first.lock().unwrap().is_some());
        if attempt == 0 {
            assert_eq!(next(&mut body).unwrap(), "hello");
            *self.0.first.lock().unwrap() = Some(body);
        } else {
            let whole = at_once(body.collect()).expect("all of it is there");
            *self.0.second.lock().unwrap() = Some(whole.map(Collected::to_bytes));
        }
        ready(Ok(Response::builder().status(self.0.statuses[attempt]).body(Empty::new()).unwrap()))
    }
}

/// While the call waits, the first attempt's connection reads as much as it can.
struct ReadsOn(ManualClock, Arc<Seen>);

impl Observe for ReadsOn {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Waiting { wait, .. } = event {
            let mut first = self.1.first.lock().unwrap();
            while let Poll::Ready(Some(Ok(_))) = poll(first.as_mut().unwrap(), &Arc::default()) {}
            self.0.advance(wait.length);
        }
    }
}

async fn answered_early(statuses: [u16; 2]) -> (Arc<Seen>, Result<Response<Empty<Bytes>>, Error>) {
    let seen = Arc::new(Seen { statuses, ..Seen::default() });
    let clock = ManualClock::new();
    let policy = Policy { budget: None, ..Policy::live() };
    let pipeline = Pipeline::on(clock.clone(), policy).unwrap();
    let pipeline = pipeline.observed_by(Arc::new(ReadsOn(clock, Arc::clone(&seen))));
    let mut service = PipelineLayer::new(pipeline).unwrap().layer(Early(Arc::clone(&seen)));
    let tap = Tap::with([Given::Data("hello"), Given::Data(" world"), Given::Ends]);
    let request = Request::put("http://x/").body(ReplayBody::recorded(tap, 8)).unwrap();
    let mut call = std::pin::pin!(service.call(request));
    let ended = call.as_mut().await;
    let first = seen.first.lock().unwrap().take();
    // The future of the call is still there, and holds nobody back.
    let left = at_once(first.unwrap().collect());
    match statuses[0] {
        200 => assert_eq!(left.unwrap().unwrap().to_bytes(), " world"),
        _ => assert!(left.unwrap().is_err(), "it is not passed off as the whole"),
    }
    (seen, ended)
}

#[tokio::test]
async fn a_retry_that_was_promised_has_its_body_although_the_connection_reads_on() {
    let (seen, ended) = answered_early([503, 200]).await;
    assert_eq!(ended.unwrap().status(), 200);
    assert_eq!(seen.second.lock().unwrap().take().unwrap().unwrap(), "hello world");
}

#[tokio::test]
async fn a_call_that_has_ended_lets_the_connection_read_on() {
    let (seen, ended) = answered_early([200, 500]).await;
    assert_eq!(ended.unwrap().status(), 200);
    assert!(seen.second.lock().unwrap().is_none());
}

#[test]
fn a_stream_that_says_that_it_is_longer_is_not_kept_at_all() {
    let kept = |limit| ReplayBody::recorded(Tap::default().announcing(11), limit).is_replayable();
    assert!(kept(11) && !kept(10));
}

#[tokio::test]
async fn a_stream_that_fails_is_not_sent_again_in_part() {
    let kept = ReplayBody::recorded(Tap::with([Given::Data("hello"), Given::Fails]), 1024);
    let first = kept.replay().unwrap();
    let mut behind = kept.replay().unwrap();
    let error = first.collect().await.unwrap_err();
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the disk is gone");
    assert!(!kept.is_replayable());
    assert_eq!(next(&mut behind).unwrap(), "hello");
    assert!(matches!(poll(&mut behind, &Arc::default()), Poll::Ready(Some(Err(_)))), "it does not end well");
}

#[test]
fn a_stream_that_panics_is_not_sent_again_in_part() {
    let kept = ReplayBody::recorded(Tap::with([Given::Data("hello"), Given::Panics]), 1024);
    let mut first = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), "hello");
    let panicked = catch_unwind(AssertUnwindSafe(|| poll(&mut first, &Arc::default()).is_ready()));
    assert!(panicked.is_err() && !kept.is_replayable());
    assert!(matches!(poll(&mut first, &Arc::default()), Poll::Ready(Some(Err(_)))));
}
