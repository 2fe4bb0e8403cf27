//! reqwest under a policy, over real sockets, in time that the test owns.

#[path = "../../relent-tower/tests/support/policy.rs"]
mod policy;
#[path = "../../relent-tower/tests/support/server.rs"]
mod server;

use std::{
    error::Error as _,
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use relent::{Event, Idempotency, ManualClock, Observe, Pipeline, Policy, Scene, StopReason};
use relent_reqwest::{Error, HttpPipeline, SendThrough, WithoutOwnRetries, client_builder, report};
use relent_tower::{CallTerms, Wire};
use reqwest::{Body, Client, Response};

use self::{
    policy::policy,
    server::{Server, deserted},
};

/// Lets every wait be over as soon as it begins, and keeps what is told.
struct Told {
    clock: ManualClock,
    events: Mutex<Vec<&'static str>>,
}

impl Observe for Told {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        self.events.lock().unwrap().push(event.name());
        if let Event::Waiting { wait, .. } = event {
            self.clock.advance(wait.length);
        }
    }
}

fn pipeline(policy: Policy) -> (HttpPipeline<ManualClock>, Arc<Told>) {
    let clock = ManualClock::new();
    let told = Arc::new(Told { clock: clock.clone(), events: Mutex::default() });
    let pipeline =
        Pipeline::on(clock, policy).expect("a possible policy").named("stock").observed_by(told.clone());
    (HttpPipeline::new(pipeline).expect("a patient policy").trusting_clients(), told)
}

fn client() -> Client {
    client_builder().no_proxy().build().expect("a client")
}

/// A server that answers each request with the next of these statuses, and keeps the requests.
async fn answering(statuses: &'static [u16]) -> (Server, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&requests);
    let server = Server::start(move |_, mut peer| {
        let log = Arc::clone(&log);
        async move {
            while let Some(request) = peer.request().await {
                let number = {
                    let mut log = log.lock().unwrap();
                    log.push(request);
                    log.len()
                };
                let status = statuses.get(number - 1).or(statuses.last()).expect("a status");
                let body = format!("answer {number}");
                let length = body.len();
                peer.send(format!("HTTP/1.1 {status} \r\ncontent-length: {length}\r\n\r\n{body}")).await;
            }
        }
    })
    .await;
    (server, requests)
}

fn headers(requests: &Mutex<Vec<String>>, name: &str) -> Vec<Option<String>> {
    let value = |request: &String| {
        let mut lines = request.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    };
    requests.lock().unwrap().iter().map(value).collect()
}

fn ended(response: &Response) -> Option<(u32, StopReason)> {
    report(response).map(|report| (report.attempts, report.stop))
}

#[tokio::test]
async fn what_says_not_now_is_asked_again() {
    let (server, requests) = answering(&[503, 503, 200]).await;
    let (stock, _) = pipeline(policy());
    let response = client().get(server.url()).send_through(&stock).await.expect("an answer");
    assert_eq!((response.status().as_u16(), ended(&response)), (200, Some((3, StopReason::Succeeded))));
    assert_eq!(response.text().await.expect("a body"), "answer 3");
    assert_eq!(headers(&requests, "x-relent-attempt"), ["1", "2", "3"].map(|number| Some(number.to_owned())));
}

#[tokio::test]
async fn a_first_success_has_no_report_unless_all_have() {
    let (server, _) = answering(&[200]).await;
    let (stock, _) = pipeline(policy());
    let response = client().get(server.url()).send_through(&stock).await.expect("an answer");
    assert_eq!(ended(&response), None);
    let stock = stock.with_wire(Wire::new().reporting_all());
    let response = client().get(server.url()).send_through(&stock).await.expect("an answer");
    assert_eq!(ended(&response), Some((1, StopReason::Succeeded)));
}

#[tokio::test]
async fn a_command_is_repeated_only_under_a_key() {
    // RT-13, ID-19
    let (server, requests) = answering(&[503]).await;
    let (stock, _) = pipeline(policy());
    let order = || client().post(server.url()).body("an order");
    let response = order().send_through(&stock).await.expect("an answer");
    assert_eq!((response.status().as_u16(), ended(&response)), (503, Some((1, StopReason::Ambiguous))));
    let response = order().send_on_terms(&stock, CallTerms::new().keyed()).await.expect("an answer");
    assert_eq!(ended(&response), Some((4, StopReason::AttemptsExhausted)));
    let keys = headers(&requests, "idempotency-key");
    assert_eq!((keys.len(), &keys[0]), (5, &None));
    assert!(keys[1].is_some() && keys[2..].iter().all(|key| *key == keys[1]), "{keys:?}");
    assert!(requests.lock().unwrap().iter().all(|request| request.ends_with("an order")));
}

#[tokio::test]
async fn a_stream_is_sent_once() {
    // RT-01
    let (server, requests) = answering(&[503]).await;
    let (stock, _) = pipeline(Policy { repeat: Idempotency::Safe, ..policy() });
    let stream = || Body::wrap(Chunks(vec!["hello ", "world"]));
    let response = client().post(server.url()).body(stream()).send_through(&stock).await.expect("an answer");
    assert_eq!((response.status().as_u16(), ended(&response)), (503, Some((1, StopReason::NotReplayable))));
    let sent = requests.lock().unwrap().clone();
    assert!(sent.len() == 1 && sent[0].contains("hello ") && sent[0].contains("world"), "{sent:?}");
}

/// A body that cannot be cloned.
struct Chunks(Vec<&'static str>);

impl http_body::Body for Chunks {
    type Data = bytes::Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<bytes::Bytes>, io::Error>>> {
        let chunk = if self.0.is_empty() { None } else { Some(self.0.remove(0)) };
        Poll::Ready(chunk.map(|chunk| Ok(http_body::Frame::data(chunk.into()))))
    }
}

#[tokio::test]
async fn failures_have_their_classes() {
    let (stock, _) = pipeline(policy());
    let stop = |error: Error| (error.stop(), error.report().attempts);

    let nobody = deserted().await;
    let error =
        client().post(format!("http://{nobody}/")).send_through(&stock).await.expect_err("nobody is there");
    assert_eq!(stop(error), (StopReason::AttemptsExhausted, 4), "it was not sent");

    let closes = Server::closing_after("").await;
    let error = client().post(closes.url()).send_through(&stock).await.expect_err("no answer");
    assert_eq!(stop(error), (StopReason::Ambiguous, 1), "it may have been processed");
    let error = client().get(closes.url()).send_through(&stock).await.expect_err("no answer");
    assert!(error.inner().is_some_and(reqwest::Error::is_request) && error.source().is_some());
    assert_eq!(stop(error), (StopReason::AttemptsExhausted, 4));

    let garbage = Server::closing_after("SSH-2.0-OpenSSH_9.9\r\n").await;
    let error = client().get(garbage.url()).send_through(&stock).await.expect_err("no answer");
    assert_eq!(stop(error), (StopReason::Permanent, 1));

    let error = client().get("http://nobody.invalid/").send_through(&stock).await.expect_err("no such host");
    assert_eq!(stop(error), (StopReason::Permanent, 1), "an unknown host is no");
}

#[tokio::test]
async fn what_cannot_be_a_request_is_not_sent() {
    // RT-15
    let (stock, told) = pipeline(policy());
    for url in ["gopher://x/", "not a url", "http://"] {
        let error = client().get(url).send_through(&stock).await.expect_err(url);
        assert_eq!((error.stop(), error.report().attempts), (StopReason::Permanent, 1), "{url}");
        assert!(error.inner().is_some_and(reqwest::Error::is_builder), "{url}: {error:?}");
    }
    let bad_header = client().get("http://x/").header("bad\nname", "value").send_through(&stock).await;
    assert_eq!(bad_header.expect_err("no header").stop(), StopReason::Permanent);
    assert!(!told.events.lock().unwrap().contains(&"waiting"));
}

#[tokio::test]
async fn reqwests_own_time_out_is_a_time_out() {
    let silent = Server::start(|_, mut peer| async move { peer.until_closed().await }).await;
    let (stock, _) = pipeline(policy());
    let request = client().post(silent.url()).timeout(Duration::from_millis(30));
    let error = request.send_through(&stock).await.expect_err("nobody answers");
    assert!(error.inner().is_some_and(reqwest::Error::is_timeout));
    assert_eq!((error.stop(), error.report().attempts), (StopReason::Ambiguous, 1));
}

#[tokio::test]
async fn a_client_whose_own_retries_cannot_be_known_is_told_of_once() {
    let (server, _) = answering(&[200]).await;
    let clock = ManualClock::new();
    let told = Arc::new(Told { clock: clock.clone(), events: Mutex::default() });
    let pipeline = Pipeline::on(clock, policy()).expect("a possible policy").observed_by(told.clone());
    let stock = HttpPipeline::new(pipeline).expect("a patient policy");
    for _ in 0..3 {
        client().get(server.url()).send_through(&stock.clone()).await.expect("an answer");
    }
    let count = || told.events.lock().unwrap().iter().filter(|name| **name == "may_retry_beneath").count();
    assert_eq!(count(), 1);
    client().get(server.url()).send_through(&stock.trusting_clients()).await.expect("an answer");
    assert_eq!(count(), 1);
}

#[tokio::test]
async fn a_builder_of_ones_own_can_be_told_to_leave_it() {
    // A policy of reqwest's that repeats any 503 would make twelve of four.
    let (server, requests) = answering(&[503]).await;
    let eager = || {
        let retries = reqwest::retry::for_host("127.0.0.1").no_budget().max_retries_per_request(2);
        Client::builder().no_proxy().retry(retries.classify_fn(|exchange| match exchange.status() {
            Some(status) if status.as_u16() == 503 => exchange.retryable(),
            _ => exchange.success(),
        }))
    };
    let (stock, _) = pipeline(policy());
    let nested = eager().build().expect("a client").get(server.url()).send_through(&stock).await;
    assert_eq!(ended(&nested.expect("an answer")), Some((4, StopReason::AttemptsExhausted)));
    assert_eq!(requests.lock().unwrap().len(), 12, "RT-21: two layers multiply");
    requests.lock().unwrap().clear();
    let alone = eager().without_own_retries().build().expect("a client");
    alone.get(server.url()).send_through(&stock).await.expect("an answer");
    assert_eq!(requests.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn nothing_is_sent_again_once_the_caller_has_the_response() {
    // RT-09
    let cut = Server::closing_after(
        "HTTP/1.1 200 OK\r\ncontent-length: 990434\r\netag: \"e\"\r\n\r\nthe first bytes",
    )
    .await;
    let (stock, _) = pipeline(policy());
    let mut response = client().get(cut.url()).send_through(&stock).await.expect("a head");
    assert_eq!(response.chunk().await.expect("some of it").as_deref(), Some(&b"the first bytes"[..]));
    assert!(response.chunk().await.is_err(), "the reader is told that it was cut");
    assert_eq!(cut.accepted(), 1);
}

/// A server that carries out each request and then points elsewhere.
async fn pointing_to(status: u16, location: String) -> Server {
    Server::start(move |_, mut peer| {
        let answer = format!("HTTP/1.1 {status} \r\nlocation: {location}\r\ncontent-length: 4\r\n\r\npaid");
        async move {
            peer.request().await;
            peer.send(answer).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_command_whose_redirect_cannot_be_followed_is_carried_out_once() {
    for status in [303, 307, 308] {
        let receipt = format!("http://{}/receipt", deserted().await);
        let bank = pointing_to(status, receipt.clone()).await;

        let (payments, _) = pipeline(policy());
        let paid = client().post(bank.url()).body("10").send_through(&payments).await.expect("an answer");
        assert_eq!((paid.status().as_u16(), bank.accepted()), (status, 1), "the caller gets the redirect");
        assert_eq!(paid.headers()["location"], *receipt);
        assert_eq!(ended(&paid), Some((1, StopReason::Permanent)));

        // A client of the user's own, which follows it to where nobody is.
        let clock = ManualClock::new();
        let payments = HttpPipeline::new(Pipeline::on(clock, policy()).expect("a possible policy"));
        let payments = payments.expect("a patient policy").with_wall_clock(ManualClock::new());
        let follows = Client::builder().no_proxy().build().expect("a client");
        let error = follows.post(bank.url()).body("10").send_through(&payments).await.expect_err("nobody");
        assert!(
            error.inner().is_some_and(reqwest::Error::is_connect),
            "as if nothing had been sent: {error:?}"
        );
        assert_eq!(
            (error.stop(), error.report().attempts, bank.accepted()),
            (StopReason::Ambiguous, 1, 2),
            "{status}: carried out once more for the second call, and not twice"
        );
    }
}

#[tokio::test]
async fn a_redirect_to_where_it_was_is_no_proof_either() {
    // The first connection is answered; whoever follows finds nobody at the same URL.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let location = url.clone();
    let served = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut peer, _) = listener.accept().await.expect("a client");
        drop(listener);
        let mut request = [0; 4096];
        assert!(peer.read(&mut request).await.expect("a request") > 0);
        let answer = format!(
            "HTTP/1.1 307 \r\nlocation: {location}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        peer.write_all(answer.as_bytes()).await.expect("it is read");
    });
    let clock = ManualClock::new();
    let payments = HttpPipeline::new(Pipeline::on(clock, policy()).expect("a possible policy"));
    let payments = payments.expect("a patient policy");
    let follows = Client::builder().no_proxy().build().expect("a client");
    let error = follows.post(url).body("10").send_through(&payments).await.expect_err("nobody is there");
    served.await.expect("it answered once");
    assert!(error.inner().is_some_and(reqwest::Error::is_connect), "{error:?}");
    assert_eq!((error.stop(), error.report().attempts), (StopReason::Ambiguous, 1));
}

#[tokio::test]
async fn of_a_client_that_may_follow_redirects_no_error_proves_that_nothing_was_sent() {
    let nobody = deserted().await;
    let clock = ManualClock::new();
    let told = Arc::new(Told { clock: clock.clone(), events: Mutex::default() });
    let pipeline = Pipeline::on(clock, policy()).expect("a possible policy").observed_by(told);
    let stock = HttpPipeline::new(pipeline).expect("a patient policy");
    let order = || client().post(format!("http://{nobody}/"));
    let stop = |error: Error| (error.stop(), error.report().attempts);
    let error = order().send_through(&stock).await.expect_err("nobody is there");
    assert_eq!(stop(error), (StopReason::Ambiguous, 1));
    let keyed = order().send_on_terms(&stock, CallTerms::new().keyed()).await;
    assert_eq!(stop(keyed.expect_err("nobody is there")), (StopReason::AttemptsExhausted, 4));
    let trusting = stock.trusting_clients().with_wall_clock(ManualClock::new());
    let error = order().send_through(&trusting).await.expect_err("nobody is there");
    assert_eq!(stop(error), (StopReason::AttemptsExhausted, 4), "another wall clock changes nothing");
}

#[test]
fn a_request_may_be_sent_from_another_thread() {
    fn sent<T: Send + 'static>(_: T) {}
    let (stock, _) = pipeline(policy());
    sent(client().get("http://x/").send_through(&stock));
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<HttpPipeline>();
}
