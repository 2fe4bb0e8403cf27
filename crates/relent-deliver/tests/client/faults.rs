//! Every class of failure.

use std::{io, time::Duration};

use http::Method;
use relent::{ErrorClass, Observed, Sent};
use relent_deliver::{ClientSettings, Transport};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{
    Receiver, SHORT, Script, Scripted, assert_failed, client, client_asking, client_with, found, outbound,
    post, settings,
};

#[tokio::test]
async fn a_refused_port_is_connect() {
    // Bound and never listening: nobody else can take the port meanwhile.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = socket.local_addr().expect("an address");
    let answered = post(&client(), &format!("http://{address}/")).await;
    assert_failed(&answered, ErrorClass::Connect, &["127.0.0.1", "refused"]);
    assert_eq!(answered.observed.sent(), Sent::No);
}

#[tokio::test]
async fn a_receiver_whose_backlog_is_full_is_connect_timeout() {
    let (address, _waiting) = full_backlog().await;
    let settings = ClientSettings { connect_timeout: SHORT, ..settings() };
    let answered = post(&client_with(settings), &format!("http://{address}/")).await;
    assert_failed(&answered, ErrorClass::ConnectTimeout, &["127.0.0.1", "within 1s500ms"]);
}

#[tokio::test]
async fn a_limit_shorter_than_the_connect_timeout_counts_first() {
    let (address, _waiting) = full_backlog().await;
    let request = outbound(Method::POST, &format!("http://{address}/"), "");
    let answered = client().send(request, SHORT).await;
    assert_failed(&answered, ErrorClass::ConnectTimeout, &["no connection within 1s500ms"]);
}

#[tokio::test]
async fn a_name_that_does_not_exist_is_dns() {
    let nobody = || io::Error::other("failed to lookup address information: Name or service not known");
    let answered =
        post(&client_asking(&Scripted::new([Script::Failed(nobody)]), settings()), "http://gone.test/").await;
    assert_failed(&answered, ErrorClass::Dns, &["gone.test", "Name or service not known"]);
    let answered = post(&client_asking(&Scripted::new([found(&[])]), settings()), "http://empty.test/").await;
    assert_failed(&answered, ErrorClass::Dns, &["empty.test", "no address"]);
}

#[tokio::test]
async fn a_resolver_that_stays_silent_is_dns() {
    let resolver = Scripted::new([Script::Silent]);
    let settings = ClientSettings { connect_timeout: SHORT, ..settings() };
    let answered = post(&client_asking(&resolver, settings), "http://slow.test/").await;
    assert_failed(&answered, ErrorClass::Dns, &["slow.test", "within 1s500ms"]);
}

#[tokio::test]
async fn a_resolver_that_cannot_be_asked_is_our_own_fault() {
    let no_more_files = || io::Error::from_raw_os_error(24);
    let resolver = Scripted::new([Script::Failed(no_more_files)]);
    let answered = post(&client_asking(&resolver, settings()), "http://known.test/").await;
    assert_failed(&answered, ErrorClass::OwnFault, &["our own fault", "known.test"]);
}

#[tokio::test]
async fn names_that_fail_and_then_resolve_are_answered() {
    // WH-09
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let again = || io::Error::other("Temporary failure in name resolution");
    let resolver = Scripted::new([Script::Failed(again), Script::Failed(again), found(&["127.0.0.1"])]);
    let client = client_asking(&resolver, settings());
    let url = format!("http://flapping.test:{}/", receiver.address.port());
    for _ in 0..2 {
        assert_failed(&post(&client, &url).await, ErrorClass::Dns, &["Temporary failure"]);
    }
    assert_eq!(post(&client, &url).await.observed, Observed::Status(200));
    assert_eq!(resolver.asked(), 3, "a failure is not remembered");
}

#[tokio::test]
async fn a_dead_address_does_not_hide_a_living_one() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    let resolver = Scripted::new([found(&["127.0.0.77", "127.0.0.1"])]);
    let url = format!("http://two.test:{}/", receiver.address.port());
    let answered = post(&client_asking(&resolver, settings()), &url).await;
    assert_eq!(answered.observed, Observed::Status(200));
}

#[tokio::test]
async fn a_reset_before_the_request_was_read_is_reset() {
    let receiver = Receiver::start(|_, peer| async move {
        let mut first = [0];
        peer.tcp.peek(&mut first).await.expect("the request arrives");
        peer.reset();
    })
    .await;
    let answered = post(&client(), &receiver.url()).await;
    assert_failed(&answered, ErrorClass::Reset, &["reset"]);
    assert_eq!(answered.observed.sent(), Sent::Maybe);
    assert_eq!(receiver.accepted(), 1, "nothing is sent again beneath the policy");
}

#[tokio::test]
async fn a_reset_after_the_request_was_read_is_reset() {
    let receiver = Receiver::start(|_, mut peer| async move {
        peer.request().await;
        peer.reset();
    })
    .await;
    assert_failed(&post(&client(), &receiver.url()).await, ErrorClass::Reset, &["reset"]);
}

#[tokio::test]
async fn a_connection_closed_without_an_answer_is_reset() {
    for cut in ["", "HTTP/1.1 200 OK\r\nconte"] {
        let receiver = Receiver::closing_after(cut).await;
        let answered = post(&client(), &receiver.url()).await;
        assert_failed(&answered, ErrorClass::Reset, &["closed before message completed"]);
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_is_header_timeout() {
    for cut in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let receiver = Receiver::stalling_after(cut).await;
        let answered = client().send(outbound(Method::POST, &receiver.url(), "x"), SHORT).await;
        assert_failed(&answered, ErrorClass::HeaderTimeout, &["within 1s500ms"]);
        assert_eq!(answered.observed.sent(), Sent::Maybe);
    }
}

#[tokio::test]
async fn a_flood_of_interim_answers_is_header_timeout() {
    let receiver = Receiver::start(|_, mut peer| async move {
        peer.request().await;
        loop {
            peer.send("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(64)).await;
            if peer.tcp.try_write(b"").is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let answered = client().send(outbound(Method::POST, &receiver.url(), "x"), SHORT).await;
    assert_failed(&answered, ErrorClass::HeaderTimeout, &[]);
}

#[tokio::test]
async fn interim_answers_before_the_answer_are_passed_over() {
    let receiver = Receiver::answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    )
    .await;
    assert_eq!(post(&client(), &receiver.url()).await.observed, Observed::Status(204));
}

#[tokio::test]
async fn what_is_not_http_is_protocol() {
    let long = "x".repeat(700_000);
    let many: String = (0..200).map(|number| format!("h{number}: 1\r\n")).collect();
    for garbage in [
        "SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(),
        "\0\u{1}\u{2}\u{3}".repeat(32),
        "HTTP/1.1 abc OK\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nlong: {long}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
    ] {
        let start: String = garbage.chars().take(40).collect();
        let receiver = Receiver::answering(garbage).await;
        let answered = post(&client(), &receiver.url()).await;
        assert_eq!(answered.observed, Observed::Error(ErrorClass::Protocol), "{start:?}: {answered:?}");
    }
}

/// An unused connection that the receiver closes just as the next request is handed to it: hyper gives the
/// request back unwritten. A single-threaded runtime that looks for events after each task makes the two meet.
#[test]
fn a_request_that_met_a_closing_connection_is_not_sent() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(1)
        .build()
        .expect("a runtime");
    let (address, close) = closing_receiver();
    let client = client();
    let url = format!("http://{address}/");
    let answered = runtime.block_on(async {
        assert_eq!(post(&client, &url).await.observed, Observed::Status(200));
        for _ in 0..16 {
            // The connection goes back to where unused ones are kept.
            tokio::task::yield_now().await;
        }
        close();
        // Runs before the connection's own task, and the events are looked for between the two.
        tokio::spawn(async {});
        post(&client, &url).await
    });
    assert_failed(&answered, ErrorClass::NotSent, &[]);
    assert_eq!(answered.observed.sent(), Sent::No);
}

#[tokio::test]
async fn another_scheme_is_never_sent_to() {
    // RT-15
    let resolver = Scripted::new([found(&["127.0.0.1"])]);
    let client = client_asking(&resolver, settings());
    for url in ["gopher://x/", "ftp://x/", "ws://x/", "file://x/etc/passwd"] {
        let answered = post(&client, url).await;
        assert_failed(&answered, ErrorClass::Blocked, &["only http and https"]);
    }
    assert_failed(&post(&client, "/relative").await, ErrorClass::Blocked, &["no scheme"]);
    assert_eq!(resolver.asked(), 0);
}

#[test]
fn no_more_file_descriptors_is_our_own_fault() {
    use crate::support::{in_a_child, is_child};
    if !is_child() {
        return in_a_child("faults::no_more_file_descriptors_is_our_own_fault", "ulimit -n 64", &[]);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = client();
    let mut files = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    let answered = runtime.block_on(post(&client, "http://127.0.0.1:9/"));
    drop(files);
    assert_failed(&answered, ErrorClass::OwnFault, &["our own fault", "127.0.0.1", "Too many open files"]);
}

#[tokio::test]
async fn the_words_hold_no_part_of_the_url_but_its_host() {
    let receiver = Receiver::closing_after("").await;
    let address = receiver.address;
    for (url, class) in [
        (format!("http://user:hunter2@{address}/p/s3cret?token=t0ken"), ErrorClass::Reset),
        ("http://user:hunter2@192.168.0.1/s3cret?token=t0ken".to_owned(), ErrorClass::Blocked),
        ("gopher://user:hunter2@x/s3cret?token=t0ken".to_owned(), ErrorClass::Blocked),
    ] {
        let answered = post(&client(), &url).await;
        assert_failed(&answered, class, &[]);
        for secret in ["hunter2", "s3cret", "t0ken"] {
            assert!(!answered.detail.contains(secret), "{}", answered.detail);
        }
    }
}

#[tokio::test]
async fn the_words_are_one_line_and_not_endless() {
    let hostile = || io::Error::other(format!("first\r\nsecond\u{1b}[31m{}", "é".repeat(10_000)));
    let answered =
        post(&client_asking(&Scripted::new([Script::Failed(hostile)]), settings()), "http://x.test/").await;
    assert_failed(&answered, ErrorClass::Dns, &["x.test", "first  second"]);
    assert!(!answered.detail.contains(char::is_control), "{:?}", answered.detail);
    assert!(answered.detail.chars().count() <= 400, "{}", answered.detail.chars().count());
}

/// A listener that completes no further handshake, and the connections that fill it.
async fn full_backlog() -> (std::net::SocketAddr, impl Sized) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let listener = socket.listen(1).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let mut waiting = Vec::new();
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await
    {
        waiting.push(connected.expect("the backlog takes it"));
        assert!(waiting.len() < 64, "a backlog of one takes two or three");
    }
    (address, (listener, waiting))
}

/// Answers one request, and closes its side of the connection when told. The closure returns once it has.
fn closing_receiver() -> (std::net::SocketAddr, impl FnOnce()) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (close, told) = std::sync::mpsc::channel::<()>();
    let (said, closed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut tcp, _) = listener.accept().expect("a connection");
        let mut request = Vec::new();
        while !request.ends_with(b"hello world") {
            let mut bytes = [0; 4096];
            let read = tcp.read(&mut bytes).expect("a request");
            request.extend_from_slice(&bytes[..read]);
        }
        tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").expect("it is read");
        told.recv().expect("the test goes on");
        tcp.shutdown(std::net::Shutdown::Write).expect("it is open");
        said.send(()).expect("the test waits");
        // Open for reading still, so that what may come is not answered with a reset.
        tcp.read_to_end(&mut request).expect("the client closes too");
    });
    let close = move || {
        close.send(()).expect("the receiver waits");
        closed.recv().expect("the receiver closes");
    };
    (address, close)
}
