//! The policy as a middleware of reqwest-middleware, over real sockets.

#![cfg(feature = "middleware")]

#[path = "../../relent-tower/tests/support/server.rs"]
mod server;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Extensions;
use relent::{Backoff, Event, Jitter, ManualClock, Observe, Pipeline, Policy, Scene, StopReason};
use relent_reqwest::{HttpPipeline, client_builder, report};
use relent_tower::CallTerms;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};

use self::server::{Server, deserted};

const SECOND: Duration = Duration::from_secs(1);

/// Lets every wait be over as soon as it begins.
struct Pace(ManualClock);

impl Observe for Pace {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Waiting { wait, .. } = event {
            self.0.advance(wait.length);
        }
    }
}

fn stock() -> HttpPipeline<ManualClock> {
    let clock = ManualClock::new();
    let mut policy = Policy { budget: None, total_timeout: Some(60 * SECOND), ..Policy::live() };
    policy.retry.backoff = Backoff::Constant(SECOND);
    policy.retry.jitter = Jitter::None;
    policy.retry.max_attempts = Some(4);
    let pipeline = Pipeline::on(clock.clone(), policy).expect("a possible policy").named("stock");
    HttpPipeline::new(pipeline.observed_by(Arc::new(Pace(clock))))
        .expect("a patient policy")
        .trusting_clients()
}

/// Counts how often it is called, and leaves its mark in the extensions.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

/// The marks of a `Count`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Marks(Vec<usize>);

#[async_trait::async_trait]
impl Middleware for Count {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        extensions.get_or_insert_default::<Marks>().0.push(number);
        next.run(request, extensions).await
    }
}

/// Keeps what stands in the extensions when everything below has ended.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<Marks>>);

#[async_trait::async_trait]
impl Middleware for Outside {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let response = next.run(request, extensions).await;
        *self.0.lock().unwrap() = extensions.get::<Marks>().cloned().unwrap_or_default();
        response
    }
}

fn stack(outside: &Outside, count: &Count) -> ClientWithMiddleware {
    let client = client_builder().no_proxy().build().expect("a client");
    ClientBuilder::new(client).with(outside.clone()).with(stock()).with(count.clone()).build()
}

async fn answering(statuses: &'static [u16]) -> Server {
    let number = Arc::new(AtomicUsize::new(0));
    Server::start(move |_, mut peer| {
        let number = Arc::clone(&number);
        async move {
            while peer.request().await.is_some() {
                let index = number.fetch_add(1, Ordering::SeqCst);
                let status = statuses.get(index).or(statuses.last()).expect("a status");
                peer.send(format!("HTTP/1.1 {status} \r\ncontent-length: 0\r\n\r\n")).await;
            }
        }
    })
    .await
}

#[tokio::test]
async fn what_stands_below_is_called_once_for_each_attempt_and_leaves_only_its_last_mark() {
    let server = answering(&[503, 503, 200]).await;
    let (outside, count) = (Outside::default(), Count::default());
    let response = stack(&outside, &count).get(server.url()).send().await.expect("an answer");
    let told = report(&response).map(|report| (report.attempts, report.stop));
    assert_eq!((response.status().as_u16(), told), (200, Some((3, StopReason::Succeeded))));
    assert_eq!(count.0.load(Ordering::SeqCst), 3);
    assert_eq!(*outside.0.lock().unwrap(), Marks(vec![3]), "what the attempts before left is gone");
}

#[tokio::test]
async fn a_command_whose_redirect_cannot_be_followed_is_carried_out_once_here_too() {
    for status in [303, 307, 308] {
        let nobody = deserted().await;
        let bank = Server::start(move |_, mut peer| async move {
            peer.request().await;
            let head =
                format!("HTTP/1.1 {status} \r\nlocation: http://{nobody}/\r\ncontent-length: 0\r\n\r\n");
            peer.send(head).await;
        })
        .await;
        let untold = HttpPipeline::new(Pipeline::new(Policy::live()).expect("a possible policy"));
        let follows = reqwest::Client::builder().no_proxy().build().expect("a client");
        let client = ClientBuilder::new(follows).with(untold.expect("a patient policy")).build();
        let error = client.post(bank.url()).body("10").send().await.expect_err("nobody is there");
        let Error::Middleware(error) = error else { panic!("{error:?}") };
        let ended = error.downcast_ref::<relent::Error<Error>>().expect("relent's own error");
        assert_eq!((ended.stop(), ended.report().attempts), (StopReason::Ambiguous, 1));
        assert_eq!(bank.accepted(), 1, "{status}");
    }
}

#[tokio::test]
async fn terms_are_said_by_an_extension() {
    // RT-13
    let server = answering(&[503]).await;
    for (terms, sends) in [(CallTerms::new(), 1), (CallTerms::new().keyed(), 4)] {
        let count = Count::default();
        let client = stack(&Outside::default(), &count);
        let response = client.post(server.url()).with_extension(terms).body("an order").send().await;
        assert_eq!(
            (response.expect("an answer").status().as_u16(), count.0.load(Ordering::SeqCst)),
            (503, sends)
        );
    }
}

#[tokio::test]
async fn a_call_without_a_response_says_why_it_ended() {
    let nobody = deserted().await;
    let client = stack(&Outside::default(), &Count::default());
    let error = client.post(format!("http://{nobody}/")).send().await.expect_err("nobody is there");
    let Error::Middleware(error) = error else { panic!("{error:?}") };
    let ended = error.downcast_ref::<relent::Error<Error>>().expect("relent's own error");
    assert_eq!((ended.stop(), ended.report().attempts), (StopReason::AttemptsExhausted, 4));
    assert!(matches!(ended.inner(), Some(Error::Reqwest(error)) if error.is_connect()));
}

#[tokio::test]
async fn a_body_that_is_a_stream_is_sent_before_anybody_asks_for_a_copy() {
    // RT-01
    let server = answering(&[200]).await;
    let stream = reqwest::Body::wrap(http_body_util::Full::<bytes::Bytes>::from("hello world"));
    let client = stack(&Outside::default(), &Count::default());
    let response = client.put(server.url()).body(stream).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 200);
}
