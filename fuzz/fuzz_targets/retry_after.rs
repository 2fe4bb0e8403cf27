//! `Retry-After` beside a `Date`.

#![no_main]

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER};
use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_tower::http::hints::server_wait;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers = input.headers(&["retry-after", "date"]);
    for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::SEE_OTHER] {
        let asked = server_wait(status, &headers, input.now);
        if let Some(asked) = asked.filter(|asked| asked.subsec_nanos() == 0) {
            // What was understood can be said in the plainest form, and means the same.
            let mut plain = HeaderMap::new();
            plain.insert(RETRY_AFTER, HeaderValue::from(asked.as_secs()));
            assert_eq!(server_wait(status, &plain, input.now), Some(Duration::from_secs(asked.as_secs())));
        }
    }
    assert_eq!(server_wait(StatusCode::OK, &headers, input.now), None);
});
