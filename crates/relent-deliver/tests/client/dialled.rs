//! The guard in its place: on the address that is dialled, however it was written or resolved.

use relent::{ErrorClass, Observed, Sent};
use relent_deliver::{ClientSettings, Guard};

use crate::support::{
    Receiver, Scripted, allowing, assert_failed, client_asking, client_with, found, post, settings,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn loopback_is_blocked_however_it_is_written() {
    let receiver = Receiver::answering(OK).await;
    let client = client_with(guarded_by(Guard::default()));
    let port = receiver.address.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
    ] {
        let answered = post(&client, &format!("http://{host}:{port}/")).await;
        assert_eq!(answered.observed, Observed::Error(ErrorClass::Blocked), "{host}: {}", answered.detail);
        assert!(answered.detail.contains("--allow-target"), "{}", answered.detail);
        assert_eq!(answered.observed.sent(), Sent::No);
    }
    // Some resolvers know these names and some do not; none may lead to the receiver.
    for host in ["localhost.", "127.0.0.1.", "ip6-localhost"] {
        let answered = post(&client, &format!("http://{host}:{port}/")).await;
        let safe = [ErrorClass::Blocked, ErrorClass::Dns].map(Observed::Error);
        assert!(safe.contains(&answered.observed), "{host}: {answered:?}");
    }
    assert_eq!(receiver.accepted(), 0);
}

#[tokio::test]
async fn the_metadata_service_is_blocked_without_a_dial() {
    let client = client_with(guarded_by(allowing("127.0.0.0/8")));
    for host in ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "100.100.100.200"] {
        let answered = post(&client, &format!("http://{host}/latest/meta-data")).await;
        assert_failed(&answered, ErrorClass::Blocked, &["--allow-target", "not public"]);
    }
}

#[tokio::test]
async fn what_is_blocked_is_named_with_the_flag_that_would_allow_it() {
    let client =
        client_asking(&Scripted::new([found(&["10.0.0.7", "fe80::1"])]), guarded_by(Guard::default()));
    let answered = post(&client, "http://inside.test/").await;
    assert_failed(&answered, ErrorClass::Blocked, &["10.0.0.7", "inside.test", "--allow-target 10.0.0.7/32"]);
    let answered = post(&client, "https://[fd00::7]/").await;
    assert_failed(&answered, ErrorClass::Blocked, &["--allow-target fd00::7/128"]);
}

#[tokio::test]
async fn of_an_ipv4_address_inside_an_ipv6_one_the_flag_names_the_inner_which_allows_it() {
    let client = client_with(guarded_by(Guard::default()));
    let allowed = allowing("127.0.0.1/32");
    for inside in ["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::"]
    {
        let answered = post(&client, &format!("http://[{inside}]:9/")).await;
        assert_failed(&answered, ErrorClass::Blocked, &["(to allow it: --allow-target 127.0.0.1/32)"]);
        assert!(allowed.allows(inside.parse().unwrap()), "{inside}");
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_something_else_the_second_time_is_judged_again() {
    // Rebinding. The allowed 127.0.0.2 stands for a public address; 127.0.0.1 is not allowed.
    let receiver = Receiver::start_at([0, 0, 0, 0].into(), |_, mut peer| async move {
        peer.request().await;
        peer.send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
    })
    .await;
    let resolver = Scripted::new([found(&["127.0.0.2"]), found(&["127.0.0.1"])]);
    let client = client_asking(&resolver, guarded_by(allowing("127.0.0.2/32")));
    let url = format!("http://rebinding.test:{}/", receiver.address.port());
    assert_eq!(post(&client, &url).await.observed, Observed::Status(200));
    assert_failed(&post(&client, &url).await, ErrorClass::Blocked, &["127.0.0.1"]);
    assert_eq!((receiver.accepted(), resolver.asked()), (1, 2));
}

#[tokio::test]
async fn only_the_allowed_addresses_of_an_answer_are_tried() {
    let receiver = Receiver::start_at([0, 0, 0, 0].into(), |_, mut peer| async move {
        let dialled = peer.tcp.local_addr().expect("an address").ip().to_string();
        peer.request().await;
        let length = dialled.len();
        peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{dialled}")).await;
    })
    .await;
    let resolver = Scripted::new([found(&["127.0.0.1", "169.254.169.254", "127.0.0.2"])]);
    let client = client_asking(&resolver, guarded_by(allowing("127.0.0.2/32")));
    let answered = post(&client, &format!("http://mixed.test:{}/", receiver.address.port())).await;
    assert_eq!((answered.observed, answered.response.as_ref()), (Observed::Status(200), &b"127.0.0.2"[..]));
    assert_eq!(receiver.accepted(), 1);
}

#[tokio::test]
async fn an_allowed_range_opens_the_literal_and_its_other_spellings() {
    let receiver = Receiver::answering(OK).await;
    let client = client_with(settings());
    let port = receiver.address.port();
    for host in ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]"] {
        let answered = post(&client, &format!("http://{host}:{port}/")).await;
        assert_eq!(answered.observed, Observed::Status(200), "{host}: {}", answered.detail);
    }
}

fn guarded_by(guard: Guard) -> ClientSettings {
    ClientSettings { guard, ..settings() }
}
