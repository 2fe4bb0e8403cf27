//! Who has booked a place and not gone yet, in the order of the places.
//!
//! When one gives up, its place goes to the next, whose own goes to the one after, and so on to the end of the
//! line. Of those only the next is woken: it wakes its own next when it goes, which is early enough, since
//! places are an interval apart. So a thousand who give up together wake a thousand, not half a million.
//!
//! As in the queue of the concurrency limit, wakers that leave the line are handed to the caller, to be woken or
//! dropped when the lock is gone.

use std::{collections::VecDeque, mem, task::Waker};

use relent_core::{
    Timestamp,
    rate::{Gcra, Place},
};

#[derive(Default)]
pub(super) struct Line {
    entries: VecDeque<Entry>,
    next_ticket: u64,
    /// The latest time that anybody told: places before it are over.
    now: Timestamp,
}

/// A place in the line.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Ticket(u64);

/// What it takes to leave the line.
#[derive(Default)]
pub(super) struct Left {
    /// The place at the end of the line that is free now.
    pub(super) freed: Option<Place>,
    /// The waker of who left, to be dropped.
    pub(super) own: Option<Waker>,
    /// The waker of the next, which has moved up without knowing it.
    pub(super) next: Option<Waker>,
}

struct Entry {
    ticket: Ticket,
    place: Place,
    waker: Option<Waker>,
    news: News,
}

/// Whether an entry has moved since its owner last looked.
#[derive(Clone, Copy, Eq, PartialEq)]
enum News {
    None,
    Moved,
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Joins with a place behind all others.
    pub(super) fn join(&mut self, place: Place, now: Timestamp) -> Ticket {
        self.now = self.now.max(now);
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1; // at a billion a second it wraps in 584 years
        self.entries.push_back(Entry { ticket, place, waker: None, news: News::None });
        ticket
    }

    /// Where the ticket stands now.
    pub(super) fn place(&self, ticket: Ticket) -> Option<Place> {
        self.find(ticket).map(|index| self.entries[index].place)
    }

    /// Where the ticket stands now; if it moves up, `waker` is woken. And the waker that was to be woken until
    /// now.
    pub(super) fn watch(&mut self, ticket: Ticket, waker: &Waker) -> Option<(Place, Option<Waker>)> {
        let index = self.find(ticket)?;
        let entry = &mut self.entries[index];
        entry.news = News::None;
        let known = entry.waker.as_ref().is_some_and(|known| known.will_wake(waker));
        let replaced = if known { None } else { entry.waker.replace(waker.clone()) };
        Some((entry.place, replaced))
    }

    /// The ticket's owner goes, if the moment of its place has come.
    pub(super) fn go(&mut self, gcra: &Gcra, ticket: Ticket, now: Timestamp) -> Option<(Place, Left)> {
        self.now = self.now.max(now);
        let index = self.find(ticket)?;
        if gcra.moment(self.entries[index].place) > now {
            return None;
        }
        let gone = self.entries.remove(index)?;
        Some((gone.place, Left { freed: None, own: gone.waker, next: self.tell(index) }))
    }

    /// The ticket's owner gives up.
    pub(super) fn give_up(&mut self, gcra: &Gcra, ticket: Ticket) -> Left {
        let Some((index, gone)) = self.find(ticket).and_then(|at| Some((at, self.entries.remove(at)?)))
        else {
            return Left::default();
        };
        let freed = self.hand_down(gcra, index, gone.place);
        Left { freed, own: gone.waker, next: self.tell(index) }
    }

    /// Lets all from `index` on move up by one, and gives the place that is free at the end. `None`: it is over,
    /// with somebody behind it, and lost.
    fn hand_down(&mut self, gcra: &Gcra, index: usize, mut freed: Place) -> Option<Place> {
        for entry in self.entries.range_mut(index..) {
            if !gcra.may_move_up(entry.place, freed, self.now) {
                return None;
            }
            mem::swap(&mut entry.place, &mut freed);
            entry.news = News::Moved;
        }
        Some(freed)
    }

    /// Whom to wake, if the entry has moved unseen.
    fn tell(&mut self, index: usize) -> Option<Waker> {
        let entry = self.entries.get_mut(index).filter(|entry| entry.news == News::Moved)?;
        entry.waker.take()
    }

    fn find(&self, ticket: Ticket) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
    }
}
