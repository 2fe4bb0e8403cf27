//! reqwest with reqwest-retry's middleware and its default strategy; the shortest wait cut to a fifth of a second.

use std::{env, process::ExitCode, time::Duration};

use reqwest_middleware::ClientBuilder;
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let ask = |name: &str| env::var(format!("RELENT_PROBE_{name}")).unwrap_or_default();
    let (method, body, key) = (ask("METHOD"), ask("BODY"), ask("KEY"));
    let bounds = (Duration::from_millis(200), Duration::from_secs(10));
    let policy = ExponentialBackoff::builder().retry_bounds(bounds.0, bounds.1).build_with_max_retries(4);
    let inner = reqwest::Client::builder().timeout(Duration::from_millis(700)).build().expect("a client");
    let client = ClientBuilder::new(inner).with(RetryTransientMiddleware::new_with_policy(policy)).build();
    let mut failed = false;
    for _ in 0..ask("CALLS").parse().unwrap_or(1) {
        let method = method.parse().expect("a method");
        let mut request = client.request(method, ask("URL"));
        if !key.is_empty() {
            request = request.header("idempotency-key", &key);
        }
        if !body.is_empty() {
            request = request.body(body.clone());
        }
        let well = match request.send().await {
            Ok(response) if response.status().is_success() => response.bytes().await.is_ok(),
            Ok(_) => false,
            Err(error) => {
                eprintln!("{error:?}");
                false
            }
        };
        failed |= !well;
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
