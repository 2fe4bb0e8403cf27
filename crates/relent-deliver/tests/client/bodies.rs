//! Bodies of answers: kept up to a limit, read up to a limit, and what a broken one means.

use http::Method;
use relent::{ErrorClass, Observed};
use relent_deliver::{ClientSettings, Transport};
use relent_ledger::Truncated;

use crate::support::{Receiver, SHORT, assert_failed, client, client_with, outbound, post, settings};

#[tokio::test]
async fn a_short_body_is_kept_whole() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    ] {
        let receiver = Receiver::answering(response).await;
        let answered = post(&client(), &receiver.url()).await;
        assert_eq!(answered.observed, Observed::Status(200));
        assert_eq!((answered.response.as_ref(), answered.truncated), (&b"hello"[..], Truncated::No));
        assert!(answered.detail.is_empty(), "{}", answered.detail);
    }
    let until_closed = Receiver::closing_after("HTTP/1.0 404 Not Found\r\n\r\nnope").await;
    let answered = post(&client(), &until_closed.url()).await;
    assert_eq!(answered.observed, Observed::Status(404));
    assert_eq!((answered.response.as_ref(), answered.truncated), (&b"nope"[..], Truncated::No));
}

#[tokio::test]
async fn answers_without_a_body_end_with_their_head() {
    let receiver = Receiver::answering("HTTP/1.1 304 Not Modified\r\ncontent-length: 500\r\n\r\n").await;
    assert_eq!(post(&client(), &receiver.url()).await.observed, Observed::Status(304));
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n").await;
    let request = outbound(Method::HEAD, &receiver.url(), "");
    let answered = client().send(request, crate::support::LONG).await;
    assert_eq!((answered.observed, answered.truncated), (Observed::Status(200), Truncated::No));
}

#[tokio::test]
async fn a_long_body_is_read_and_its_start_is_kept() {
    let settings = ClientSettings { max_response: 10, read_limit: 1000, ..settings() };
    let client = client_with(settings);
    for (length, truncated) in
        [(9, Truncated::No), (10, Truncated::No), (11, Truncated::Yes), (1000, Truncated::Yes)]
    {
        let receiver = Receiver::answering(response(length)).await;
        for _ in 0..3 {
            let answered = post(&client, &receiver.url()).await;
            assert_eq!(answered.observed, Observed::Status(200), "{length}");
            assert_eq!(
                (answered.response.len(), answered.truncated),
                (length.min(10), truncated),
                "{length}"
            );
        }
        assert_eq!(receiver.accepted(), 1, "{length}: what is read to its end leaves its connection");
    }
}

#[tokio::test]
async fn a_body_too_long_to_read_is_dropped_with_its_connection_and_the_status_decides() {
    let ten_megabytes = response(10_000_000);
    let receiver = Receiver::start(move |_, mut peer| {
        let response = ten_megabytes.clone();
        async move {
            peer.request().await;
            peer.send(response).await;
            peer.until_closed().await;
        }
    })
    .await;
    let answered = post(&client(), &receiver.url()).await;
    assert_eq!(answered.observed, Observed::Status(200));
    assert_eq!((answered.response.len(), answered.truncated), (16 * 1024, Truncated::Yes));
    assert!(answered.response.iter().all(|byte| *byte == b'x'));
    assert!(answered.detail.is_empty());
    crate::support::until(|| receiver.open() == 0).await;
}

#[tokio::test]
async fn an_endless_body_ends_at_the_limit() {
    let receiver = Receiver::start(|_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 500 Internal Server Error\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while peer.tcp.writable().await.is_ok()
            && peer.tcp.try_write(b"1\r\nx\r\n").is_ok_and(|sent| sent == 6)
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let settings = ClientSettings { max_response: 100, read_limit: 2000, ..settings() };
    let answered = post(&client_with(settings), &receiver.url()).await;
    assert_eq!(answered.observed, Observed::Status(500));
    assert_eq!((answered.response.len(), answered.truncated), (100, Truncated::Yes));
}

#[tokio::test]
async fn a_success_that_breaks_off_is_a_reset() {
    for cut in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
        "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        let receiver = Receiver::closing_after(cut).await;
        let answered = post(&client(), &receiver.url()).await;
        assert_failed(&answered, ErrorClass::Reset, &["after the head of a 20"]);
        assert_eq!((answered.response.as_ref(), answered.truncated), (&b"hello"[..], Truncated::Yes));
    }
}

#[tokio::test]
async fn a_success_whose_body_is_garbage_is_protocol() {
    let receiver =
        Receiver::answering("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n").await;
    let answered = post(&client(), &receiver.url()).await;
    assert_failed(&answered, ErrorClass::Protocol, &["after the head of a 200"]);
}

#[tokio::test]
async fn a_success_that_does_not_end_in_time_is_body_timeout() {
    let receiver = Receiver::stalling_after("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello").await;
    let answered = client().send(outbound(Method::POST, &receiver.url(), "x"), SHORT).await;
    assert_failed(&answered, ErrorClass::BodyTimeout, &["within 1s500ms", "after the head of a 200"]);
    assert_eq!((answered.response.as_ref(), answered.truncated), (&b"hello"[..], Truncated::Yes));
}

#[tokio::test]
async fn bytes_beyond_the_length_do_not_answer_the_next_request() {
    let receiver = Receiver::start(|number, mut peer| async move {
        peer.request().await;
        let forged = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";
        peer.send(format!("HTTP/1.1 500 Oops\r\ncontent-length: 1\r\n\r\n{number}{forged}")).await;
        peer.until_closed().await;
    })
    .await;
    let client = client();
    for _ in 0..5 {
        let answered = post(&client, &receiver.url()).await;
        let honest = Observed::Status(500);
        let dropped = [ErrorClass::NotSent, ErrorClass::Protocol, ErrorClass::Reset].map(Observed::Error);
        assert!(answered.observed == honest || dropped.contains(&answered.observed), "{answered:?}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_kept_as_it_came() {
    let receiver =
        Receiver::answering("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 8\r\n\r\nnot gzip")
            .await;
    let answered = post(&client(), &receiver.url()).await;
    assert_eq!((answered.observed, answered.response.as_ref()), (Observed::Status(200), &b"not gzip"[..]));
}

fn response(length: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{}", "x".repeat(length)).into_bytes()
}
