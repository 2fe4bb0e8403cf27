//! What the dependency saw: every arrival, and what became of it. Bounded: the oldest are forgotten, and counted.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use relent::Timestamp;
use tokio::sync::watch;

/// One request as it arrived. Times are wall times of the dependency's own clock, which never goes back.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its number among all arrivals, from 1.
    pub number: u64,
    /// When its first byte was there; for one that was never read, when its connection was.
    pub at: Timestamp,
    /// When its last byte had been read, if it was.
    pub read_at: Option<Timestamp>,
    /// The connection it came on, counted from 1.
    pub connection: u64,
    /// Its number on that connection, from 1.
    pub on_connection: u64,
    /// The method; none where the request was never read.
    pub method: Option<Method>,
    /// The path with its query; empty where the request was never read.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// What became of it.
    pub end: End,
}

/// What came of a body.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Body {
    /// How many bytes came.
    pub length: u64,
    /// The SHA-256 of what came, in lower-case hexadecimal digits; empty where nothing was read.
    pub sha256: String,
    /// Its first bytes, as many as [`Limits`] allows.
    pub kept: Bytes,
    /// Whether all came that was announced.
    pub whole: Whole,
}

/// Whether a body came whole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Whole {
    /// Its end was read.
    Yes,
    /// It broke off, or was left unread.
    #[default]
    No,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// It is being worked on, or held.
    Pending,
    /// All that the script says of an answer was given to the socket.
    Answered {
        /// The status.
        status: StatusCode,
        /// When its last byte was written.
        at: Timestamp,
    },
    /// The connection was reset or closed, as the script says.
    Broken {
        /// When.
        at: Timestamp,
    },
    /// The client went away before it had an answer.
    ClientGone {
        /// When this was seen.
        at: Timestamp,
    },
    /// It was not HTTP, or larger than the limits allow.
    Unreadable {
        /// When this was seen.
        at: Timestamp,
    },
}

impl End {
    /// When it ended.
    pub const fn at(self) -> Option<Timestamp> {
        match self {
            Self::Pending => None,
            Self::Answered { at, .. }
            | Self::Broken { at }
            | Self::ClientGone { at }
            | Self::Unreadable { at } => Some(at),
        }
    }
}

impl Arrival {
    /// A header's value, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// How much is remembered and served at a time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many arrivals are remembered.
    pub arrivals: usize,
    /// How many bytes of each body are kept; all are counted and hashed.
    pub body: usize,
    /// How many connections are served at a time. More wait to be accepted.
    pub connections: usize,
}

impl Default for Limits {
    /// 10,000 arrivals, 4 KiB of each body, 512 connections: with usual headers under 100 MiB at the worst.
    fn default() -> Self {
        Self { arrivals: 10_000, body: 4 << 10, connections: 512 }
    }
}

/// The arrivals, in order.
#[derive(Debug)]
pub(crate) struct Log {
    most: usize,
    entries: Mutex<Entries>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<Arrival>,
    forgotten: u64,
}

impl Log {
    pub(crate) fn new(most: usize) -> Self {
        Self { most: most.max(1), entries: Mutex::default(), changed: watch::channel(0).0 }
    }

    /// Writes an arrival down under its number, which it returns.
    pub(crate) fn note(&self, mut arrival: Arrival) -> u64 {
        let mut entries = self.entries();
        let number = entries.forgotten + entries.kept.len() as u64 + 1;
        arrival.number = number;
        if entries.kept.len() == self.most {
            entries.kept.pop_front();
            entries.forgotten += 1;
        }
        entries.kept.push_back(arrival);
        drop(entries);
        self.changed.send_modify(|count| *count += 1);
        number
    }

    /// Changes an arrival that is still remembered.
    pub(crate) fn amend(&self, number: u64, change: impl FnOnce(&mut Arrival)) {
        let mut entries = self.entries();
        let place = number.checked_sub(entries.forgotten + 1).and_then(|place| usize::try_from(place).ok());
        if let Some(arrival) = place.and_then(|place| entries.kept.get_mut(place)) {
            change(arrival);
        }
        drop(entries);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.entries().kept.iter().cloned().collect()
    }

    pub(crate) fn after(&self, number: u64) -> Vec<Arrival> {
        let entries = self.entries();
        let known = number.saturating_sub(entries.forgotten);
        entries.kept.iter().skip(usize::try_from(known).unwrap_or(usize::MAX)).cloned().collect()
    }

    pub(crate) fn count(&self) -> u64 {
        let entries = self.entries();
        entries.forgotten + entries.kept.len() as u64
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.entries().forgotten
    }

    /// Told of every change.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival() -> Arrival {
        Arrival {
            number: 0,
            at: Timestamp::ZERO,
            read_at: None,
            connection: 1,
            on_connection: 1,
            method: None,
            path: String::new(),
            headers: HeaderMap::new(),
            body: Body::default(),
            end: End::Pending,
        }
    }

    #[test]
    fn the_oldest_are_forgotten_and_counted() {
        let log = Log::new(3);
        let numbers: Vec<u64> = (0..5).map(|_| log.note(arrival())).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        log.amend(1, |_| panic!("it is forgotten"));
        log.amend(4, |arrival| arrival.connection = 9);
        let kept: Vec<(u64, u64)> = log.arrivals().iter().map(|one| (one.number, one.connection)).collect();
        assert_eq!(kept, [(3, 1), (4, 9), (5, 1)]);
        let after = |number| log.after(number).iter().map(|one| one.number).collect::<Vec<_>>();
        assert_eq!((after(0), after(4), after(9)), (vec![3, 4, 5], vec![5], vec![]));
        assert_eq!((log.count(), log.forgotten()), (5, 2));
    }
}
