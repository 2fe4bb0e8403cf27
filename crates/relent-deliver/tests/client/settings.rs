//! Settings that cannot be meant are refused when the client is made.

use std::{error::Error, io::Write, time::Duration};

use relent::ManualClock;
use relent_deliver::{ClientSettings, HttpClient, SettingsError};

#[test]
fn a_setting_that_contradicts_another_is_named() {
    let good = ClientSettings::default;
    for (settings, name) in [
        (ClientSettings { max_response: 65 * 1024, ..good() }, "max_response"),
        (ClientSettings { max_head: 8191, ..good() }, "max_head"),
        (ClientSettings { max_headers: 0, ..good() }, "max_headers"),
        (ClientSettings { connect_timeout: Duration::ZERO, ..good() }, "connect_timeout"),
    ] {
        match refusal(settings) {
            SettingsError::Invalid { field, reason } => {
                assert_eq!(field, name);
                assert!(!reason.is_empty());
            }
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn roots_that_cannot_be_read_are_refused_with_the_file_and_the_reason() {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_owned();
    let missing = path.with_extension("missing");
    let with_roots = |path| ClientSettings { extra_roots: Some(path), ..ClientSettings::default() };
    let error = refusal(with_roots(missing.clone()));
    assert!(error.to_string().contains(&missing.display().to_string()), "{error}");
    assert!(error.source().is_some());
    let empty = refusal(with_roots(path.clone()));
    assert_eq!(empty.source().expect("a cause").to_string(), "there is no certificate in it");
    file.write_all(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").expect("a file");
    assert!(matches!(refusal(with_roots(path)), SettingsError::Roots { .. }));
}

fn refusal(settings: ClientSettings) -> SettingsError {
    HttpClient::new(settings, ManualClock::new()).expect_err("the settings are wrong")
}
