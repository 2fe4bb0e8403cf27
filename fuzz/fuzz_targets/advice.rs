//! `Stripe-Should-Retry` and `x-should-retry`.

#![no_main]

use http::StatusCode;
use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_tower::http::hints::{Advice, advice};

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers = input.headers(&["stripe-should-retry", "x-should-retry"]);
    let advised = advice(StatusCode::CONFLICT, &headers);
    let says = |word: &[u8]| headers.values().any(|value| value.as_bytes().trim_ascii() == word);
    let expected = match (says(b"true"), says(b"false")) {
        (_, true) => Some(Advice::Stop),
        (true, false) => Some(Advice::Retry),
        (false, false) => None,
    };
    assert_eq!(advised, expected);
    assert_eq!(advice(StatusCode::CREATED, &headers), None);
});
