//! Who sends requests: the bare clients, the same clients under a policy of relent's, and others that try again.
//!
//! All send the same request, with three headers of its own, and read the whole answer.

use std::{future::Future, hint::black_box, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Empty};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{
    Backoff, BreakerPolicy, ConcurrencyPolicy, Gates, Jitter, Pipeline, Policy, Window, breaker::SlowCalls,
};
use relent_reqwest::{HttpPipeline, SendThrough, client_builder};
use relent_tower::{PipelineLayer, PipelineService};
use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::time::timeout;
use tower::{Service, ServiceExt, layer::Layer};

/// One who sends a request and reads its answer.
pub(crate) trait Contestant: Clone + Send + 'static {
    fn fetch(&mut self) -> impl Future<Output = StatusCode> + Send;
}

type Hyper = Client<HttpConnector, Empty<Bytes>>;

/// hyper-util's client, as it is built by default.
#[derive(Clone)]
pub(crate) struct BareHyper(Hyper, Uri);

/// hyper-util's client as one would bound a request by hand and be ready to send it again: a copy of it is kept, and
/// tokio's time-out stands around it.
#[derive(Clone)]
pub(crate) struct HyperByHand(Hyper, Uri);

/// hyper-util's client under a policy.
#[derive(Clone)]
pub(crate) struct RelentHyper(PipelineService<Hyper>, Uri);

/// reqwest's client, as it is built by default or with its own retries.
#[derive(Clone)]
pub(crate) struct BareReqwest(reqwest::Client, reqwest::Url);

/// reqwest's client in the same way by hand.
#[derive(Clone)]
pub(crate) struct ReqwestByHand(reqwest::Client, reqwest::Url);

/// reqwest's client under a policy.
#[derive(Clone)]
pub(crate) struct RelentReqwest(reqwest::Client, HttpPipeline, reqwest::Url);

/// reqwest's client under reqwest-retry.
#[derive(Clone)]
pub(crate) struct ReqwestRetry(ClientWithMiddleware, reqwest::Url);

impl BareHyper {
    pub(crate) fn new(url: &str) -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http(), url.parse().expect("a URL"))
    }
}

impl HyperByHand {
    pub(crate) fn new(url: &str) -> Self {
        let BareHyper(client, url) = BareHyper::new(url);
        Self(client, url)
    }
}

impl ReqwestByHand {
    pub(crate) fn new(url: &str) -> Self {
        Self(client_builder().build().expect("a client"), url.parse().expect("a URL"))
    }
}

impl RelentHyper {
    pub(crate) fn new(url: &str) -> Self {
        let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
        let pipeline = Pipeline::new(standard()).expect("a possible policy").named("the server");
        let layer = PipelineLayer::new(pipeline).expect("a patient policy").trusting_clients();
        Self(layer.layer(client), url.parse().expect("a URL"))
    }
}

impl BareReqwest {
    pub(crate) fn new(url: &str) -> Self {
        Self(reqwest::Client::new(), url.parse().expect("a URL"))
    }

    /// With reqwest's own retries, on the same failures as relent, and no budget for them.
    pub(crate) fn retrying(url: &str) -> Self {
        let retry = reqwest::retry::for_host("127.0.0.1").no_budget().max_retries_per_request(2).classify_fn(
            |answered| match answered.status() {
                Some(status) if status.is_server_error() => answered.retryable(),
                _ => answered.success(),
            },
        );
        let client = reqwest::Client::builder().retry(retry).build().expect("a client");
        Self(client, url.parse().expect("a URL"))
    }
}

impl RelentReqwest {
    pub(crate) fn new(url: &str) -> Self {
        Self::under(standard(), url)
    }

    /// Three attempts and no pause: a policy has none of length zero, and one of a nanosecond is over when it begins.
    pub(crate) fn without_delay(url: &str) -> Self {
        let mut policy = Policy { budget: None, breaker: None, ..standard() };
        policy.retry.max_attempts = Some(3);
        policy.retry.backoff = Backoff::Constant(Duration::from_nanos(1));
        policy.retry.jitter = Jitter::None;
        Self::under(policy, url)
    }

    fn under(policy: Policy, url: &str) -> Self {
        let pipeline = Pipeline::new(policy).expect("a possible policy").named("the server");
        let pipeline = HttpPipeline::new(pipeline).expect("a patient policy").trusting_clients();
        let client = client_builder().build().expect("a client");
        Self(client, pipeline, url.parse().expect("a URL"))
    }
}

impl ReqwestRetry {
    /// Three attempts and no pause.
    pub(crate) fn new(url: &str) -> Self {
        let at_once = ExponentialBackoff::builder().retry_bounds(Duration::ZERO, Duration::ZERO);
        let retry = RetryTransientMiddleware::new_with_policy(at_once.build_with_max_retries(2));
        let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(retry).build();
        Self(client, url.parse().expect("a URL"))
    }
}

impl Contestant for BareHyper {
    async fn fetch(&mut self) -> StatusCode {
        read(self.0.request(request(&self.1)).await.expect("an answer")).await
    }
}

impl Contestant for HyperByHand {
    async fn fetch(&mut self) -> StatusCode {
        let request = request(&self.1);
        let kept = request.clone();
        let response = timeout(ATTEMPT, self.0.request(request)).await.expect("it is in time");
        drop(black_box(kept));
        read(response.expect("an answer")).await
    }
}

impl Contestant for ReqwestByHand {
    async fn fetch(&mut self) -> StatusCode {
        let request = headed(self.0.get(self.1.clone())).build().expect("a request");
        let kept = request.try_clone();
        let response = timeout(ATTEMPT, self.0.execute(request)).await.expect("it is in time");
        drop(black_box(kept));
        take(response.expect("an answer")).await
    }
}

impl Contestant for RelentHyper {
    async fn fetch(&mut self) -> StatusCode {
        let ready =
            ServiceExt::<Request<Empty<Bytes>>>::ready(&mut self.0).await.expect("a client is always ready");
        read(ready.call(request(&self.1)).await.expect("an answer")).await
    }
}

impl Contestant for BareReqwest {
    async fn fetch(&mut self) -> StatusCode {
        take(headed(self.0.get(self.1.clone())).send().await.expect("an answer")).await
    }
}

impl Contestant for RelentReqwest {
    async fn fetch(&mut self) -> StatusCode {
        let request = headed(self.0.get(self.2.clone()));
        take(request.send_through(&self.1).await.expect("an answer")).await
    }
}

impl Contestant for ReqwestRetry {
    async fn fetch(&mut self) -> StatusCode {
        let mut request = self.0.get(self.1.clone());
        for (name, value) in HEADERS {
            request = request.header(name, HeaderValue::from_static(value));
        }
        take(request.send().await.expect("an answer")).await
    }
}

fn request(uri: &Uri) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = uri.clone();
    for (name, value) in HEADERS {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    request
}

fn headed(mut request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    for (name, value) in HEADERS {
        request = request.header(name, HeaderValue::from_static(value));
    }
    request
}

async fn read(response: http::Response<hyper::body::Incoming>) -> StatusCode {
    let status = response.status();
    response.into_body().collect().await.expect("a whole answer");
    status
}

async fn take(response: reqwest::Response) -> StatusCode {
    let status = response.status();
    response.bytes().await.expect("a whole answer");
    status
}

/// The headers of a request, for what one copy of them costs.
pub(crate) fn headers() -> http::HeaderMap {
    request(&Uri::default()).into_parts().0.headers
}

/// The defaults, with an admission limit and a breaker with everything: a loan budget, retries with full jitter, a
/// total time-out and one for each attempt.
fn standard() -> Policy {
    Policy {
        admission: Gates { concurrency: Some(ConcurrencyPolicy { limit: 100, queue: 100 }), rate: None },
        breaker: Some(BreakerPolicy {
            slow_calls: Some(SlowCalls { longer_than: Duration::from_secs(1), rate_milli: 900 }),
            window: Window::Time(Duration::from_secs(10)),
            ..BreakerPolicy::default()
        }),
        ..Policy::live()
    }
}

const ATTEMPT: Duration = Duration::from_secs(2);
const HEADERS: [(header::HeaderName, &str); 3] = [
    (header::ACCEPT, "application/json"),
    (header::AUTHORIZATION, "Bearer 2YotnFZFEjr1zCsicMWpAA"),
    (header::USER_AGENT, "stock/1.0"),
];
