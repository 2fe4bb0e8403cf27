//! The fixtures are tested too: a receiver that misremembers or a disk that forgets nothing would let every other
//! test pass.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use relent_tests::{
    client::Client,
    receiver::{Act, Answer, Answered, Receiver},
    wall,
};

#[test]
fn the_receiver_answers_by_its_script_and_writes_down_what_it_did() {
    let receiver = Receiver::start(|arrival| match arrival.nth {
        1 => Act::status(503),
        2 => Act::Hangup,
        _ => Act::Answer(Answer {
            status: 200,
            headers: vec![("X-Note", "here".to_string())],
            body: b"done".to_vec(),
            after: Duration::ZERO,
        }),
    });
    let mut client = Client::new(receiver.address(), "none");
    assert_eq!(client.send("POST", "/a", Some(b"one")).unwrap().status, 503);
    client.send("POST", "/a", Some(b"two")).expect_err("the script hangs up");
    let reply = client.send("POST", "/a", Some(b"three")).unwrap();
    assert_eq!((reply.status, reply.text().as_str(), reply.header("x-note")), (200, "done", Some("here")));
    assert_eq!(
        client.send("POST", "/b", Some(b"")).unwrap().status,
        503,
        "every path has a script of its own"
    );
    let log: Vec<_> = receiver.arrivals("/a").into_iter().map(|a| (a.nth, a.body, a.answer)).collect();
    assert_eq!(
        log,
        [
            (1, b"one".to_vec(), Answered::Written(503)),
            (2, b"two".to_vec(), Answered::Withheld),
            (3, b"three".to_vec(), Answered::Written(200)),
        ]
    );
    assert_eq!(receiver.connections(), 2, "one was kept alive, and one came after the script hung up");
}

#[test]
fn the_receiver_outlives_a_sender_that_is_gone_in_the_middle_of_a_request() {
    let receiver = Receiver::start(|_| Act::status(200));
    let mut broken = TcpStream::connect(receiver.address()).unwrap();
    broken.write_all(b"POST /a HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf of").unwrap();
    drop(broken);
    let mut client = Client::new(receiver.address(), "none");
    assert_eq!(client.send("POST", "/a", Some(b"whole")).unwrap().status, 200);
    assert_eq!(receiver.count(), 1, "half a request is no delivery");
}

#[test]
fn a_silent_receiver_keeps_the_connection_until_it_ends_itself() {
    let receiver = Receiver::start(|_| Act::Silence);
    let mut stream = TcpStream::connect(receiver.address()).unwrap();
    stream.write_all(b"GET /a HTTP/1.1\r\n\r\n").unwrap();
    wall::eventually("the arrival", Duration::from_secs(10), || (receiver.busy() == 1).then_some(()));
    drop(receiver);
    assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0, "it said something");
}
