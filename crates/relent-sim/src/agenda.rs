//! What happens next: events in the order of their moments, and at one moment in the order in which they were put
//! down. The order is ours alone, so that a run repeats to the byte.
//!
//! # Source
//!
//! A heap whose nodes have four children: Johnson, "Priority queues with update and finding minimum spanning trees",
//! 1975. Half the levels of a binary one, and a node's children are neighbours in memory.

use relent_core::Timestamp;

/// Something that will happen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Event {
    /// When.
    pub(crate) at: Timestamp,
    /// The place among events of one moment, and in the lowest bits the kind.
    order: u64,
    /// Whom it concerns: a call, a caller, a worker.
    pub(crate) whom: u32,
    /// Which of the doings of the one concerned; a later one makes the event void.
    pub(crate) epoch: u32,
}

/// What kind of thing happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// The next call of an open stream begins.
    Arrival,
    /// A caller begins a call.
    Wake,
    /// A call's wait is over.
    Retry,
    /// The moment that a rate booked for a call.
    Turn,
    /// An answer reaches a call.
    Answer,
    /// A worker has done its work.
    Done,
    /// A fault or a window begins or ends.
    Boundary,
    /// An attempt has no more time. After everything else of the same moment: an answer in the last moment counts.
    TimeUp,
}

/// The events to come.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: Vec<Event>,
    put: u64,
}

impl Event {
    /// What it is.
    #[inline]
    pub(crate) fn kind(self) -> Kind {
        KINDS[(self.order & KIND) as usize]
    }

    #[inline]
    fn key(self) -> (Timestamp, u64) {
        (self.at, self.order)
    }
}

impl Agenda {
    /// Puts an event down.
    #[inline]
    pub(crate) fn put(&mut self, at: Timestamp, kind: Kind, whom: u32, epoch: u32) {
        self.put += 1;
        let last = if kind == Kind::TimeUp { LAST } else { 0 };
        let order = last | (self.put << KIND_BITS) | kind as u64;
        self.heap.push(Event { at, order, whom, epoch });
        self.rise(self.heap.len() - 1);
    }

    /// Takes the next event.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Event> {
        let last = self.heap.pop()?;
        let Some(top) = self.heap.first_mut() else { return Some(last) };
        let next = std::mem::replace(top, last);
        self.sink();
        Some(next)
    }

    fn rise(&mut self, mut place: usize) {
        let event = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / CHILDREN;
            if self.heap[parent].key() <= event.key() {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = event;
    }

    fn sink(&mut self) {
        let event = self.heap[0];
        let mut place = 0;
        loop {
            let first = place * CHILDREN + 1;
            let children = first..self.heap.len().min(first + CHILDREN);
            let Some(least) = children.min_by_key(|child| self.heap[*child].key()) else { break };
            if self.heap[least].key() >= event.key() {
                break;
            }
            self.heap[place] = self.heap[least];
            place = least;
        }
        self.heap[place] = event;
    }
}

const CHILDREN: usize = 4;
const KIND_BITS: u32 = 3;
const KIND: u64 = (1 << KIND_BITS) - 1;
const LAST: u64 = 1 << 63;
const KINDS: [Kind; 8] = [
    Kind::Arrival,
    Kind::Wake,
    Kind::Retry,
    Kind::Turn,
    Kind::Answer,
    Kind::Done,
    Kind::Boundary,
    Kind::TimeUp,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chance::Chance;

    #[test]
    fn events_come_in_the_order_of_their_moments_and_then_of_their_putting() {
        let mut agenda = Agenda::default();
        let mut chance = Chance::new(1);
        for number in 0..10_000 {
            agenda.put(Timestamp::from_nanos(u64::from(chance.below(500))), Kind::Retry, number, 0);
        }
        let taken: Vec<_> =
            std::iter::from_fn(|| agenda.next()).map(|event| (event.at, event.whom)).collect();
        assert_eq!(taken.len(), 10_000);
        assert!(taken.is_sorted());
    }

    #[test]
    fn the_end_of_an_attempts_time_comes_after_all_else_of_its_moment() {
        let mut agenda = Agenda::default();
        let at = Timestamp::from_secs(1);
        agenda.put(at, Kind::TimeUp, 1, 0);
        agenda.put(at, Kind::Done, 2, 0);
        agenda.put(at.after(std::time::Duration::from_nanos(1)), Kind::Answer, 3, 0);
        let kinds: Vec<Kind> = std::iter::from_fn(|| agenda.next()).map(Event::kind).collect();
        assert_eq!(kinds, [Kind::Done, Kind::TimeUp, Kind::Answer]);
        for (number, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }
}
