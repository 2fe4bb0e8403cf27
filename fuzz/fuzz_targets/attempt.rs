//! `x-relent-attempt`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_tower::http::deadline::attempt;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers = input.headers(&["x-relent-attempt"]);
    let lines = headers.values().filter_map(|value| value.to_str().ok()?.trim_ascii().parse::<u32>().ok());
    let largest = lines.filter(|number| *number > 0).max();
    let read = attempt(&headers);
    // The standard library also reads a sign, which is not in the grammar.
    assert!(
        read == largest || headers.values().any(|value| value.as_bytes().contains(&b'+')),
        "{read:?} {largest:?}"
    );
});
