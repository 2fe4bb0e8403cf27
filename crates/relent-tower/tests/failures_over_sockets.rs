//! Every way in which an exchange of hyper-util's client can fail, produced over real sockets: what was sent is
//! told apart from what may have been, and both from what the server refused to process.

#[path = "support/http2.rs"]
mod http2;
#[path = "support/server.rs"]
mod server;

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    pin::Pin,
    sync::{Arc, mpsc},
    task::{Context, Poll},
    thread,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper_util::{
    client::legacy::{Client, Error, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{ErrorClass, Observed, Sent};
use relent_tower::http::failure::{Phase, failure, failure_in};

use self::{
    http2::{ENHANCE_YOUR_CALM, go_away, greet, reset},
    server::{Server, deserted},
};

type Http = Client<HttpConnector, Full<Bytes>>;

/// A client whose hidden retry is off.
fn client() -> Http {
    Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http()
}

fn client_of_http2() -> Http {
    Client::builder(TokioExecutor::new()).retry_canceled_requests(false).http2_only(true).build_http()
}

async fn post(client: &Http, url: &str) -> Result<Response<Incoming>, Error> {
    let request = Request::builder().method(Method::POST).uri(url).body(Full::from("hello world"));
    client.request(request.expect("a request")).await
}

async fn class(client: &Http, url: &str) -> ErrorClass {
    let error = post(client, url).await.expect_err(url);
    failure(&error)
}

fn sent(class: ErrorClass) -> Sent {
    Observed::Error(class).sent()
}

#[tokio::test]
async fn nothing_was_sent_where_there_is_no_connection() {
    let nobody = deserted().await;
    let refused = class(&client(), &format!("http://{nobody}/")).await;
    assert_eq!((refused, sent(refused)), (ErrorClass::Connect, Sent::No));

    let unknown = class(&client(), "http://nobody.invalid/").await;
    assert_eq!((unknown, sent(unknown)), (ErrorClass::Dns, Sent::No));
}

#[tokio::test]
async fn what_can_never_be_dialled_is_not_tried_again() {
    // RT-15
    let https = class(&client(), "https://localhost/").await;
    assert_eq!(https, ErrorClass::Other);
    let error = client().request(Request::new(Full::default())).await.expect_err("no host");
    assert_eq!(failure(&error), ErrorClass::Other);
}

#[tokio::test]
async fn a_handshake_that_fails_is_told_from_a_dial_that_fails() {
    // RT-15: an invalid certificate costs one connection.
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS")
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .build();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let get = |url: String| {
        let request = Request::builder().uri(url).body(Full::default()).expect("a request");
        client.request(request)
    };
    let plain = Server::start(|_, mut peer| async move {
        peer.send("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        peer.until_closed().await;
    })
    .await;
    let silent = Server::start(|_, _| async {}).await;
    for server in [&plain, &silent] {
        let error = get(format!("https://localhost:{}/", server.address.port())).await.expect_err("no TLS");
        let class = failure(&error);
        let expected = [ErrorClass::Tls, ErrorClass::Connect]; // a reset in the handshake is a reset
        assert!(expected.contains(&class) && sent(class) == Sent::No, "{class:?} of {error:?}");
    }
    let error = get(format!("https://localhost:{}/", plain.address.port())).await.expect_err("no TLS");
    assert_eq!(failure(&error), ErrorClass::Tls, "{error:?}");
    let nobody = deserted().await;
    let error = get(format!("https://{nobody}/")).await.expect_err("nobody is there");
    assert_eq!(failure(&error), ErrorClass::Connect);
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_open_what_was_done() {
    let closes = Server::closing_after("").await;
    let breaks_off = Server::closing_after("HTTP/1.1 200 OK\r\ncontent-").await;
    let resets = Server::start(|_, mut peer| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    for server in [&closes, &breaks_off, &resets] {
        let class = class(&client(), &server.url()).await;
        assert_eq!((class, sent(class)), (ErrorClass::Reset, Sent::Maybe));
    }
}

#[tokio::test]
async fn what_is_not_the_protocol_is_not_repeated() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.9\r\n",
        "HTTP/1.1 two OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    ] {
        let server = Server::closing_after(garbage).await;
        assert_eq!(class(&client(), &server.url()).await, ErrorClass::Protocol, "{garbage:?}");
    }
}

#[tokio::test]
async fn a_body_of_our_own_that_fails_is_no_failure_of_the_servers() {
    let server = Server::start(|_, mut peer| async move { peer.until_closed().await }).await;
    let client: Client<_, Broken> = Client::builder(TokioExecutor::new()).build_http();
    let request = Request::builder().method(Method::PUT).uri(server.url()).body(Broken { begun: false });
    let request = request.expect("a request");
    let error = client.request(request).await.expect_err("the body breaks off");
    assert_eq!(failure(&error), ErrorClass::Other, "{error:?}");
}

/// An unused connection that the server closes just as the next request is handed to it: hyper gives the
/// request back unwritten. A single-threaded runtime that looks for events after each task makes the two meet.
#[test]
fn a_request_that_met_a_closing_connection_was_not_sent() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(1)
        .build()
        .expect("a runtime");
    let (url, close) = closing_server();
    let client = client();
    let error = runtime.block_on(async {
        let answer = post(&client, &url).await.expect("an answer");
        drop(answer);
        for _ in 0..16 {
            // The connection goes back to where unused ones are kept.
            tokio::task::yield_now().await;
        }
        close();
        // Runs before the connection's own task, and the events are looked for between the two.
        tokio::spawn(async {});
        post(&client, &url).await.expect_err("the connection is gone")
    });
    let class = failure(&error);
    assert_eq!((class, sent(class)), (ErrorClass::NotSent, Sent::No), "{error:?}");
}

/// A server on a thread of its own: answers one request, then closes its connection when told to.
fn closing_server() -> (String, impl FnOnce()) {
    use std::io::{Read, Write};
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let (tell, told) = mpsc::channel::<()>();
    let (closed, is_closed) = mpsc::channel();
    thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a connection");
        let mut request = Vec::new();
        let mut bytes = [0; 1024];
        while !request.ends_with(b"hello world") {
            let read = tcp.read(&mut bytes).expect("a request");
            request.extend_from_slice(&bytes[..read]);
        }
        tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("an answer");
        told.recv().expect("the test tells");
        drop(tcp);
        closed.send(()).expect("the test listens");
    });
    (url, move || {
        tell.send(()).expect("the server listens");
        is_closed.recv().expect("the server closes");
    })
}

/// What a server of HTTP/2 says once it has seen the request's headers.
async fn over_http2(frame: impl Into<Bytes>) -> Error {
    let frame = frame.into();
    let server = Server::start(move |_, mut peer| {
        let frame = frame.clone();
        async move {
            greet(&mut peer).await;
            peer.send(frame).await;
            peer.until_closed().await;
        }
    })
    .await;
    post(&client_of_http2(), &server.url()).await.expect_err("no answer")
}

#[tokio::test]
async fn a_refused_stream_was_not_processed() {
    const REFUSED_STREAM: u8 = 7;
    let class = failure(&over_http2(reset(REFUSED_STREAM)).await);
    assert_eq!((class, sent(class)), (ErrorClass::Unprocessed, Sent::RefusedBefore));
}

#[tokio::test]
async fn a_goaway_that_leaves_the_stream_out_says_that_it_was_not_processed() {
    // RT-11: 'calm down' included.
    const NO_ERROR: u8 = 0;
    for code in [NO_ERROR, ENHANCE_YOUR_CALM] {
        let error = over_http2(go_away(0, code)).await;
        let class = failure(&error);
        assert_eq!((class, sent(class)), (ErrorClass::Unprocessed, Sent::RefusedBefore), "{error:?}");
    }
}

#[tokio::test]
async fn any_other_end_of_a_stream_leaves_open_what_was_done() {
    const CANCEL: u8 = 8;
    const INTERNAL_ERROR: u8 = 2;
    for code in [CANCEL, INTERNAL_ERROR] {
        let error = over_http2(reset(code)).await;
        let class = failure(&error);
        assert_eq!((class, sent(class)), (ErrorClass::Reset, Sent::Maybe), "{error:?}");
    }
}

#[tokio::test]
async fn a_goaway_that_takes_the_stream_in_says_nothing_of_its_end() {
    let server = Server::start(|_, mut peer| async move {
        greet(&mut peer).await;
        peer.send(go_away(1, 0)).await;
    })
    .await;
    let error = post(&client_of_http2(), &server.url()).await.expect_err("no answer");
    let class = failure(&error);
    assert_eq!((class, sent(class)), (ErrorClass::Reset, Sent::Maybe), "{error:?}");
}

#[tokio::test]
async fn who_knows_the_phase_says_it() {
    let server = Server::closing_after("").await;
    let error = post(&client(), &server.url()).await.expect_err("no answer");
    assert_eq!(failure_in(&error, Phase::Exchanging), ErrorClass::Reset);
}

/// A body that breaks off after its first bytes.
struct Broken {
    begun: bool,
}

impl Body for Broken {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(match std::mem::replace(&mut self.begun, true) {
            false => Ok(Frame::data(Bytes::from_static(b"half of "))),
            true => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
        }))
    }
}
