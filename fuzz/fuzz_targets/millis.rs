//! `retry-after-ms` and its like, beside a `Retry-After`.

#![no_main]

use http::StatusCode;
use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_tower::http::hints::server_wait;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers =
        input.headers(&["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after", "retry-after"]);
    let asked = server_wait(StatusCode::TOO_MANY_REQUESTS, &headers, input.now);
    let mut only_seconds = headers.clone();
    for name in ["retry-after-ms", "x-ms-retry-after-ms", "x-amz-retry-after"] {
        only_seconds.remove(name);
    }
    let seconds = server_wait(StatusCode::TOO_MANY_REQUESTS, &only_seconds, input.now);
    assert!(asked.is_some() || seconds.is_none(), "what cannot be read does not hide the next");
});
