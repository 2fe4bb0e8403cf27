//! `Retry-After` as servers really send it.

use std::{process::Command, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;
use relent::Timestamp;
use relent_tower::http::hints::server_wait;

#[test]
fn seconds_are_read_alike_whatever_their_width() {
    // RA-18
    for seconds in [0, 1, 7, 255, 256, 300, 65_535, 65_536, 4_294_967_296] {
        assert_eq!(wait(&seconds.to_string()), Some(Duration::from_secs(seconds)), "{seconds}");
    }
    assert_eq!(wait("007"), Some(Duration::from_secs(7)));
    assert_eq!(wait(" 7\t"), Some(Duration::from_secs(7)), "white space around a value is not part of it");
}

#[test]
fn a_huge_number_saturates() {
    // RA-08
    assert_eq!(wait("9999999999"), Some(Duration::from_secs(9_999_999_999)));
    assert_eq!(wait("99999999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
}

#[test]
fn what_is_not_digits_is_ignored() {
    // RA-16
    for junk in ["-1", "+5", "1.5", "", " ", "5s", "1e3", "0x10", "1,000", "120, 240", "soon", "٣"] {
        assert_eq!(wait(junk), None, "{junk:?}");
    }
}

#[test]
fn a_date_that_has_passed_asks_for_nothing() {
    // RA-01
    let now = at("Wed, 21 Oct 2015 07:28:30 GMT");
    let past = headers(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]);
    assert_eq!(server_wait(BUSY, &past, now), Some(Duration::ZERO));
    assert_eq!(server_wait(BUSY, &past, Timestamp::MAX), Some(Duration::ZERO));
}

#[test]
fn a_leap_second_is_read_as_the_one_after_the_last() {
    let now = at("Sat, 31 Dec 2016 23:59:50 GMT");
    for form in
        ["Sat, 31 Dec 2016 23:59:60 GMT", "Saturday, 31-Dec-16 23:59:60 GMT", "Sat Dec 31 23:59:60 2016"]
    {
        let asked = server_wait(BUSY, &headers(&[("retry-after", form)]), now);
        assert_eq!(asked, Some(Duration::from_secs(10)), "{form}");
    }
    assert_eq!(server_wait(BUSY, &headers(&[("retry-after", "Sat, 31 Dec 2016 23:58:60 GMT")]), now), None);
}

#[test]
fn all_three_forms_of_a_date_are_read() {
    let now = at("Sun, 06 Nov 1994 08:49:07 GMT");
    for form in
        ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
    {
        let asked = server_wait(BUSY, &headers(&[("retry-after", form)]), now);
        assert_eq!(asked, Some(Duration::from_secs(30)), "{form}");
    }
}

#[test]
fn a_two_digit_year_is_at_most_fifty_years_ahead() {
    // RA-06
    let asked = |now, text| server_wait(BUSY, &headers(&[("retry-after", text)]), at(now));
    let november_94 = "Sunday, 06-Nov-94 08:49:37 GMT";
    assert_eq!(asked("Sun, 06 Nov 1994 08:49:07 GMT", november_94), Some(Duration::from_secs(30)));
    assert_eq!(asked("Thu, 01 Jan 2026 00:00:00 GMT", november_94), Some(Duration::ZERO));
    let november_40 = "Tuesday, 06-Nov-40 08:49:37 GMT";
    assert_eq!(asked("Tue, 06 Nov 2040 08:49:07 GMT", november_40), Some(Duration::from_secs(30)));
    // A fixed pivot at 70 would put this one into 1972.
    let january_72 = "Friday, 01-Jan-72 00:00:10 GMT";
    assert_eq!(asked("Fri, 01 Jan 2072 00:00:00 GMT", january_72), Some(Duration::from_secs(10)));
    // Across the turn of a century.
    let january_00 = "Friday, 01-Jan-00 00:00:05 GMT";
    assert_eq!(asked("Thu, 31 Dec 2099 23:59:55 GMT", january_00), Some(Duration::from_secs(10)));
}

#[test]
fn what_only_looks_like_a_date_is_ignored() {
    for junk in [
        "Sun, 06 Nov 1994 08:49:37",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 2027 00:00:00 GMT",
        "Sun, 06 Nov 1994 25:00:00 GMT",
        "Sun, 06-Nov-94 08:49:37 GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT",
        "Sunday, 06-Nov-94-1 08:49:37 GMT",
        "Sunday, -- ",
        "1994-11-06T08:49:37Z",
    ] {
        assert_eq!(wait(junk), None, "{junk:?}");
    }
}

#[test]
fn a_date_is_measured_from_the_responses_own_clock() {
    let fields =
        [("date", "Sun, 06 Nov 1994 08:49:07 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
    let ours_is_an_hour_ahead = at("Sun, 06 Nov 1994 09:49:07 GMT");
    assert_eq!(server_wait(BUSY, &headers(&fields), ours_is_an_hour_ahead), Some(Duration::from_secs(30)));
}

#[test]
fn a_date_header_that_cannot_be_read_leaves_our_own_clock() {
    let now = at("Sun, 06 Nov 1994 08:49:07 GMT");
    let until = ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT");
    let junk = headers(&[("date", "yesterday"), until]);
    assert_eq!(server_wait(BUSY, &junk, now), Some(Duration::from_secs(30)));
    let two = [("date", "Sun, 06 Nov 1994 08:40:00 GMT"), ("date", "Sun, 06 Nov 1994 08:49:00 GMT"), until];
    assert_eq!(server_wait(BUSY, &headers(&two), now), Some(Duration::from_secs(30)));
}

#[test]
fn of_several_lines_the_longest_counts() {
    let fields =
        headers(&[("retry-after", "2"), ("retry-after", "-1"), ("retry-after", "9"), ("retry-after", "7")]);
    assert_eq!(server_wait(BUSY, &fields, Timestamp::ZERO), Some(Duration::from_secs(9)));
}

#[test]
fn every_status_but_a_success_is_heard() {
    // RA-12, RA-14
    let fields = headers(&[("retry-after", "7")]);
    for code in 100..=999 {
        let status = StatusCode::from_u16(code).expect("a status has three digits");
        let heard = server_wait(status, &fields, Timestamp::ZERO);
        assert_eq!(heard.is_some(), code >= 300, "{code}");
    }
}

#[test]
fn the_time_zone_of_the_process_plays_no_part() {
    // RA-04
    const ZONE_IS_SET: &str = "RELENT_TEST_ZONE_IS_SET";
    if std::env::var_os(ZONE_IS_SET).is_some() {
        let fields = headers(&[("retry-after", "Thu, 25 Jun 2020 21:30:12 GMT")]);
        let asked = server_wait(BUSY, &fields, at("Thu, 25 Jun 2020 21:28:12 GMT"));
        assert_eq!(asked, Some(Duration::from_secs(120)));
        return;
    }
    for zone in ["America/New_York", "EST5EDT", "UTC", "Asia/Tokyo", "JST-9"] {
        let child = Command::new(std::env::current_exe().expect("a test is a program"))
            .args(["--exact", "the_time_zone_of_the_process_plays_no_part"])
            .env("TZ", zone)
            .env(ZONE_IS_SET, "1")
            .output()
            .expect("the test starts once more");
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && said.contains("1 passed"), "{zone}: {said}");
    }
}

proptest! {
    #[test]
    fn no_bytes_of_a_header_make_it_panic(
        lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..48), 0..4),
        date in prop::collection::vec(any::<u8>(), 0..48),
        now in any::<u64>(),
    ) {
        let mut fields = HeaderMap::new();
        for line in lines {
            append(&mut fields, http::header::RETRY_AFTER, &line);
        }
        append(&mut fields, http::header::DATE, &date);
        let _ = server_wait(BUSY, &fields, Timestamp::from_nanos(now));
    }

    #[test]
    fn nothing_like_a_date_makes_it_panic(
        text in "(Sunday|Sun|Mon|Wednesday),? [0-9]{1,2}[- ](Nov|Feb|é|Xyz)[- ][0-9]{1,4} [0-9:]{0,9}( GMT)?( [0-9]{4})?",
        now in any::<u64>(),
    ) {
        let mut fields = HeaderMap::new();
        append(&mut fields, http::header::RETRY_AFTER, text.as_bytes());
        let _ = server_wait(BUSY, &fields, Timestamp::from_nanos(now));
    }

    #[test]
    fn a_date_ahead_asks_for_exactly_the_time_that_is_left(now in 0..LAST_SECOND, ahead in 0_u64..1_000_000_000) {
        let until = std::time::UNIX_EPOCH + Duration::from_secs(now + ahead);
        let text = httpdate::fmt_http_date(until);
        let asked = server_wait(BUSY, &headers(&[("retry-after", &text)]), Timestamp::from_secs(now));
        prop_assert_eq!(asked, Some(Duration::from_secs(ahead)));
    }
}

const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// The last whole second that a `Timestamp` can name.
const LAST_SECOND: u64 = u64::MAX / 1_000_000_000;

fn wait(value: &str) -> Option<Duration> {
    server_wait(BUSY, &headers(&[("retry-after", value)]), Timestamp::ZERO)
}

fn headers(fields: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        append(&mut headers, name.parse().expect("a name"), value.as_bytes());
    }
    headers
}

/// Appends the line if it can be one; bytes that cannot never reach a header map.
fn append(headers: &mut HeaderMap, name: HeaderName, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.append(name, value);
    }
}

fn at(date: &str) -> Timestamp {
    let date = httpdate::parse_http_date(date).expect("a date");
    Timestamp::from_secs(date.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs())
}
