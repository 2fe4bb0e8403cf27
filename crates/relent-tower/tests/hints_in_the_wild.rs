//! What servers send beside `Retry-After`, or in its place.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use relent::Timestamp;
use relent_tower::http::hints::{Advice, advice, server_wait, server_wait_by};

const LIMITED: StatusCode = StatusCode::TOO_MANY_REQUESTS;
const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
/// 2026-10-16 12:00:00 GMT.
const NOW: Timestamp = Timestamp::from_secs(1_792_152_000);

fn headers(fields: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name: HeaderName = name.parse().expect("a name");
        headers.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    headers
}

fn asked(status: StatusCode, fields: &[(&str, &str)]) -> Option<Duration> {
    server_wait(status, &headers(fields), NOW)
}

const fn ms(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn milliseconds_come_before_the_whole_seconds_beside_them() {
    for name in ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"] {
        assert_eq!(asked(BUSY, &[(name, "20"), ("retry-after", "1")]), ms(20), "{name}");
        assert_eq!(asked(BUSY, &[(name, "1500.25")]), Some(Duration::from_micros(1_500_250)), "{name}");
        assert_eq!(asked(BUSY, &[(name, "0")]), ms(0), "{name}");
        for junk in ["", "-1", "+1", "soon", "1s", "1e3", "1.", ".5"] {
            assert_eq!(asked(BUSY, &[(name, junk)]), None, "{name}: {junk:?}");
            assert_eq!(
                asked(BUSY, &[(name, junk), ("retry-after", "7")]),
                ms(7000),
                "it does not hide the next"
            );
        }
    }
    assert_eq!(asked(BUSY, &[("retry-after-ms", "5"), ("x-ms-retry-after-ms", "9")]), ms(5));
    assert_eq!(
        asked(BUSY, &[("retry-after-ms", "5"), ("retry-after-ms", "9")]),
        ms(9),
        "of lines the longest"
    );
    assert_eq!(asked(StatusCode::OK, &[("retry-after-ms", "5")]), None);
}

#[test]
fn a_spent_quota_says_when_it_comes_back() {
    let rate = |value| asked(LIMITED, &[("ratelimit", value)]);
    assert_eq!(rate("\"default\";r=0;t=30"), ms(30_000));
    assert_eq!(rate("\"burst\";r=0;t=2, \"day\";r=0;t=3600"), ms(3_600_000), "both must have come back");
    assert_eq!(rate("\"burst\";r=0;t=2, \"day\";r=5;t=3600"), ms(2_000), "the day's is not spent");
    assert_eq!(rate("\"default\";r=5;t=30"), None, "it was refused for another reason");
    assert_eq!(rate("\"default\";r=0"), None);
    assert_eq!(rate("\"default\";r=0;t=-30"), None);
    assert_eq!(rate("\"default\";r=0;t=30,"), None, "what is malformed is ignored whole");
    assert_eq!(rate("limit=100, remaining=0, reset=30"), ms(30_000));
    assert_eq!(rate("limit=100, remaining=7, reset=30"), None);
    let lines = [("ratelimit", "\"burst\";r=0;t=2"), ("ratelimit", "\"day\";r=0;t=60")];
    assert_eq!(asked(LIMITED, &lines), ms(60_000), "lines are one list");
}

#[test]
fn retry_after_wins_over_a_quota() {
    let both = [("ratelimit", "\"default\";r=0;t=30"), ("retry-after", "7"), ("x-ratelimit-reset", "90")];
    assert_eq!(asked(LIMITED, &both), ms(7_000));
}

#[test]
fn a_reset_is_seconds_from_now_or_an_instant() {
    for name in ["ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset"] {
        for (value, millis) in [
            ("30", 30_000),
            ("0", 0),
            ("0.5", 500),
            ("1792152045", 45_000),
            ("1792152045.25", 45_250),
            ("1792152045250", 45_250),
            ("1792151999", 0),
        ] {
            assert_eq!(asked(LIMITED, &[(name, value)]), ms(millis), "{name}: {value}");
        }
        for junk in ["", "soon", "-30", "6m0s", "2026-10-16T12:00:45Z"] {
            assert_eq!(asked(LIMITED, &[(name, junk)]), None, "{name}: {junk}");
        }
    }
    // The server's own clock set it, and is an hour behind ours.
    let skewed = [("date", "Fri, 16 Oct 2026 11:00:00 GMT"), ("x-ratelimit-reset", "1792148430")];
    assert_eq!(asked(LIMITED, &skewed), ms(30_000));
}

#[test]
fn a_quota_with_something_left_is_not_why() {
    let left = |left| asked(LIMITED, &[("x-ratelimit-remaining", left), ("x-ratelimit-reset", "30")]);
    assert_eq!(left("4999"), None);
    assert_eq!(left("0"), ms(30_000));
    assert_eq!(left("unlimited"), ms(30_000), "what cannot be read says nothing");
    assert_eq!(asked(BUSY, &[("x-ratelimit-reset", "30")]), ms(30_000));
    for status in [StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::INTERNAL_SERVER_ERROR] {
        assert_eq!(asked(status, &[("x-ratelimit-reset", "30")]), None, "every answer carries it: {status}");
    }
}

#[test]
fn a_server_may_advise_for_or_against_another_try() {
    let says = |status, fields: &[(&str, &str)]| advice(status, &headers(fields));
    for name in ["stripe-should-retry", "x-should-retry"] {
        assert_eq!(says(StatusCode::CONFLICT, &[(name, "true")]), Some(Advice::Retry));
        assert_eq!(says(BUSY, &[(name, " false ")]), Some(Advice::Stop));
        for junk in ["", "1", "True", "yes", "true, false"] {
            assert_eq!(says(BUSY, &[(name, junk)]), None, "{junk:?}");
        }
        assert_eq!(says(StatusCode::OK, &[(name, "true")]), None, "what is done is done");
    }
    let both = [("stripe-should-retry", "true"), ("x-should-retry", "false")];
    assert_eq!(says(BUSY, &both), Some(Advice::Stop));
    assert_eq!(says(BUSY, &[]), None);
}

#[test]
fn the_clock_is_read_only_for_a_date_that_needs_it() {
    let unread = || panic!("nobody needs the time");
    for fields in [
        &[("retry-after", "7")][..],
        &[("retry-after-ms", "7")],
        &[("ratelimit", "\"a\";r=0;t=3")],
        &[("x-ratelimit-reset", "30")],
        &[("date", "Fri, 16 Oct 2026 11:00:00 GMT"), ("retry-after", "Fri, 16 Oct 2026 11:00:07 GMT")],
        &[],
    ] {
        let _ = server_wait_by(LIMITED, &headers(fields), unread);
    }
}
