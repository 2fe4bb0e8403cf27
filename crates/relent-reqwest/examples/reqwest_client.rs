//! reqwest under a policy: a line at the start, and one word more at each request.
//!
//! ```console
//! $ cargo run -p relent-reqwest --example reqwest_client
//! ```
//!
//! A bank that is busy at first, and asks for a pause. It runs its own server on a free port, and ends.

use std::{
    error::Error,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, extract::State, http::HeaderMap, response::IntoResponse, routing::get};
use relent::{Pipeline, Policy, StopReason};
use relent_reqwest::{HttpPipeline, SendThrough, client_builder, report};
use relent_tower::CallTerms;
use reqwest::StatusCode;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (bank, visits) = bank().await?;
    // reqwest's own builder, with its hidden retries and its redirects off.
    let client = client_builder().connect_timeout(Duration::from_secs(1)).build()?;
    // One for each dependency: its calls share a breaker and a retry budget.
    let payments = HttpPipeline::new(Pipeline::new(Policy::live())?.named("bank"))?.trusting_clients();

    let response = client.get(format!("http://{bank}/rates")).send_through(&payments).await?;
    let told = report(&response).ok_or("there was more than one attempt")?;
    println!("GET: {} after {} attempts in {:?}", response.status(), told.attempts, told.took);
    assert_eq!((response.status(), told.attempts, told.stop), (StatusCode::OK, 2, StopReason::Succeeded));
    assert!(told.took >= Duration::from_millis(50), "the bank asked for 50 ms");

    visits.lock().expect("nobody panics").clear();
    let payment = client.post(format!("http://{bank}/payments")).body("10 to Ann");
    let response = payment.send_on_terms(&payments, CallTerms::new().keyed()).await?;
    println!("POST under a key: {}", response.status());
    assert_eq!(response.status(), StatusCode::OK);
    let visits = visits.lock().expect("nobody panics");
    println!("the bank saw {visits:#?}");
    assert!(
        visits.len() == 2 && visits[0].key.is_some() && visits[0].key == visits[1].key,
        "one key for the call"
    );
    assert_eq!((visits[0].attempt.as_deref(), visits[1].attempt.as_deref()), (Some("1"), Some("2")));
    Ok(())
}

/// What the bank is told of a visit.
#[derive(Debug)]
struct Visit {
    key: Option<String>,
    attempt: Option<String>,
}

type Visits = Arc<Mutex<Vec<Visit>>>;

/// A server that asks for a pause at the first of every two visits.
async fn bank() -> Result<(SocketAddr, Visits), Box<dyn Error>> {
    async fn answer(State(visits): State<Visits>, headers: HeaderMap) -> axum::response::Response {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut visits = visits.lock().expect("nobody panics");
        visits.push(Visit { key: header("idempotency-key"), attempt: header("x-relent-attempt") });
        match visits.len() % 2 {
            1 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after-ms", "50")], "not now").into_response(),
            _ => "done".into_response(),
        }
    }
    let visits = Visits::default();
    let router = Router::new().fallback(get(answer).post(answer)).with_state(Arc::clone(&visits));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok((address, visits))
}
