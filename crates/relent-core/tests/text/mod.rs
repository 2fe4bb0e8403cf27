//! Policies as text, as the tests write them.
#![allow(dead_code, reason = "each test binary uses a part")]

use relent_core::{Policy, PolicyText};

fn written(text: &str) -> PolicyText {
    toml::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// What the text makes of a base.
pub(crate) fn over(text: &str, base: Policy) -> Policy {
    written(text).over(base).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// What the text makes of the default.
pub(crate) fn read(text: &str) -> Policy {
    over(text, Policy::live())
}

/// What the text makes of the default, or why it is refused.
pub(crate) fn build(text: &str) -> Result<Policy, String> {
    written(text).over(Policy::live()).map_err(|invalid| invalid.to_string())
}

/// Why the text is refused.
pub(crate) fn refusal(text: &str) -> String {
    build(text).expect_err(text)
}

/// Each text, the field that its refusal begins with, and what it says of the way out.
pub(crate) fn assert_refused(rows: &[(&str, &str, &str)]) {
    for (text, field, way_out) in rows {
        let message = refusal(text);
        assert!(message.starts_with(field), "{text}: {message}");
        assert!(message.contains(way_out), "{text}: {message}");
    }
}

/// Each text, the field in it that nobody knows, and one of those that are named instead.
pub(crate) fn assert_unknown(rows: &[(&str, &str, &str)]) {
    for (text, unknown, known) in rows {
        let message = toml::from_str::<PolicyText>(text).expect_err(text).to_string();
        assert!(message.contains("unknown field"), "{text}: {message}");
        assert!(message.contains(unknown) && message.contains(known), "{text}: {message}");
    }
}
