//! Who may be sent now: places in all and for each destination, so that one that hangs cannot take them all.
//!
//! A claim brings no more than one destination's places, and a destination that has none free, or has messages
//! parked, is skipped by the next claim. So a destination never has more parked than places, nothing claimed
//! has to go back for want of one, and parked messages stay fewer than the places in all.

use std::collections::{HashMap, VecDeque};

use relent_ledger::Destination;

use super::Limits;

/// The places, and what waits for one.
pub(super) struct Seats<W> {
    in_flight: usize,
    per_destination: usize,
    taken: usize,
    rows: HashMap<Destination, Row<W>>,
}

struct Row<W> {
    taken: usize,
    parked: VecDeque<W>,
}

impl<W> Seats<W> {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            in_flight: limits.in_flight.max(1),
            per_destination: limits.per_destination.max(1),
            taken: 0,
            rows: HashMap::new(),
        }
    }

    /// How many messages may be claimed now.
    pub(super) fn room(&self) -> usize {
        self.in_flight.saturating_sub(self.taken).min(self.per_destination)
    }

    /// The destinations to leave out of the next claim.
    pub(super) fn full(&self) -> Vec<Destination> {
        self.rows
            .iter()
            .filter(|(_, row)| row.taken >= self.per_destination || !row.parked.is_empty())
            .map(|(destination, _)| destination.clone())
            .collect()
    }

    /// Takes a place for `work`, or parks it. `Some`: it has a place.
    pub(super) fn take(&mut self, destination: &Destination, work: W) -> Option<W> {
        let row =
            self.rows.entry(destination.clone()).or_insert_with(|| Row { taken: 0, parked: VecDeque::new() });
        if row.taken >= self.per_destination {
            row.parked.push_back(work);
            return None;
        }
        row.taken += 1;
        self.taken += 1;
        Some(work)
    }

    /// Gives a place back. `Some`: it went to a parked message at once.
    pub(super) fn give_back(&mut self, destination: &Destination) -> Option<W> {
        let row = self.rows.get_mut(destination)?;
        if let Some(next) = row.parked.pop_front() {
            return Some(next);
        }
        row.taken = row.taken.saturating_sub(1);
        self.taken = self.taken.saturating_sub(1);
        if row.taken == 0 {
            self.rows.remove(destination);
        }
        None
    }

    /// Everything that is parked.
    pub(super) fn take_parked(&mut self) -> Vec<W> {
        self.rows.values_mut().flat_map(|row| row.parked.drain(..)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn seats(in_flight: usize, per_destination: usize) -> Seats<u32> {
        Seats::new(&Limits { in_flight, per_destination, ..Limits::default() })
    }

    #[test]
    fn a_full_destination_is_left_out_and_the_others_keep_their_places() {
        let (tar, other) = (Destination::new("http://tar:80"), Destination::new("http://other:80"));
        let mut seats = seats(8, 3);
        assert_eq!(seats.room(), 3);
        assert_eq!((1..=2).filter_map(|n| seats.take(&tar, n)).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(seats.full(), []);
        // The next claim brings three at most, of which two must wait for a place.
        assert_eq!((3..=5).filter_map(|n| seats.take(&tar, n)).collect::<Vec<_>>(), [3]);
        assert_eq!(seats.full(), from_ref(&tar));
        assert_eq!(seats.room(), 3, "parked messages hold no place");
        assert_eq!(seats.take(&other, 6), Some(6));

        assert_eq!(seats.give_back(&tar), Some(4), "the longest parked goes first");
        assert_eq!(seats.full(), from_ref(&tar), "one is parked still");
        assert_eq!(seats.give_back(&tar), Some(5));
        assert_eq!(seats.give_back(&tar), None);
        assert_eq!(seats.full(), []);
    }

    #[test]
    fn places_in_all_are_never_exceeded_and_all_come_back() {
        let mut seats = seats(4, 3);
        let hosts = ["a", "b"].map(Destination::new);
        let mut given = 0;
        while seats.room() > 0 {
            for _ in 0..seats.room() {
                given += usize::from(seats.take(&hosts[given % 2], 0).is_some());
            }
        }
        assert_eq!(given, 4);
        for n in 0..4 {
            assert_eq!(seats.give_back(&hosts[n % 2]), None);
        }
        assert_eq!((seats.room(), seats.rows.len()), (3, 0));
    }
}
