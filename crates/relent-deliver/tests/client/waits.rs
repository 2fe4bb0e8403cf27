//! What the receiver asks for reaches the policy, whatever its status.

use std::time::Duration;

use http::Method;
use relent::{Observed, Timestamp};
use relent_deliver::Transport;
use relent_ledger::Truncated;

use crate::support::{Receiver, SHORT, client, client_at, outbound, post};

#[tokio::test]
async fn retry_after_is_kept_on_every_error_status() {
    // RA-12
    let client = client();
    for code in [301, 400, 404, 408, 425, 429, 500, 502, 503, 504, 599] {
        let receiver = Receiver::answering(format!(
            "HTTP/1.1 {code} No\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\nno"
        ))
        .await;
        let answered = post(&client, &receiver.url()).await;
        assert_eq!(answered.observed, Observed::Status(code));
        assert_eq!(answered.server_wait, Some(Duration::from_secs(7)), "{code}");
        assert_eq!(answered.response.as_ref(), b"no", "{code}");
    }
}

#[tokio::test]
async fn a_status_other_than_success_stands_even_if_its_body_does_not_come() {
    // RA-12
    let head = "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 10\r\n\r\nbu";
    let broken = post(&client(), &Receiver::closing_after(head).await.url()).await;
    let stalling = Receiver::stalling_after(head).await;
    let slow = client().send(outbound(Method::POST, &stalling.url(), "x"), SHORT).await;
    for (answered, why) in [(broken, "end of file"), (slow, "did not end within")] {
        assert_eq!(answered.observed, Observed::Status(503), "{answered:?}");
        assert_eq!(answered.server_wait, Some(Duration::from_secs(7)));
        assert_eq!((answered.response.as_ref(), answered.truncated), (&b"bu"[..], Truncated::Yes));
        assert!(answered.detail.contains("after the head of a 503"), "{} ({why})", answered.detail);
    }
}

#[tokio::test]
async fn a_redirect_with_a_wait_is_returned_untouched() {
    // RA-14
    let receiver = Receiver::answering(
        "HTTP/1.1 303 See Other\r\nlocation: /op/1\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let answered = post(&client(), &receiver.url()).await;
    assert_eq!(
        (answered.observed, answered.server_wait),
        (Observed::Status(303), Some(Duration::from_secs(2)))
    );
    assert_eq!(receiver.accepted(), 1);
}

#[tokio::test]
async fn a_date_is_measured_with_the_clients_clock_or_the_responses() {
    let until = "Wed, 21 Oct 2015 07:28:00 GMT";
    let ten_seconds_before = Timestamp::from_secs(1_445_412_480 - 10);
    let receiver = Receiver::answering(format!(
        "HTTP/1.1 503 Busy\r\nretry-after: {until}\r\ncontent-length: 0\r\n\r\n"
    ))
    .await;
    let answered = post(&client_at(ten_seconds_before), &receiver.url()).await;
    assert_eq!(answered.server_wait, Some(Duration::from_secs(10)));
    let receiver = Receiver::answering(format!(
        "HTTP/1.1 503 Busy\r\ndate: Wed, 21 Oct 2015 07:26:00 GMT\r\nretry-after: {until}\r\ncontent-length: 0\r\n\r\n"
    ))
    .await;
    let answered = post(&client_at(ten_seconds_before), &receiver.url()).await;
    assert_eq!(answered.server_wait, Some(Duration::from_secs(120)), "the two clocks differ");
}
