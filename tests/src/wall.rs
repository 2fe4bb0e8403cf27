//! The clock on the wall: these tests watch real processes, which live in real time.

#![expect(clippy::disallowed_methods, reason = "real processes live in real time; nothing here decides")]

use std::{
    thread,
    time::{Duration, Instant, SystemTime},
};

/// The present instant.
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since the Unix epoch, as the processes under test write them.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Stops this thread for a while.
pub fn sleep(length: Duration) {
    thread::sleep(length);
}

/// Asks again and again until there is an answer, for at most `limit`.
pub fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if now() >= end {
            return None;
        }
        sleep(PAUSE);
    }
}

/// Asks again and again until there is an answer.
///
/// # Panics
///
/// After `limit`, with the name of what did not come.
#[track_caller]
pub fn eventually<T>(what: &str, limit: Duration, ask: impl FnMut() -> Option<T>) -> T {
    poll(limit, ask).unwrap_or_else(|| panic!("{what}: not within {limit:?}"))
}

/// Reads `2026-11-30T13:45:07.123Z` as milliseconds since the Unix epoch.
///
/// # Panics
///
/// On any other form: the API promises this one.
#[track_caller]
pub fn millis_of(text: &str) -> u64 {
    let number = |from: usize, to: usize| -> u64 {
        text.get(from..to)
            .and_then(|digits| digits.parse().ok())
            .unwrap_or_else(|| panic!("not a time: {text}"))
    };
    let marks: Vec<char> = [4, 7, 10, 13, 16, 19, 23].iter().filter_map(|at| text.chars().nth(*at)).collect();
    assert!(text.len() == 24 && marks == ['-', '-', 'T', ':', ':', '.', 'Z'], "not a time: {text}");
    let days = days_since_1970(number(0, 4), number(5, 7), number(8, 10));
    let seconds = days * 86_400 + number(11, 13) * 3600 + number(14, 16) * 60 + number(17, 19);
    seconds * 1000 + number(20, 23)
}

/// Days from 1970-01-01 to a date after it, in the Gregorian calendar, with the year begun in March so that the
/// leap day comes last.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let before_year = year * 365 + year / 4 - year / 100 + year / 400;
    before_year + (month * 153 + 2) / 5 + day - 1 - DAYS_BEFORE_1970
}

/// From 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: u64 = 719_468;
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_the_api_writes_them() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T12:00:00.001Z", 951_825_600_001),
            ("2026-11-30T13:45:07.123Z", 1_796_046_307_123),
        ] {
            assert_eq!(millis_of(text), millis, "{text}");
        }
    }
}
