//! The small parts of a scenario: lengths, shares, stretches of time, each refused with its field's name.

use std::time::Duration;

use relent_core::{Timestamp, parse_duration};

use super::{Unusable, unusable};

pub(super) fn numbered<T, U>(
    list: &str,
    texts: Vec<T>,
    check: impl Fn(&str, T) -> Result<U, Unusable>,
) -> Result<Vec<U>, Unusable> {
    texts.into_iter().enumerate().map(|(number, text)| check(&format!("{list}[{number}]"), text)).collect()
}

pub(super) fn stretch(
    field: &str,
    from: &str,
    length_text: Option<&str>,
    end: Timestamp,
) -> Result<(Timestamp, Timestamp), Unusable> {
    let from_field = format!("{field}.from");
    let from = Timestamp::ZERO.after(length(&from_field, from)?);
    if from >= end {
        return Err(unusable(&from_field, "the run is over by then; lengthen duration"));
    }
    let until = match length_text {
        None => end,
        Some(text) => from.after(moment(&format!("{field}.for"), text)?),
    };
    if until > end {
        return Err(unusable(&format!("{field}.for"), "the run is over before its end; lengthen duration"));
    }
    Ok((from, until))
}

pub(super) fn length(field: &str, text: &str) -> Result<Duration, Unusable> {
    parse_duration(text).map_err(|why| unusable(field, why))
}

/// A length above zero.
pub(super) fn moment(field: &str, text: &str) -> Result<Duration, Unusable> {
    match length(field, text)? {
        Duration::ZERO => Err(unusable(field, "it is to be longer than nothing; write for example \"1ms\"")),
        length => Ok(length),
    }
}

pub(super) fn within(field: &str, value: u32, least: u32, most: u32) -> Result<u32, Unusable> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(unusable(field, format!("{value} is to be between {least} and {most}"))),
    }
}

pub(super) fn status(field: &str, value: u16) -> Result<u16, Unusable> {
    match (100..=999).contains(&value) {
        true => Ok(value),
        false => Err(unusable(field, format!("{value} is no status; they are 100 to 999"))),
    }
}

pub(super) fn share(field: &str, value: Option<f64>) -> Result<f64, Unusable> {
    value
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| unusable(field, "it is to be a share between 0.0 and 1.0"))
}

pub(super) fn times(field: &str, value: Option<f64>) -> Result<f64, Unusable> {
    value
        .filter(|times| (0.0..=1000.0).contains(times))
        .ok_or_else(|| unusable(field, "write how many times the normal load, 0.0 to 1000.0"))
}

/// In millionths.
pub(super) fn speed(field: &str, value: Option<f64>) -> Result<u32, Unusable> {
    let value = value.filter(|speed| (0.0..=1000.0).contains(speed));
    let value = value
        .ok_or_else(|| unusable(field, "write the speed to work at, 0.0 (none) to 1000.0; 1.0 is normal"))?;
    Ok(u32::try_from(crate::chance::nanos(value * 1e6 + 0.5)).unwrap_or(u32::MAX))
}
