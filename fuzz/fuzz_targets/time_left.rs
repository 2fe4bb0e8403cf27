//! `grpc-timeout` and its relatives in milliseconds.

#![no_main]

use http::HeaderMap;
use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_tower::http::deadline::TimeLeft;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers = input.headers(&["grpc-timeout", "x-request-timeout-ms"]);
    for header in [TimeLeft::GRPC, TimeLeft::REQUEST_TIMEOUT_MS] {
        let Some(left) = header.read(&headers) else { continue };
        let mut passed_on = HeaderMap::new();
        header.write_to(&mut passed_on, left);
        let again = header.read(&passed_on).expect("what was written can be read");
        assert!(again <= left, "passing it on never adds time: {left:?} became {again:?}");
        let lost = left - again;
        assert!(
            lost.is_zero() || lost.as_nanos() <= left.as_nanos() / 1_000_000 + 1,
            "{left:?} became {again:?}"
        );
    }
});
