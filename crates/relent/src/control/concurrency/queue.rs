//! Who waits for a place, in order of arrival.
//!
//! A waker that is dropped may drop a task, and with it a permit of this very limit. So every waker that leaves
//! the queue is handed to the caller, to be dropped when the lock is gone.

use std::{collections::VecDeque, mem, task::Waker};

/// Tickets in ascending order: first those who have been given a place and have yet to take it up, then those
/// who wait. Places are given from the front, so the two never mix.
#[derive(Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// How many at the front have been given a place.
    granted: usize,
    next_ticket: u64,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticket(u64);

/// What a ticket was worth when it left the queue.
#[derive(Debug)]
pub(super) enum Left {
    /// It waited in vain; its waker.
    Waiting(Waker),
    /// It had been given a place.
    Granted,
}

struct Entry {
    ticket: Ticket,
    waker: Waker,
}

impl Queue {
    /// How many wait; those who have been given a place do not. They are at most the bound of the queue, which
    /// fits.
    pub(super) fn waiting(&self) -> u32 {
        u32::try_from(self.entries.len() - self.granted).unwrap_or(u32::MAX)
    }

    /// Joins at the end.
    pub(super) fn join(&mut self, waker: Waker) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1; // at a billion a second it wraps in 584 years
        self.entries.push_back(Entry { ticket, waker });
        ticket
    }

    /// Gives a place to whoever has waited longest: whom to wake.
    pub(super) fn grant(&mut self) -> Option<Waker> {
        let first = self.entries.get_mut(self.granted)?;
        self.granted += 1;
        Some(mem::replace(&mut first.waker, Waker::noop().clone()))
    }

    /// Whether the ticket has been given a place; if so it has now left the queue.
    pub(super) fn take_up(&mut self, ticket: Ticket) -> bool {
        let granted = self.find(ticket).filter(|index| *index < self.granted);
        granted.map(|index| self.remove(index)).is_some()
    }

    /// Lets `waker` be woken when the ticket is given a place. The waker that was to be woken until now.
    pub(super) fn watch(&mut self, ticket: Ticket, waker: &Waker) -> Option<Waker> {
        let known = self.find(ticket).map(|index| &mut self.entries[index].waker)?;
        (!known.will_wake(waker)).then(|| mem::replace(known, waker.clone()))
    }

    /// Gives the ticket up. `None`: it is not in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket) -> Option<Left> {
        let index = self.find(ticket)?;
        let was_granted = index < self.granted;
        let waker = self.remove(index)?;
        Some(if was_granted { Left::Granted } else { Left::Waiting(waker) })
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
    }

    fn remove(&mut self, index: usize) -> Option<Waker> {
        let entry = self.entries.remove(index)?;
        self.granted -= usize::from(index < self.granted);
        Some(entry.waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waker() -> Waker {
        Waker::noop().clone()
    }

    #[test]
    fn places_go_to_the_front_and_are_taken_up_in_any_order() {
        let mut queue = Queue::default();
        let [a, b, c] = [(); 3].map(|()| queue.join(waker()));
        assert!(queue.grant().is_some() && queue.grant().is_some());
        assert_eq!(queue.waiting(), 1);
        assert!(!queue.take_up(c));
        assert!(queue.take_up(b) && queue.take_up(a));
        assert!(queue.grant().is_some() && queue.take_up(c));
        assert!(queue.grant().is_none());
    }

    #[test]
    fn who_leaves_says_whether_a_place_goes_with_it() {
        let mut queue = Queue::default();
        let [a, b, c] = [(); 3].map(|()| queue.join(waker()));
        assert!(queue.grant().is_some());
        assert!(matches!(queue.leave(b), Some(Left::Waiting(_))));
        assert!(matches!(queue.leave(a), Some(Left::Granted)));
        assert!(queue.leave(a).is_none());
        assert_eq!(queue.waiting(), 1);
        assert!(queue.grant().is_some());
        assert!(matches!(queue.leave(c), Some(Left::Granted)));
        assert_eq!(queue.waiting(), 0);
    }
}
