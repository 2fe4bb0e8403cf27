//! `Retry-After` against sixty values, good and bad, as they were seen in the wild or could be.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use relent::Timestamp;
use relent_tower::http::hints::server_wait;

/// Read at 1994-11-06 08:49:07 GMT, without a `Date` in the response. `None`: as if it were not there.
const TABLE: [(&[u8], Option<u64>); 60] = [
    // Seconds.
    (b"0", Some(0)),
    (b"1", Some(1)),
    (b"7", Some(7)),
    (b"007", Some(7)),
    (b"30", Some(30)),
    (b"120", Some(120)),
    (b"255", Some(255)),
    (b"256", Some(256)),
    (b"3600", Some(3600)),
    (b"65535", Some(65_535)),
    (b"65536", Some(65_536)),
    (b"86400", Some(86_400)),
    (b"2147483648", Some(2_147_483_648)),
    (b"4294967296", Some(4_294_967_296)),
    (b"9999999999", Some(9_999_999_999)),
    (b"18446744073709551615", Some(u64::MAX)),
    (b"18446744073709551616", Some(u64::MAX)),
    (b"99999999999999999999999999", Some(u64::MAX)),
    (b"00000000000000000000000000000000000000007", Some(7)),
    // White space around a value is not part of it.
    (b" 7", Some(7)),
    (b"7 ", Some(7)),
    (b"\t7\t", Some(7)),
    // Dates in their three forms, and ones that have passed.
    (b"Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
    (b"Sunday, 06-Nov-94 08:49:37 GMT", Some(30)),
    (b"Sun Nov  6 08:49:37 1994", Some(30)),
    (b"Sun, 06 Nov 1994 08:49:07 GMT", Some(0)),
    (b"Sun, 06 Nov 1994 08:49:06 GMT", Some(0)),
    (b"Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
    (b"Thu, 01-Jan-70 00:00:00 GMT", None),
    (b"Thursday, 01-Jan-70 00:00:00 GMT", Some(0)),
    (b"Mon, 07 Nov 1994 08:49:07 GMT", Some(86_400)),
    (b"Thu, 29 Feb 1996 08:49:07 GMT", Some(41_472_000)),
    // Not digits.
    (b"", None),
    (b" ", None),
    (b"-1", None),
    (b"+5", None),
    (b"1.5", None),
    (b"1,5", None),
    (b"1 5", None),
    (b"5s", None),
    (b"5 seconds", None),
    (b"1e3", None),
    (b"0x10", None),
    (b"120, 240", None),
    (b"120;q=1", None),
    (b"\"120\"", None),
    (b"soon", None),
    (b"null", None),
    (b"NaN", None),
    (b"\xd9\xa3", None),
    (b"\xff\xfe", None),
    // Not dates.
    (b"Sun, 06 Nov 1994 08:49:37", None),
    (b"Sun, 06 Nov 1994 08:49:37 UTC", None),
    (b"Mon, 06 Nov 1994 08:49:37 GMT", None),
    (b"Sun, 31 Feb 2027 00:00:00 GMT", None),
    (b"Sun, 06 Nov 1994 25:00:00 GMT", None),
    (b"Sun, 06-Nov-94 08:49:37 GMT", None),
    (b"Sunday, 06-Nov-1994 08:49:37 GMT", None),
    (b"1994-11-06T08:49:37Z", None),
    (b"784111777 GMT", None),
];

#[test]
fn each_value_is_read_as_it_should_be() {
    const NOW: Timestamp = Timestamp::from_secs(784_111_747);
    for (value, seconds) in TABLE {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_bytes(value).expect("a header can hold it"));
        let asked = server_wait(StatusCode::SERVICE_UNAVAILABLE, &headers, NOW);
        assert_eq!(asked, seconds.map(Duration::from_secs), "{}", value.escape_ascii());
    }
}
