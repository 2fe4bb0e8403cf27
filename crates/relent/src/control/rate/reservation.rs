//! A place that was booked ahead, and the wait for it.

use std::{
    fmt,
    future::{Future, poll_fn},
    mem,
    pin::pin,
    task::{Context, Poll},
};

use relent_core::{Timestamp, rate::Place};

use super::{
    Permit, Shared,
    line::{Left, Ticket},
};
use crate::clock::Clock;

/// A place booked with [`Rate::reserve`](super::Rate::reserve). Wait for its moment with
/// [`Reservation::ready`]; or by hand: sleep until [`Reservation::at`], then [`Reservation::claim`].
///
/// Dropping it frees the place; those behind move up.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use relent::{Clock, ManualClock, RatePolicy, Timestamp, control::Rate};
///
/// let clock = ManualClock::new();
/// let rate = Rate::new(&RatePolicy { permits: 1, per: Duration::from_secs(2), burst: 1 })?;
/// rate.try_take(clock.now()).expect("it was quiet before").spend();
///
/// let second = rate.reserve(clock.now(), Timestamp::from_secs(10)).expect("it is there at 2 s");
/// let third = rate.reserve(clock.now(), Timestamp::from_secs(10)).expect("it is there at 4 s");
/// assert_eq!(third.at(), Timestamp::from_secs(4));
/// drop(second);
/// assert_eq!(third.at(), Timestamp::from_secs(2), "it moves up");
///
/// clock.block_on(third.ready(&clock)).spend();
/// assert_eq!(clock.now(), Timestamp::from_secs(2));
/// # Ok::<_, relent::Invalid>(())
/// ```
#[must_use = "dropping it frees the place"]
pub struct Reservation<'a> {
    shared: &'a Shared,
    /// `None`: it has become a permit.
    booking: Option<Booking>,
}

#[derive(Clone, Copy, Debug)]
enum Booking {
    /// Its moment had come when it was booked, at that time.
    AtOnce(Place, Timestamp),
    InLine(Ticket),
}

impl<'a> Reservation<'a> {
    pub(super) fn at_once(permit: Permit<'a>, now: Timestamp) -> Self {
        let Permit { shared, place } = permit;
        mem::forget(permit); // the place goes over to the reservation
        Self { shared, booking: Some(Booking::AtOnce(place, now)) }
    }

    pub(super) fn in_line(shared: &'a Shared, ticket: Ticket) -> Self {
        Self { shared, booking: Some(Booking::InLine(ticket)) }
    }

    /// Its moment, as things stand. It becomes earlier when somebody in front gives up, and never later.
    pub fn at(&self) -> Timestamp {
        match self.booking {
            Some(Booking::AtOnce(_, now)) => now,
            Some(Booking::InLine(ticket)) => self
                .shared
                .line()
                .place(ticket)
                .map_or(Timestamp::ZERO, |place| self.shared.gcra.moment(place)),
            None => Timestamp::ZERO,
        }
    }

    /// Becomes a permit, if its moment has come.
    ///
    /// # Errors
    ///
    /// The reservation as it is, if its moment is after `now`.
    pub fn claim(mut self, now: Timestamp) -> Result<Permit<'a>, Self> {
        match self.booking {
            Some(Booking::AtOnce(place, _)) => {
                self.booking = None;
                Ok(Permit { shared: self.shared, place })
            }
            Some(Booking::InLine(ticket)) => {
                let gone = self.shared.line().go(&self.shared.gcra, ticket, now);
                let Some((place, left)) = gone else { return Err(self) };
                self.booking = None;
                self.shared.finish(left);
                Ok(Permit { shared: self.shared, place })
            }
            None => Err(self),
        }
    }

    /// Waits for its moment, and becomes a permit. It goes earlier if those in front give up.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future frees the place; those behind move up.
    pub async fn ready<C: Clock>(self, clock: &C) -> Permit<'a> {
        let mut waiting = self;
        loop {
            waiting = match waiting.claim(clock.now()) {
                Ok(permit) => return permit,
                Err(early) => early,
            };
            waiting.pass_time(clock).await;
        }
    }

    /// Sleeps until the moment as it stands, or until it has moved.
    async fn pass_time<C: Clock>(&self, clock: &C) {
        let at = self.at();
        let mut timer = pin!(clock.sleep_until(at));
        poll_fn(|cx| match self.watch(cx) == at {
            true => timer.as_mut().poll(cx),
            false => Poll::Ready(()),
        })
        .await;
    }

    fn watch(&self, cx: &Context<'_>) -> Timestamp {
        let Some(Booking::InLine(ticket)) = self.booking else { return self.at() };
        let watched = self.shared.line().watch(ticket, cx.waker());
        watched.map_or(Timestamp::ZERO, |(place, _replaced)| self.shared.gcra.moment(place))
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        match self.booking {
            Some(Booking::AtOnce(place, _)) => self.shared.put_back(place),
            Some(Booking::InLine(ticket)) => {
                // Put back under the lock: nobody joins behind a place that is being freed.
                let mut line = self.shared.line();
                let mut left = line.give_up(&self.shared.gcra, ticket);
                if let Some(place) = left.freed.take() {
                    self.shared.put_back(place);
                }
                drop(line);
                self.shared.finish(left);
            }
            None => {}
        }
    }
}

impl Shared {
    /// What is left to do when the lock is gone.
    fn finish(&self, left: Left) {
        drop(left.own);
        if let Some(next) = left.next {
            next.wake();
        }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("booking", &self.booking).finish_non_exhaustive()
    }
}
