//! The ways in which servers ask to be left alone, written as they write them.

use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue};
use relent::Timestamp;

/// What an answer says about the next request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hint {
    /// Come back after this long, said in one of the forms.
    Wait(Duration, WaitForm),
    /// `Stripe-Should-Retry`: whether another try is of use.
    ShouldRetry(ShouldRetry),
}

/// What `Stripe-Should-Retry` says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ShouldRetry {
    /// `true`
    Yes,
    /// `false`
    No,
}

/// How a wait is said.
///
/// # Source
///
/// `Retry-After`: RFC 9110, section 10.2.3, its three dates section 5.6.7. `RateLimit`: the IETF draft
/// "RateLimit header fields for HTTP", since its version 08; `RateLimit-Reset`: the same up to version 07. The `-ms`
/// forms: Azure's and AWS's services. `X-RateLimit-Reset`: an instant in seconds since 1970, as GitHub sends it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitForm {
    /// `Retry-After: 2`. Whole seconds, rounded up.
    Seconds,
    /// `Retry-After: Sun, 06 Nov 1994 08:49:37 GMT`. Rounded up to the next whole second, as all dates here.
    Date,
    /// `Retry-After: Sunday, 06-Nov-94 08:49:37 GMT`, obsolete.
    Rfc850,
    /// `Retry-After: Sun Nov  6 08:49:37 1994`, obsolete.
    Asctime,
    /// `retry-after-ms: 1500`
    RetryAfterMs,
    /// `x-ms-retry-after-ms: 1500`
    XMsRetryAfterMs,
    /// `x-amz-retry-after: 1500`, in milliseconds.
    XAmzRetryAfter,
    /// `RateLimit: "default";r=0;t=2`, with its policy.
    RateLimit,
    /// `RateLimit-Limit: 1`, `RateLimit-Remaining: 0` and `RateLimit-Reset: 2`, in seconds.
    RateLimitReset,
    /// `X-RateLimit-Remaining: 0` and `X-RateLimit-Reset` with an instant.
    XRateLimitReset,
}

impl WaitForm {
    /// Every form, in the order of the documentation.
    pub const ALL: [Self; 10] = [
        Self::Seconds,
        Self::Date,
        Self::Rfc850,
        Self::Asctime,
        Self::RetryAfterMs,
        Self::XMsRetryAfterMs,
        Self::XAmzRetryAfter,
        Self::RateLimit,
        Self::RateLimitReset,
        Self::XRateLimitReset,
    ];

    /// The form's name in scripts and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Date => "date",
            Self::Rfc850 => "rfc850",
            Self::Asctime => "asctime",
            Self::RetryAfterMs => "retry-after-ms",
            Self::XMsRetryAfterMs => "x-ms-retry-after-ms",
            Self::XAmzRetryAfter => "x-amz-retry-after",
            Self::RateLimit => "ratelimit",
            Self::RateLimitReset => "ratelimit-reset",
            Self::XRateLimitReset => "x-ratelimit-reset",
        }
    }

    /// The form with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// What a client that hears the form will wait at least: the wait as the form can say it, from `now`.
    pub fn asks(self, wait: Duration, now: Timestamp) -> Duration {
        let seconds = Duration::from_secs(wait.as_nanos().div_ceil(NANOS).try_into().unwrap_or(u64::MAX));
        match self {
            Self::Seconds | Self::RateLimit | Self::RateLimitReset => seconds,
            Self::RetryAfterMs | Self::XMsRetryAfterMs | Self::XAmzRetryAfter => wait,
            Self::Date | Self::Rfc850 | Self::Asctime | Self::XRateLimitReset => {
                Timestamp::from_secs(instant(wait, now)).since(now)
            }
        }
    }
}

impl Hint {
    /// The headers that say it, at the wall time `now`.
    pub fn headers(self, now: Timestamp) -> Vec<(HeaderName, HeaderValue)> {
        let (wait, form) = match self {
            Self::ShouldRetry(should) => {
                let text = if should == ShouldRetry::Yes { "true" } else { "false" };
                return vec![pair("stripe-should-retry", text)];
            }
            Self::Wait(wait, form) => (wait, form),
        };
        let at = instant(wait, now);
        let seconds = form.asks(wait, now).as_secs();
        let millis = wait.as_millis().to_string();
        match form {
            WaitForm::Seconds => vec![pair("retry-after", &seconds.to_string())],
            WaitForm::Date => vec![pair("retry-after", &date(at))],
            WaitForm::Rfc850 => vec![pair("retry-after", &rfc850(&date(at)))],
            WaitForm::Asctime => vec![pair("retry-after", &asctime(&date(at)))],
            WaitForm::RetryAfterMs => vec![pair("retry-after-ms", &millis)],
            WaitForm::XMsRetryAfterMs => vec![pair("x-ms-retry-after-ms", &millis)],
            WaitForm::XAmzRetryAfter => vec![pair("x-amz-retry-after", &millis)],
            WaitForm::RateLimit => vec![
                pair("ratelimit-policy", &format!("\"default\";q=1;w={seconds}")),
                pair("ratelimit", &format!("\"default\";r=0;t={seconds}")),
            ],
            WaitForm::RateLimitReset => vec![
                pair("ratelimit-limit", "1"),
                pair("ratelimit-remaining", "0"),
                pair("ratelimit-reset", &seconds.to_string()),
            ],
            WaitForm::XRateLimitReset => {
                vec![pair("x-ratelimit-remaining", "0"), pair("x-ratelimit-reset", &at.to_string())]
            }
        }
    }
}

/// The `Date` header of an answer at the wall time `now`.
pub(crate) fn date(unix_secs: u64) -> String {
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(unix_secs.min(LAST_SECOND)))
}

/// The first whole second, since 1970, at which a wait from `now` is over.
fn instant(wait: Duration, now: Timestamp) -> u64 {
    let nanos = u128::from(now.after(wait).as_nanos());
    u64::try_from(nanos.div_ceil(NANOS)).unwrap_or(u64::MAX)
}

fn pair(name: &'static str, value: &str) -> (HeaderName, HeaderValue) {
    let value = HeaderValue::from_str(value).unwrap_or_else(|_| HeaderValue::from_static(""));
    (HeaderName::from_static(name), value)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT` from `Sun, 06 Nov 1994 08:49:37 GMT`.
fn rfc850(date: &str) -> String {
    let words: Vec<&str> = date.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let [weekday, day, month, year, time, zone] = words[..] else { return date.to_owned() };
    let weekday = WEEKDAYS.iter().find(|long| long.starts_with(weekday)).copied().unwrap_or(weekday);
    format!("{weekday}, {day}-{month}-{} {time} {zone}", &year[year.len() - 2..])
}

/// `Sun Nov  6 08:49:37 1994` from `Sun, 06 Nov 1994 08:49:37 GMT`.
fn asctime(date: &str) -> String {
    let words: Vec<&str> = date.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let [weekday, day, month, year, time, _] = words[..] else { return date.to_owned() };
    format!("{weekday} {month} {:>2} {time} {year}", day.trim_start_matches('0'))
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NANOS: u128 = 1_000_000_000;
/// The last second of the year 9999, beyond which HTTP has no dates.
const LAST_SECOND: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode, header};
    use relent_tower::http::hints::{Advice, advice, server_wait};

    use super::*;

    /// 2026-11-30 13:45:07.25 UTC, a Monday.
    const NOW: Timestamp = Timestamp::from_millis(1_796_046_307_250);

    fn sent(hint: Hint) -> HeaderMap {
        let mut headers: HeaderMap = hint.headers(NOW).into_iter().collect();
        headers.insert(header::DATE, HeaderValue::from_str(&date(NOW.as_secs())).unwrap());
        headers
    }

    #[test]
    fn each_form_is_spelled_as_servers_spell_it() {
        let wait = Duration::from_millis(1500);
        for (form, name, value) in [
            (WaitForm::Seconds, "retry-after", "2"),
            (WaitForm::Date, "retry-after", "Mon, 30 Nov 2026 13:45:09 GMT"),
            (WaitForm::Rfc850, "retry-after", "Monday, 30-Nov-26 13:45:09 GMT"),
            (WaitForm::Asctime, "retry-after", "Mon Nov 30 13:45:09 2026"),
            (WaitForm::RetryAfterMs, "retry-after-ms", "1500"),
            (WaitForm::XMsRetryAfterMs, "x-ms-retry-after-ms", "1500"),
            (WaitForm::XAmzRetryAfter, "x-amz-retry-after", "1500"),
            (WaitForm::RateLimit, "ratelimit", "\"default\";r=0;t=2"),
            (WaitForm::RateLimitReset, "ratelimit-reset", "2"),
            (WaitForm::XRateLimitReset, "x-ratelimit-reset", "1796046309"),
        ] {
            assert_eq!(sent(Hint::Wait(wait, form))[name], value, "{}", form.name());
            assert_eq!(WaitForm::from_name(form.name()), Some(form));
        }
        assert_eq!(sent(Hint::ShouldRetry(ShouldRetry::No))["stripe-should-retry"], "false");
    }

    #[test]
    fn what_is_asked_for_is_what_relents_own_parser_reads() {
        for form in WaitForm::ALL {
            for millis in [0, 1, 999, 1000, 1001, 86_400_000] {
                let wait = Duration::from_millis(millis);
                let read = server_wait(StatusCode::SERVICE_UNAVAILABLE, &sent(Hint::Wait(wait, form)), NOW);
                let asked = form.asks(wait, NOW);
                assert!(asked >= wait && asked < wait + Duration::from_secs(1), "{asked:?}");
                // A date is read from the answer's own `Date`, which has lost its fraction.
                let read = read.unwrap();
                assert!(
                    read >= asked && read <= asked + Duration::from_secs(1),
                    "{form:?} {wait:?}: {read:?}"
                );
            }
        }
    }

    #[test]
    fn advice_is_read_as_it_was_meant() {
        for (should, meant) in [(ShouldRetry::Yes, Advice::Retry), (ShouldRetry::No, Advice::Stop)] {
            let headers = sent(Hint::ShouldRetry(should));
            assert_eq!(advice(StatusCode::SERVICE_UNAVAILABLE, &headers), Some(meant));
        }
    }

    #[test]
    fn a_day_below_ten_is_padded_as_asctime_pads_it() {
        assert_eq!(asctime("Sun, 06 Nov 1994 08:49:37 GMT"), "Sun Nov  6 08:49:37 1994");
        assert_eq!(rfc850("Sun, 06 Nov 1994 08:49:37 GMT"), "Sunday, 06-Nov-94 08:49:37 GMT");
    }

    #[test]
    fn a_wait_beyond_all_dates_is_still_a_date() {
        assert!(!Hint::Wait(Duration::MAX, WaitForm::Date).headers(NOW).is_empty());
        assert_eq!(date(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
