//! Connections: used again, closed when abandoned, and made to nobody but the one who was named.

use http::Method;
use relent::Observed;
use relent_deliver::{ClientSettings, Transport};

use crate::support::{
    LONG, Receiver, client, client_with, in_a_child, is_child, outbound, post, settings, until,
};

#[tokio::test]
async fn a_discarded_response_leaves_no_connection_behind() {
    // RT-05
    let receiver = Receiver::start(|_, mut peer| async move {
        let busy = format!("HTTP/1.1 503 Busy\r\ncontent-length: 1024\r\n\r\n{}", "x".repeat(1024));
        let mut requests = 0;
        while peer.request().await.is_some() {
            requests += 1;
            let done = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            peer.send(if requests % 4 == 0 { done } else { &busy }).await;
        }
    })
    .await;
    let client = client();
    for call in 0..50 {
        for expected in [503, 503, 503, 200] {
            assert_eq!(post(&client, &receiver.url()).await.observed, Observed::Status(expected), "{call}");
        }
    }
    assert_eq!((receiver.accepted(), receiver.open()), (1, 1), "one connection served all 200 attempts");
    drop(client);
    until(|| receiver.open() == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_exchanges_leave_no_more_connections_than_are_kept() {
    // RT-05
    let receiver =
        Receiver::answering(format!("HTTP/1.1 503 Busy\r\ncontent-length: 1024\r\n\r\n{}", "x".repeat(1024)))
            .await;
    let client = client_with(ClientSettings { max_idle_per_host: 2, ..settings() });
    let calls = (0..16).map(|_| {
        let (client, url) = (client.clone(), receiver.url());
        tokio::spawn(async move {
            for _ in 0..20 {
                assert_eq!(post(&client, &url).await.observed, Observed::Status(503));
            }
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("every answer is a 503");
    }
    until(|| receiver.open() <= 2).await;
}

#[tokio::test]
async fn a_dropped_exchange_closes_its_connection() {
    for response in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello"] {
        let receiver = Receiver::stalling_after(response).await;
        let client = client();
        let mut sending = Box::pin(client.send(outbound(Method::POST, &receiver.url(), "x"), LONG));
        tokio::select! {
            answered = &mut sending => panic!("{answered:?}"),
            () = until(|| receiver.open() == 1) => (),
        }
        drop(sending);
        until(|| receiver.open() == 0).await;
        assert_eq!(receiver.accepted(), 1);
    }
}

#[tokio::test]
async fn a_redirect_to_the_metadata_service_is_an_observation_and_nothing_else() {
    // WH-07. Were it followed, the guard would answer "blocked"; were the address allowed, a time-out.
    let receiver = Receiver::answering(
        "HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/x\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    assert_eq!(post(&client(), &receiver.url()).await.observed, Observed::Status(302));
    assert_eq!(receiver.accepted(), 1);
}

#[tokio::test]
async fn a_redirect_to_a_reachable_place_makes_no_second_connection() {
    // WH-07
    let elsewhere = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let location = elsewhere.url();
    for code in [301, 302, 303, 307, 308] {
        let response = format!("HTTP/1.1 {code} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let receiver = Receiver::answering(response).await;
        assert_eq!(post(&client(), &receiver.url()).await.observed, Observed::Status(code));
    }
    assert_eq!(elsewhere.accepted(), 0);
}

#[tokio::test]
async fn a_connection_that_the_receiver_closed_is_not_used_again() {
    let receiver =
        Receiver::closing_after("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    let client = client();
    for sent in 1..=5 {
        assert_eq!(post(&client, &receiver.url()).await.observed, Observed::Status(200));
        assert_eq!(receiver.accepted(), sent);
    }
}

#[tokio::test]
async fn without_idle_connections_each_request_has_its_own() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let client = client_with(ClientSettings { max_idle_per_host: 0, ..settings() });
    for sent in 1..=3 {
        post(&client, &receiver.url()).await;
        assert_eq!(receiver.accepted(), sent);
    }
    until(|| receiver.open() == 0).await;
}

#[tokio::test]
async fn the_environments_proxies_are_ignored() {
    if is_child() {
        let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(post(&client(), &receiver.url()).await.observed, Observed::Status(200));
        assert_eq!(receiver.accepted(), 1);
        return;
    }
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    proxy.set_nonblocking(true).expect("a socket");
    let url = format!("http://{}", proxy.local_addr().expect("an address"));
    let names = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
    let environment = names.map(|name| (name, url.as_str()));
    in_a_child("connections::the_environments_proxies_are_ignored", "unset NO_PROXY no_proxy", &environment);
    let nobody = proxy.accept().expect_err("nobody connects to the proxy");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}
