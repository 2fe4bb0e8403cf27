//! Every act of a script, as a client sees it on a real socket.

mod wire;

use std::{
    io::{ErrorKind, Read as _, Write as _},
    time::Duration,
};

use http::StatusCode;
use relent_probe::{Act, Answer, Dependency, End, Gate, Head, Hint, Limits, Script, ShouldRetry, WaitForm};
use wire::{answer, ask, dial, until};

fn playing(script: &str) -> Dependency {
    Dependency::open(Script::parse(script).unwrap()).unwrap()
}

#[test]
fn answers_come_in_turn_with_their_headers_and_bodies() {
    let dependency = playing("503 asks 2s body 7 with x-shard=9, 429 asks 300ms as retry-after-ms, 200");
    let first = ask(&dependency, "/a").unwrap();
    assert!(first.starts_with("HTTP/1.1 503 Service Unavailable\r\ndate: "), "{first}");
    assert!(first.contains("\r\nretry-after: 2\r\n") && first.contains("\r\nx-shard: 9\r\n"), "{first}");
    assert!(first.ends_with("\r\n\r\nrelent\n"), "{first}");
    assert!(ask(&dependency, "/a").unwrap().contains("\r\nretry-after-ms: 300\r\n"));
    assert!(ask(&dependency, "/a").unwrap().starts_with("HTTP/1.1 200 OK"));
    let ends: Vec<_> = dependency.arrivals().iter().map(|arrival| arrival.end).collect();
    let statuses: Vec<u16> = ends
        .iter()
        .map(|end| match end {
            End::Answered { status, .. } => status.as_u16(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(statuses, [503, 429, 200]);
}

#[test]
fn a_closure_is_a_script_too() {
    let dependency = Dependency::open(|request: &Head<'_>| {
        let hint = Hint::Wait(Duration::from_secs(3), WaitForm::RateLimit);
        let answer = Answer::new(StatusCode::TOO_MANY_REQUESTS).with_hint(hint);
        match request.path {
            "/busy" => Act::from(answer.with_hint(Hint::ShouldRetry(ShouldRetry::No))),
            _ => Act::status(StatusCode::OK),
        }
    })
    .unwrap();
    let busy = ask(&dependency, "/busy").unwrap();
    assert!(busy.contains("\r\nratelimit: \"default\";r=0;t=3\r\n"), "{busy}");
    assert!(busy.contains("\r\nstripe-should-retry: false\r\n"), "{busy}");
    assert!(ask(&dependency, "/").unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn a_reset_is_a_reset_and_a_close_is_an_end() {
    let dependency = playing("reset-unread, reset, close");
    // The unread one is reset while the client is still writing or when it reads: both are a reset.
    assert_ne!(ask(&dependency, "/").unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(ask(&dependency, "/").unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(ask(&dependency, "/").unwrap(), "", "closed in order, without a byte");
    until(&dependency, |arrivals| arrivals.len() == 3 && arrivals.iter().all(|one| one.end != End::Pending));
    let arrivals = dependency.arrivals();
    assert!(arrivals.iter().all(|arrival| matches!(arrival.end, End::Broken { .. })), "{arrivals:?}");
    assert_eq!(arrivals[0].method, None, "nothing of it was read");
    assert!(arrivals[0].read_at.is_none() && arrivals[1].read_at.is_some());
}

#[test]
fn half_a_body_is_promised_whole_and_breaks_off() {
    let dependency = playing("200 half body 1000");
    let got = ask(&dependency, "/").unwrap();
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("content-length: 1000"), "{head}");
    assert_eq!(body.len(), 500);
}

#[test]
fn a_slow_head_dribbles_and_a_slow_answer_waits() {
    let dependency = playing("200 slow 300ms, 200 takes 200ms");
    let clock = dependency.clock();
    let now = || relent::Clock::now(&clock);
    for (least, first_byte_within_the_half) in [(300, true), (200, false)] {
        let began = now();
        let mut stream = dial(&dependency);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        let first = now().since(began);
        stream.read_to_end(&mut Vec::new()).unwrap();
        let took = now().since(began);
        assert!(took >= Duration::from_millis(least), "{took:?}");
        if !first_byte_within_the_half {
            assert!(first >= Duration::from_millis(least), "{first:?}");
        } else {
            assert!(first < took, "the head came in pieces");
        }
    }
}

#[test]
fn whoever_goes_away_while_it_waits_is_noted() {
    let dependency = playing("hang, 200 takes 1h, 200 slow 1h");
    for nth in 1..=3 {
        let mut stream = dial(&dependency);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        until(&dependency, |arrivals| arrivals.len() == nth && arrivals[nth - 1].read_at.is_some());
        assert_eq!(dependency.arrivals()[nth - 1].end, End::Pending);
        drop(stream);
        until(&dependency, |arrivals| matches!(arrivals[nth - 1].end, End::ClientGone { .. }));
    }
}

#[test]
fn bodies_are_counted_and_hashed_however_they_are_framed() {
    let dependency = playing("200");
    let mut stream = dial(&dependency);
    let chunked = "POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(chunked.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"1\r\na\r\n2;note=x\r\nbc\r\n0\r\ntrailer: yes\r\n\r\n").unwrap();
    assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
    stream.write_all(b"PUT /x HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc").unwrap();
    assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
    let arrivals = dependency.arrivals();
    // The SHA-256 of `abc`: FIPS 180-2, appendix B.1.
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    for arrival in &arrivals {
        assert_eq!((arrival.body.length, arrival.body.sha256.as_str()), (3, digest));
        assert_eq!((&arrival.body.kept[..], arrival.body.whole), (&b"abc"[..], relent_probe::Whole::Yes));
    }
    assert_eq!((arrivals[0].connection, arrivals[1].connection), (1, 1));
    assert_eq!((arrivals[0].on_connection, arrivals[1].on_connection), (1, 2));
}

#[test]
fn a_body_that_breaks_off_is_not_whole_and_is_not_answered() {
    let dependency = playing("200");
    let mut stream = dial(&dependency);
    stream.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc").unwrap();
    drop(stream);
    until(&dependency, |arrivals| arrivals.first().is_some_and(|one| one.end != End::Pending));
    let arrival = &dependency.arrivals()[0];
    assert!(matches!(arrival.end, End::ClientGone { .. }), "{arrival:?}");
    assert_eq!((arrival.body.length, arrival.body.whole), (3, relent_probe::Whole::No));
}

#[test]
fn what_is_not_http_is_unreadable_and_does_no_harm() {
    let dependency = playing("200");
    let mut stream = dial(&dependency);
    stream.write_all(b"\x16\x03\x01 this is TLS\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let too_long = format!("GET / HTTP/1.1\r\nx: {}\r\n", "y".repeat(100 << 10));
    let _ = dial(&dependency).write_all(too_long.as_bytes());
    until(&dependency, |arrivals| arrivals.len() == 2);
    let ends: Vec<End> = dependency.arrivals().iter().map(|one| one.end).collect();
    assert!(
        ends.iter().all(|end| matches!(end, End::Unreadable { .. } | End::ClientGone { .. })),
        "{ends:?}"
    );
    assert!(ask(&dependency, "/").unwrap().starts_with("HTTP/1.1 200"));
}

#[test]
fn arrivals_beyond_the_limit_are_forgotten_and_counted() {
    let limits = Limits { arrivals: 2, ..Limits::default() };
    let anywhere = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let dependency = Dependency::listen(anywhere, Script::parse("200").unwrap(), limits).unwrap();
    for path in ["/1", "/2", "/3"] {
        ask(&dependency, path).unwrap();
    }
    let paths: Vec<String> = dependency.arrivals().into_iter().map(|arrival| arrival.path).collect();
    assert_eq!(paths, ["/2", "/3"]);
    assert_eq!((dependency.count(), dependency.forgotten()), (3, 1));
}

#[test]
fn head_requests_get_no_body_and_http_1_0_gets_an_end() {
    let dependency = playing("200 body 64");
    let mut stream = dial(&dependency);
    stream.write_all(b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.contains("content-length: 64") && text.ends_with("\r\n\r\n"), "{text}");
    let mut stream = dial(&dependency);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.ends_with("relent\nr"), "{text}");
}

#[test]
fn what_is_held_is_answered_when_the_gate_opens_or_its_client_goes() {
    let gate = Gate::new();
    let held = gate.clone();
    let dependency = Dependency::open(move |_: &Head<'_>| match held.is_open() {
        false => Act::Held(held.clone()),
        true => Act::status(StatusCode::CREATED),
    })
    .unwrap();
    let mut stays = dial(&dependency);
    stays.write_all(b"GET /stays HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut goes = dial(&dependency);
    goes.write_all(b"GET /goes HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    until(&dependency, |arrivals| arrivals.len() == 2 && arrivals.iter().all(|one| one.read_at.is_some()));
    drop(goes);
    until(&dependency, |arrivals| arrivals.iter().any(|one| matches!(one.end, End::ClientGone { .. })));
    assert!(dependency.arrivals().iter().any(|one| one.path == "/stays" && one.end == End::Pending));
    gate.open();
    assert!(answer(&mut stays).starts_with("HTTP/1.1 201"));
}
