//! `Idempotency-Key`, as the server's half reads it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use relent_fuzz::Input;
use relent_idempotency::Key;
use relent_tower::http::idempotency::IdempotencyKey;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else { return };
    let headers = input.headers(&["idempotency-key"]);
    if let Ok(Some(key)) = Key::of(&headers) {
        assert_eq!(Key::new(key.as_str()), Ok(key.clone()), "what was read is a key");
    }
    // What the client's half may send, the server's half reads as the same.
    let sent = headers.values().next().and_then(|value| IdempotencyKey::new(value.to_str().ok()?).ok());
    if let (Some(sent), 1) = (sent, headers.len()) {
        let read = Key::of(&headers).ok().flatten();
        assert_eq!(read.as_ref().map(Key::as_str), Some(sent.as_str()));
    }
});
