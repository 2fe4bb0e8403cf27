//! `RateLimit` and the headers that came before it.

#![no_main]

use http::StatusCode;
use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_tower::http::hints::server_wait;

const NAMES: [&str; 8] = [
    "ratelimit",
    "ratelimit",
    "ratelimit-reset",
    "ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-remaining",
    "x-rate-limit-reset",
    "date",
];

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers = input.headers(&NAMES);
    let limited = server_wait(StatusCode::TOO_MANY_REQUESTS, &headers, input.now);
    assert_eq!(server_wait(StatusCode::SERVICE_UNAVAILABLE, &headers, input.now), limited);
    assert_eq!(server_wait(StatusCode::NOT_FOUND, &headers, input.now), None, "every answer carries them");
    let mut with_retry_after = headers.clone();
    with_retry_after.insert("retry-after", http::HeaderValue::from_static("7"));
    let asked = server_wait(StatusCode::TOO_MANY_REQUESTS, &with_retry_after, input.now);
    assert_eq!(asked.map(|asked| asked.as_secs()), Some(7), "Retry-After wins");
});
