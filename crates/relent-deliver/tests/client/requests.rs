//! What goes over the wire: the request as it was given, once, and nothing added to it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use relent::Observed;
use relent_deliver::{Outbound, Transport};

use crate::support::{LONG, Receiver, client, outbound};

#[tokio::test]
async fn a_request_arrives_as_it_was_given_with_host_and_length() {
    let (receiver, log) = logging("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut request = outbound(Method::PUT, &format!("{}?a=b%20c#fragment", receiver.url()), "hello world");
    request.headers = headers(&[("idempotency-key", "k1"), ("x-two", "1"), ("x-two", "2")]);
    client().send(request, LONG).await;
    let address = receiver.address;
    assert_eq!(
        lines(&log.lock().expect("the log")[0]),
        [
            "PUT /hook?a=b%20c HTTP/1.1",
            "idempotency-key: k1",
            "x-two: 1",
            "x-two: 2",
            &format!("host: {address}"),
            "content-length: 11",
            "",
            "hello world",
        ]
    );
}

#[tokio::test]
async fn a_body_is_sent_whole_and_once() {
    // RT-03
    let (receiver, log) = logging("HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy").await;
    let client = client();
    for _ in 0..100 {
        let answered = client.send(outbound(Method::POST, &receiver.url(), "hello world"), LONG).await;
        assert_eq!(answered.observed, Observed::Status(503));
    }
    let log = log.lock().expect("the log");
    let whole = log.iter().filter(|request| request.ends_with("content-length: 11\r\n\r\nhello world"));
    assert_eq!((whole.count(), log.len()), (100, 100));
}

#[tokio::test]
async fn a_large_body_is_sent_whole() {
    let (receiver, log) = logging("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let mut request = outbound(Method::POST, &receiver.url(), "");
    request.body = Bytes::from("0123456789abcdef".repeat(1 << 16));
    let body = request.body.clone();
    assert_eq!(client().send(request, LONG).await.observed, Observed::Status(200));
    let log = log.lock().expect("the log");
    assert!(log[0].as_bytes().ends_with(&body) && log[0].contains("content-length: 1048576\r\n"));
}

#[tokio::test]
async fn an_empty_body_has_its_length_where_one_is_expected() {
    let (receiver, log) = logging("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let client = client();
    for (method, said) in
        [(Method::POST, true), (Method::PUT, true), (Method::GET, false), (Method::DELETE, false)]
    {
        client.send(outbound(method.clone(), &receiver.url(), ""), LONG).await;
        let request = log.lock().expect("the log").pop().expect("a request");
        assert_eq!(request.contains("content-length: 0\r\n"), said, "{method}: {request}");
    }
}

#[tokio::test]
async fn the_framing_is_not_the_senders_to_choose() {
    let (receiver, log) = logging("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let client = client();
    for forged in [("content-length", "3"), ("transfer-encoding", "chunked"), ("content-length", "99")] {
        let request = Outbound {
            headers: headers(&[forged]),
            ..outbound(Method::POST, &receiver.url(), "hello world")
        };
        client.send(request, LONG).await;
        let request = log.lock().expect("the log").pop().expect("a request");
        assert!(request.ends_with("content-length: 11\r\n\r\nhello world"), "{forged:?}: {request}");
        assert!(!request.contains("transfer-encoding"), "{request}");
    }
}

/// A receiver that keeps every request.
async fn logging(response: &'static str) -> (Receiver, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&log);
    let receiver = Receiver::start(move |_, mut peer| {
        let kept = Arc::clone(&kept);
        async move {
            while let Some(request) = peer.request().await {
                kept.lock().expect("the log").push(request);
                peer.send(response).await;
            }
        }
    })
    .await;
    (receiver, log)
}

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

fn lines(request: &str) -> Vec<&str> {
    request.split("\r\n").collect()
}
