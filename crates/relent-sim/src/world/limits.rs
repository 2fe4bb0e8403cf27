//! The two limits of a place in the pipeline, as the live driver has them: room for so many first, then a place in
//! the rate's sequence. The words are the core's; here stand the line of those who wait, and nothing else.

use std::collections::VecDeque;

use relent_core::{
    Gates, Refusal, Timestamp,
    concurrency::{Occupancy, REFUSAL},
    rate::{Gcra, Place},
};

/// The limits that stand at one place.
#[derive(Debug)]
pub(crate) struct Limits {
    room: Option<Room>,
    rate: Option<Rate>,
}

#[derive(Debug)]
struct Room {
    occupancy: Occupancy,
    bound: u32,
    line: VecDeque<u32>,
}

#[derive(Debug)]
struct Rate {
    gcra: Gcra,
    word: u64,
}

/// What came of asking for room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry {
    /// There is room.
    In,
    /// It stands in the line.
    InLine,
    /// The line is full too.
    Refused(Refusal),
}

impl Limits {
    /// `None` where no limit stands. The policy is one that was validated.
    pub(crate) fn new(gates: &Gates) -> Option<Box<Self>> {
        let room = gates.concurrency.map(|policy| Room {
            occupancy: Occupancy::new(policy.limit),
            bound: policy.queue,
            line: VecDeque::new(),
        });
        let gcra = gates.rate.and_then(|policy| Gcra::new(&policy).ok());
        let rate = gcra.map(|gcra| Rate { gcra, word: 0 });
        (room.is_some() || rate.is_some()).then(|| Box::new(Self { room, rate }))
    }

    /// A call asks for room.
    pub(crate) fn enter(&mut self, call: u32) -> Entry {
        let Some(room) = &mut self.room else { return Entry::In };
        if let Some(occupancy) = room.occupancy.enter() {
            room.occupancy = occupancy;
            return Entry::In;
        }
        if room.line.len() >= room.bound as usize {
            return Entry::Refused(REFUSAL);
        }
        room.line.push_back(call);
        room.occupancy = room.occupancy.awaited();
        Entry::InLine
    }

    /// A call that had room gives it back. Who has waited longest and has it now.
    pub(crate) fn leave(&mut self) -> Option<u32> {
        let room = self.room.as_mut()?;
        room.occupancy = room.occupancy.leave();
        let occupancy = room.line.front().and_then(|_| room.occupancy.pass_on())?;
        room.occupancy = occupancy;
        let next = room.line.pop_front();
        room.mark();
        next
    }

    /// A call has no more time to wait for room.
    pub(crate) fn step_out(&mut self, call: u32) {
        if let Some(room) = &mut self.room {
            room.line.retain(|waiting| *waiting != call);
            room.mark();
        }
    }

    /// A place in the rate's sequence, and its moment, which is not after `latest`.
    pub(crate) fn book(
        &mut self,
        now: Timestamp,
        latest: Timestamp,
    ) -> Result<Option<(Place, Timestamp)>, Refusal> {
        let Some(rate) = &mut self.rate else { return Ok(None) };
        let booked = rate.gcra.reserve(rate.word, now, latest)?;
        rate.word = booked.word;
        Ok(Some((booked.place, booked.at)))
    }

    /// A place in the sequence was not used.
    pub(crate) fn give_back(&mut self, place: Place) {
        if let Some(rate) = &mut self.rate {
            rate.word = rate.gcra.refund(rate.word, place).unwrap_or(rate.word);
        }
    }
}

impl Room {
    fn mark(&mut self) {
        if self.line.is_empty() {
            self.occupancy = self.occupancy.not_awaited();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relent_core::{ConcurrencyPolicy, Gate, RatePolicy};

    use super::*;

    #[test]
    fn who_waits_is_let_in_by_order_and_a_full_line_refuses() {
        let concurrency = Some(ConcurrencyPolicy { limit: 1, queue: 2 });
        let mut limits = Limits::new(&Gates { concurrency, rate: None }).expect("a limit");
        assert_eq!(limits.enter(0), Entry::In);
        assert_eq!((limits.enter(1), limits.enter(2)), (Entry::InLine, Entry::InLine));
        let Entry::Refused(refusal) = limits.enter(3) else { panic!("the line is full") };
        assert_eq!(refusal.by, Gate::Concurrency);
        limits.step_out(1);
        assert_eq!(limits.leave(), Some(2));
        assert_eq!(limits.leave(), None);
        assert_eq!(limits.enter(4), Entry::In);
    }

    #[test]
    fn a_rate_books_ahead_no_further_than_asked_and_takes_its_last_place_back() {
        let rate = Some(RatePolicy { permits: 1, per: Duration::from_secs(1), burst: 1 });
        let mut limits = Limits::new(&Gates { concurrency: None, rate }).expect("a limit");
        let at = Timestamp::from_secs;
        let moment = |booked: Result<Option<(Place, Timestamp)>, Refusal>| booked.unwrap().unwrap().1;
        assert_eq!(moment(limits.book(at(0), at(9))), at(0));
        assert_eq!(moment(limits.book(at(0), at(9))), at(1));
        assert_eq!(limits.book(at(0), at(1)).unwrap_err().until, Some(at(2)));
        let (place, _) = limits.book(at(0), at(2)).unwrap().unwrap();
        limits.give_back(place);
        assert_eq!(moment(limits.book(at(0), at(2))), at(2));
    }

    #[test]
    fn where_no_limit_stands_there_is_none() {
        assert!(Limits::new(&Gates::default()).is_none());
    }
}
