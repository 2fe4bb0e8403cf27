//! A service of axum's between a caller who waits no longer than it says and a dependency in trouble.
//!
//! ```console
//! $ cargo run -p relent-tower --example axum_service
//! ```
//!
//! The caller's client says how much time is left and which attempt this is. The service reads both, refuses what is
//! too late with a 504, and every call that it makes for an answer ends in time, without a parameter in any handler.
//! It runs its own servers on free ports, and ends.

use std::{error::Error, net::SocketAddr, time::Duration};

use axum::{Extension, Router, extract::State, routing::get};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming as Body;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{Clock, Pipeline, Policy, TokioClock};
use relent_tower::{DeadlineLayer, Incoming, PipelineLayer, PipelineService, Wire, http::deadline::TimeLeft};
use tokio::net::TcpListener;
use tower::{ServiceExt, layer::Layer};

type Http = PipelineService<Client<HttpConnector, Full<Bytes>>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let stock =
        serve(Router::new().fallback(get(|| async { (StatusCode::SERVICE_UNAVAILABLE, "busy") }))).await?;
    let shop = serve(shop(stock)?).await?;

    // A caller that gives half a second in all, and tells it on.
    let hurried = Policy { total_timeout: Some(Duration::from_millis(500)), ..Policy::live() };
    let wire = Wire::new().passing_time_left(TimeLeft::REQUEST_TIMEOUT_MS, Duration::from_millis(50));
    let caller = client(hurried, "shop", wire)?;
    let began = TokioClock.now();
    let answered = caller.oneshot(ask(shop, "/apples")?).await;
    let took = TokioClock.now().since(began);
    match answered {
        Ok(answer) => println!("{} after {took:?}: {}", answer.status(), text(answer).await?),
        // The shop's answer had been on its way for too long.
        Err(error) => println!("no answer after {took:?}: {error}"),
    }
    assert!(
        took < Duration::from_secs(5),
        "what the shop called ended with its caller's time, not with its own"
    );

    // A request that comes when its caller has gone is not worked on.
    let http: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let mut late = ask(shop, "/apples")?;
    late.headers_mut().insert("x-request-timeout-ms", "0".parse()?);
    let answer = http.request(late).await?;
    println!("{} at once: nobody waits for the answer", answer.status());
    assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);
    Ok(())
}

/// The service. The layer stands in front of everything that answers requests.
fn shop(stock: SocketAddr) -> Result<Router, Box<dyn Error>> {
    let client = client(patient(), "stock", Wire::new())?;
    Ok(Router::new().route("/{item}", get(look_up)).layer(DeadlineLayer::new()).with_state((client, stock)))
}

/// Asks the stock. Nothing here knows of the caller's deadline, but for what it prints.
async fn look_up(
    State((client, stock)): State<(Http, SocketAddr)>,
    Extension(incoming): Extension<Incoming>,
) -> (StatusCode, String) {
    let attempt = incoming.attempt.unwrap_or(1);
    let Ok(request) = ask(stock, "/apples") else {
        return (StatusCode::INTERNAL_SERVER_ERROR, String::new());
    };
    match client.oneshot(request).await {
        Ok(response) => match relent_tower::report(&response) {
            None => (StatusCode::OK, "seven\n".to_owned()),
            // 500, and not 503: whoever asks the shop has no business asking it again at once.
            Some(told) => {
                let why = format!(
                    "attempt {attempt}: the stock was asked {} times, {}",
                    told.attempts,
                    told.stop.name()
                );
                (StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        },
        Err(error) => (StatusCode::BAD_GATEWAY, format!("attempt {attempt}: {error}")),
    }
}

/// Half a minute of trying, where nobody says otherwise.
fn patient() -> Policy {
    let total_timeout = Some(Duration::from_secs(30));
    let mut policy = Policy { budget: None, breaker: None, total_timeout, ..Policy::live() };
    policy.retry.max_attempts = Some(100);
    policy.retry.max_wait = Duration::from_millis(200);
    policy
}

fn client(policy: Policy, dependency: &str, wire: Wire) -> Result<Http, Box<dyn Error>> {
    let http = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
    let layer = PipelineLayer::new(Pipeline::new(policy)?.named(dependency))?;
    Ok(layer.with_wire(wire).trusting_clients().layer(http))
}

fn ask(server: SocketAddr, path: &str) -> Result<Request<Full<Bytes>>, http::Error> {
    Request::get(format!("http://{server}{path}")).body(Full::default())
}

async fn text(response: Response<Body>) -> Result<String, Box<dyn Error>> {
    Ok(String::from_utf8(response.into_body().collect().await?.to_bytes().to_vec())?)
}

async fn serve(router: Router) -> Result<SocketAddr, Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, router).await });
    Ok(address)
}
