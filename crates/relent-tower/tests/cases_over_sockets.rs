//! Cases from public bug reports as whole conversations of hyper-util's client over real sockets, in time that the
//! test owns.

#[path = "support/http2.rs"]
mod http2;
#[path = "support/policy.rs"]
mod policy;
#[path = "support/server.rs"]
mod server;

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{Clock, Event, ManualClock, Observe, Pipeline, Scene, StopReason, Timestamp};
use relent_tower::{BodyError, BodyTimeoutLayer, BodyTimeouts, CallTerms, PipelineLayer, ReplayBody, report};
use tokio::{sync::Notify, task::yield_now};
use tower::{ServiceExt, layer::Layer};

use self::{
    http2::{ENHANCE_YOUR_CALM, go_away, greet, next_request},
    policy::{SECOND, policy},
    server::{Peer, Server},
};

/// A layer on a clock that stands still but for waits, which are over once everything else has had its turn.
fn layer(clock: &ManualClock) -> (PipelineLayer<ManualClock>, Arc<Waits>) {
    let waits = Arc::new(Waits::default());
    let pipeline =
        Pipeline::on(clock.clone(), policy()).expect("a possible policy").observed_by(waits.clone());
    (PipelineLayer::new(pipeline).expect("a patient policy").trusting_clients(), waits)
}

/// Runs calls to their end, and lets each wait of theirs pass once whatever can be done meanwhile is done: nothing
/// here comes from outside the process, so it is done after a number of turns.
async fn run<F>(clock: &ManualClock, waits: &Waits, calls: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let calls = tokio::spawn(calls);
    while !calls.is_finished() {
        let Some(length) = waits.0.lock().unwrap().pop() else {
            yield_now().await;
            continue;
        };
        for _ in 0..TURNS {
            yield_now().await;
        }
        clock.advance(length);
    }
    calls.await.expect("no call panics")
}

#[tokio::test]
async fn a_one_shot_upload_is_sent_once_and_its_answer_is_the_callers() {
    // RT-01
    for (status, told) in [(200, None), (503, Some((1, StopReason::NotReplayable)))] {
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&bodies);
        let server = Server::start(move |_, mut peer| {
            let log = Arc::clone(&log);
            async move {
                while let Some(request) = peer.request().await {
                    log.lock().unwrap().push(request.split_once("\r\n\r\n").expect("a head").1.to_owned());
                    peer.send(format!("HTTP/1.1 {status} \r\ncontent-length: 4\r\n\r\nbody")).await;
                }
            }
        })
        .await;
        let clock = ManualClock::new();
        let (layer, waits) = layer(&clock);
        let client: Client<_, ReplayBody<Full<Bytes>>> = http();
        let upload = Request::post(server.url()).extension(CallTerms::new().keyed());
        let upload = upload.body(ReplayBody::once(Full::from("hello world"))).expect("a request");
        let response = run(&clock, &waits, layer.layer(client).oneshot(upload)).await.expect("an answer");
        assert_eq!(response.status(), status);
        assert_eq!(report(&response).map(|report| (report.attempts, report.stop)), told);
        assert_eq!(response.into_body().collect().await.expect("all of it").to_bytes(), "body");
        assert_eq!(*bodies.lock().unwrap(), ["hello world"]);
    }
}

#[tokio::test]
async fn answers_that_nobody_wants_leave_one_connection_behind() {
    // RT-05
    let server = Server::start(|_, mut peer| async move {
        let busy = format!("HTTP/1.1 503 Busy\r\ncontent-length: 1024\r\n\r\n{}", "x".repeat(1024));
        let mut requests = 0;
        while peer.request().await.is_some() {
            requests += 1;
            let done = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            peer.send(if requests % 4 == 0 { done } else { &busy }).await;
        }
    })
    .await;
    let clock = ManualClock::new();
    let (layer, waits) = layer(&clock);
    let service = layer.layer(http::<Full<Bytes>>());
    for _ in 0..50 {
        let response = run(&clock, &waits, service.clone().oneshot(get(&server))).await.expect("an answer");
        assert_eq!(
            (response.status(), report(&response).map(|report| report.attempts)),
            (StatusCode::OK, Some(4))
        );
    }
    assert_eq!((server.accepted(), server.open()), (1, 1));
}

#[tokio::test]
async fn a_body_that_is_cut_is_the_readers_error_and_nothing_is_sent_again() {
    // RT-09
    const SENT: usize = 89_075;
    let server = Server::start(|_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\ncontent-length: 990434\r\netag: \"strong\"\r\n\r\n").await;
        peer.send(vec![b'x'; SENT]).await;
    })
    .await;
    let clock = ManualClock::new();
    let (layer, waits) = layer(&clock);
    let service = layer.layer(http::<Full<Bytes>>());
    let response = run(&clock, &waits, service.oneshot(get(&server))).await.expect("a head");
    let mut body = response.into_body();
    let mut read = 0;
    let error = loop {
        match body.frame().await.expect("it does not end well") {
            Ok(frame) => read += frame.data_ref().map_or(0, Bytes::len),
            Err(error) => break error,
        }
    };
    assert_eq!((read, server.accepted()), (SENT, 1), "{error}");
}

#[tokio::test]
async fn two_at_once_on_a_connection_that_says_calm_down_end_after_their_attempts() {
    // RT-11: with the client's own hidden retry, and without.
    for hidden in [true, false] {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let server = Server::start(move |_, peer| calm_down(peer, Arc::clone(&count))).await;
        let clock = ManualClock::new();
        let (layer, waits) = layer(&clock);
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(hidden)
            .http2_only(true)
            .build_http();
        let service = layer.layer(client);
        let both = [service.clone().oneshot(get(&server)), service.oneshot(get(&server))];
        let both = run(&clock, &waits, async move {
            let [first, second] = both;
            tokio::join!(first, second)
        });
        let (first, second) = both.await;
        for ended in [first, second] {
            let error = ended.expect_err("nobody is answered");
            assert_eq!(
                (error.report().attempts, error.stop()),
                (4, StopReason::AttemptsExhausted),
                "{error}"
            );
        }
        let requests = requests.load(Ordering::SeqCst);
        assert!((8..=16).contains(&requests), "{requests} requests");
    }
}

#[tokio::test]
async fn a_body_that_falls_silent_ends_when_its_reader_has_waited_long_enough() {
    // TO-12, run A
    let clock = ManualClock::new();
    let time = clock.clone();
    let server = Server::start(move |_, mut peer| {
        let time = time.clone();
        async move {
            peer.request().await;
            time.advance(ms(100));
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nten bytes.").await;
            peer.until_closed().await;
        }
    })
    .await;
    let response = timed(&clock, BodyTimeouts::new().with_idle(2 * SECOND), &server).await;
    let (head, mut body) = response.into_parts();
    assert_eq!((head.status, &head.headers["content-length"]), (StatusCode::OK, &"100".parse().unwrap()));
    let first = body.frame().await.expect("a part").expect("it comes").into_data().expect("bytes");
    assert_eq!((first, clock.now()), (Bytes::from("ten bytes."), at(100)));

    let mut next = pin!(body.frame());
    assert!(is_pending(next.as_mut()).await);
    clock.advance(ms(1999));
    assert!(is_pending(next.as_mut()).await, "not before");
    clock.advance(ms(1));
    let error = next.await.expect("it does not end well").expect_err("nothing comes");
    assert!(matches!(error, BodyError::Silent { after } if after == 2 * SECOND), "{error}");
    assert_eq!(clock.now(), at(2100));
    assert!(body.frame().await.is_none() && body.is_end_stream());
    while server.open() > 0 {
        yield_now().await; // its connection goes with it
    }
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn a_body_that_trickles_ends_when_it_has_taken_long_enough() {
    // TO-12, run B: a byte every 1.5 s, and 30 s for all.
    let clock = ManualClock::new();
    let byte = Arc::new(Notify::new());
    let told = Arc::clone(&byte);
    let server = Server::start(move |_, mut peer| {
        let told = Arc::clone(&told);
        async move {
            peer.request().await;
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n").await;
            loop {
                told.notified().await;
                peer.send("x").await;
            }
        }
    })
    .await;
    let timeouts = BodyTimeouts::new().with_idle(2 * SECOND).with_total(30 * SECOND);
    let mut body = timed(&clock, timeouts, &server).await.into_body();
    for number in 1..20 {
        let mut next = pin!(body.frame());
        assert!(is_pending(next.as_mut()).await);
        clock.advance(ms(1500));
        byte.notify_one();
        let part = next.await.expect("a part").expect("it comes").into_data().expect("bytes");
        assert_eq!((part.len(), clock.now()), (1, at(1500 * number)));
    }
    let mut next = pin!(body.frame());
    assert!(is_pending(next.as_mut()).await);
    clock.advance(ms(1500));
    let error = next.await.expect("it does not end well").expect_err("it takes too long");
    assert!(matches!(error, BodyError::TooLong { after } if after == 30 * SECOND), "{error}");
    assert_eq!(clock.now(), at(30_000));
}

#[tokio::test]
async fn a_reader_that_pauses_does_not_wait_and_what_is_there_counts() {
    let clock = ManualClock::new();
    let timeouts = BodyTimeouts::new().with_idle(2 * SECOND);
    let server = Server::closing_after("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await;
    let body = timed(&clock, timeouts, &server).await.into_body();
    clock.advance(60 * SECOND);
    assert_eq!(body.collect().await.expect("all of it").to_bytes(), "hello");
}

/// The head of a response whose body is bounded, through a pipeline.
async fn timed(
    clock: &ManualClock,
    timeouts: BodyTimeouts,
    server: &Server,
) -> http::Response<relent_tower::TimedBody<hyper::body::Incoming, ManualClock>> {
    let (layer, _) = layer(clock);
    let bounded = BodyTimeoutLayer::on(clock.clone(), timeouts).layer(http::<Full<Bytes>>());
    layer.layer(bounded).oneshot(get(server)).await.expect("a head")
}

/// Takes every request and says `GOAWAY` in place of an answer, as one who has seen none of them.
async fn calm_down(mut peer: Peer, count: Arc<AtomicUsize>) {
    greet(&mut peer).await;
    count.fetch_add(1, Ordering::SeqCst);
    peer.send(go_away(0, ENHANCE_YOUR_CALM)).await;
    while next_request(&mut peer).await.is_some() {
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// A client whose hidden retry is off.
fn http<B>() -> Client<HttpConnector, B>
where
    B: Body + Send,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http()
}

fn get(server: &Server) -> Request<Full<Bytes>> {
    Request::get(server.url()).body(Full::default()).expect("a request")
}

async fn is_pending<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

fn at(millis: u64) -> Timestamp {
    Timestamp::ZERO.after(ms(millis))
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The waits that have begun.
#[derive(Default)]
struct Waits(Mutex<Vec<Duration>>);

impl Observe for Waits {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Waiting { wait, .. } = event {
            self.0.lock().unwrap().push(wait.length);
        }
    }
}

/// More than it takes to hand a response's body from hyper's task to its reader.
const TURNS: usize = 100;
