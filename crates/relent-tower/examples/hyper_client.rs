//! hyper-util's client under a policy.
//!
//! ```console
//! $ cargo run -p relent-tower --example hyper_client
//! ```
//!
//! A stock that is busy at first, asked in three ways: a `GET`, which may be repeated; a `POST`, which may not; and a
//! `POST` under an idempotency key, which may be again. It runs its own server on a free port, and ends.

use std::{
    error::Error,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, extract::State, routing::get};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{Pipeline, Policy, StopReason};
use relent_tower::{BodyTimeoutLayer, BodyTimeouts, CallTerms, PipelineLayer, report};
use tokio::net::TcpListener;
use tower::{Service, ServiceExt, layer::Layer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (stock, visits) = stock().await?;
    let http: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false) // trying again is the policy's, and nobody else's
        .build_http();

    // One for each dependency, for as long as the process lives: its calls share a breaker and a retry budget.
    let policy = PipelineLayer::new(Pipeline::new(Policy::live())?.named("stock"))?.trusting_clients();
    // The policy bounds an attempt up to its response's head; this bounds what comes after.
    let bodies = BodyTimeoutLayer::new(BodyTimeouts::new().with_idle(Duration::from_secs(2)));
    let mut client = policy.layer(bodies.layer(http));

    let ask = Request::get(format!("http://{stock}/apples")).body(Full::default())?;
    let response = client.ready().await?.call(ask).await?;
    let told = report(&response).ok_or("there was more than one attempt")?;
    println!("GET: {} after {} attempts in {:?}", response.status(), told.attempts, told.took);
    assert_eq!((response.status(), told.attempts, told.stop), (StatusCode::OK, 2, StopReason::Succeeded));
    assert_eq!(response.into_body().collect().await?.to_bytes(), "seven");

    // The answer says "not now", and proves nothing about what was done: a person or a key has to decide.
    let order = || Request::post(format!("http://{stock}/orders"));
    let response = client.ready().await?.call(order().body(Full::from("apples"))?).await?;
    let told = report(&response).ok_or("it did not succeed")?;
    println!("POST: {} after {} attempt: {}", response.status(), told.attempts, told.stop.name());
    assert_eq!(
        (response.status(), told.attempts, told.stop),
        (StatusCode::SERVICE_UNAVAILABLE, 1, StopReason::Ambiguous)
    );

    visits.lock().expect("nobody panics").clear();
    let keyed = order().extension(CallTerms::new().keyed()).body(Full::from("apples"))?;
    let response = client.ready().await?.call(keyed).await?;
    let visits = visits.lock().expect("nobody panics");
    println!("POST under a key: {}; the server saw the keys {visits:?}", response.status());
    assert_eq!(response.status(), StatusCode::OK);
    assert!(visits.len() == 2 && visits[0].is_some() && visits[0] == visits[1], "one key for the call");
    Ok(())
}

/// The idempotency key of each visit.
type Visits = Arc<Mutex<Vec<Option<String>>>>;

/// A server that is busy at the first of every two visits.
async fn stock() -> Result<(SocketAddr, Visits), Box<dyn Error>> {
    async fn answer(State(visits): State<Visits>, headers: HeaderMap) -> (StatusCode, &'static str) {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        let mut visits = visits.lock().expect("nobody panics");
        visits.push(key.map(str::to_owned));
        match visits.len() % 2 {
            1 => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            _ => (StatusCode::OK, "seven"),
        }
    }
    let visits = Visits::default();
    let router = Router::new().fallback(get(answer).post(answer)).with_state(Arc::clone(&visits));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok((address, visits))
}
