//! Bodies that are sent again: the same bytes each time, or no second time.

use std::{
    collections::VecDeque,
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
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use relent_tower::{Replay, ReplayBody};

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
    let mut first = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), "hello");
    assert!(kept.is_replayable(), "so far it could be sent again");
    let mut behind = kept.replay().unwrap();
    assert_eq!(next(&mut first).unwrap(), " wor");
    assert!(!kept.is_replayable() && kept.replay().is_none());
    assert_eq!(next(&mut first).unwrap(), "ld");
    assert!(next(&mut first).is_none() && first.is_end_stream());
    // Who is behind must not pass off the rest, or nothing, as the whole.
    assert!(!behind.is_end_stream());
    assert!(matches!(poll(&mut behind, &Arc::default()), Poll::Ready(Some(Err(_)))));
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
