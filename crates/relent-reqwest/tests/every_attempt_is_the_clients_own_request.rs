//! What goes over the wire at every attempt is, byte for byte, what the bare client would have sent.

#[path = "../../relent-tower/tests/support/policy.rs"]
mod policy;
#[path = "../../relent-tower/tests/support/server.rs"]
mod server;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{HeaderValue, Method, Version};
use relent::{Event, ManualClock, Observe, Pipeline, Scene};
use relent_reqwest::{HttpPipeline, client_builder, report};
use relent_tower::{CallTerms, Wire};
use reqwest::{Body, Client, Request, Response, Url};

use self::{policy::policy, server::Server};

/// Lets every wait be over as soon as it begins.
struct InNoTime(ManualClock);

impl Observe for InNoTime {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        if let Event::Waiting { wait, .. } = event {
            self.0.advance(wait.length);
        }
    }
}

/// A pipeline that adds no header of its own.
fn pipeline() -> HttpPipeline<ManualClock> {
    let clock = ManualClock::new();
    let pipeline = Pipeline::on(clock.clone(), policy()).unwrap().observed_by(Arc::new(InNoTime(clock)));
    HttpPipeline::new(pipeline).unwrap().trusting_clients().with_wire(Wire::new().without_attempt_header())
}

/// Requests with everything about them that reqwest lets be said, to that address.
fn requests(client: &Client, to: &str) -> Vec<Request> {
    let url = |path: &str| Url::parse(to).unwrap().join(path).unwrap();
    let mut with_user = url("private?x=%20y#part");
    with_user.set_username("us%20er").unwrap();
    with_user.set_password(Some("p:w")).unwrap();
    let secret = {
        let mut value = HeaderValue::from_static("1");
        value.set_sensitive(true);
        value
    };
    let mut rearranged = Request::new(Method::GET, url("rearranged"));
    for (name, value) in [("a", "1"), ("b", "2"), ("c", "3"), ("a", "4"), ("d", "5"), ("host", "elsewhere")] {
        rearranged.headers_mut().append(name, HeaderValue::from_static(value));
    }
    rearranged.headers_mut().remove("b");
    let mut without_timeout = Request::new(Method::GET, url("untimed"));
    *without_timeout.timeout_mut() = None;
    let mut with_extensions = http::Request::new(Body::from("own"));
    *with_extensions.method_mut() = Method::PUT;
    *with_extensions.uri_mut() = url("own").as_str().parse().unwrap();
    with_extensions.extensions_mut().insert(7_u8);
    let built = [
        client.get(url("plain")),
        client.get(with_user.clone()),
        client.head(url("head")).header("accept", "text/plain").header("x-secret", secret),
        client.get(url("login")).basic_auth("user", Some("password")).bearer_auth("token"),
        client.get(url("old")).version(Version::HTTP_10),
        client.get(url("timed")).timeout(Duration::from_secs(3600)),
        client.delete(url("body?a=b&a=c")).body("bytes"),
        client.put(url("empty")).body(""),
        client.put(url("nothing")),
        client.request(Method::from_bytes(b"SEARCH").unwrap(), url("%C3%A4?q=ä")),
    ];
    let built = built.map(|request| request.build().unwrap());
    let own = [
        Request::new(Method::GET, with_user),
        rearranged,
        without_timeout,
        with_extensions.try_into().unwrap(),
    ];
    built.into_iter().chain(own).collect()
}

/// Sends each request by the client alone, and then under the policy: a server that refuses them all must see no difference.
async fn every_attempt_is_the_clients_own(under_policy: impl AsyncFn(Client, Request) -> Response) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&received);
    let server = Server::start(move |_, mut peer| {
        let log = Arc::clone(&log);
        async move {
            while let Some(request) = peer.request().await {
                log.lock().unwrap().push(request);
                peer.send("HTTP/1.1 503 \r\ncontent-length: 0\r\n\r\n").await;
            }
        }
    })
    .await;
    let client = client_builder().no_proxy().build().unwrap();
    for request in requests(&client, &server.url()) {
        let said = format!("{request:?}");
        assert_eq!(client.execute(request.try_clone().unwrap()).await.unwrap().status(), 503);
        let response = under_policy(client.clone(), request).await;
        assert_eq!(report(&response).unwrap().attempts, 4);
        let received = std::mem::take(&mut *received.lock().unwrap());
        assert_eq!(received.len(), 5, "{said}");
        assert!(received.iter().all(|sent| *sent == received[0]), "{said} {received:#?}");
    }
}

#[tokio::test]
async fn every_attempt_sends_what_the_bare_client_sends() {
    let pipeline = pipeline();
    every_attempt_is_the_clients_own(async |client, request| {
        pipeline.execute(&client, request, TERMS).await.unwrap()
    })
    .await;
}

#[cfg(feature = "middleware")]
#[tokio::test]
async fn every_attempt_sends_what_the_bare_client_sends_from_a_stack_of_middlewares_too() {
    let pipeline = pipeline();
    every_attempt_is_the_clients_own(async |client, request| {
        let client = reqwest_middleware::ClientBuilder::new(client).with(pipeline.clone()).build();
        let mut said = http::Extensions::new();
        said.insert(TERMS);
        client.execute_with_extensions(request, &mut said).await.unwrap()
    })
    .await;
}

const TERMS: CallTerms = CallTerms::new().safe();
