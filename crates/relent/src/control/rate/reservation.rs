//! A place that was booked ahead, and the wait for it.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    task::{Context, Poll},
};

use relent_core::{Refusal, Timestamp, rate::Place};

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

/// A place booked ahead, as plain data: [`Shared::give_up`] frees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Booking {
    /// Its moment had come when it was booked, at that time.
    AtOnce(Place, Timestamp),
    InLine(Ticket),
}

impl<'a> Reservation<'a> {
    pub(super) fn of(shared: &'a Shared, booking: Booking) -> Self {
        Self { shared, booking: Some(booking) }
    }

    /// Its moment, as things stand. It becomes earlier when somebody in front gives up, and never later.
    pub fn at(&self) -> Timestamp {
        self.booking.map_or(Timestamp::ZERO, |booking| self.shared.at(booking))
    }

    /// Becomes a permit, if its moment has come.
    ///
    /// # Errors
    ///
    /// The reservation as it is, if its moment is after `now`.
    pub fn claim(mut self, now: Timestamp) -> Result<Permit<'a>, Self> {
        match self.booking.and_then(|booking| self.shared.claim(booking, now)) {
            Some(place) => {
                self.booking = None;
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
        self.booking.map_or(Timestamp::ZERO, |booking| self.shared.watch(booking, cx))
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some(booking) = self.booking {
            self.shared.give_up(booking);
        }
    }
}

impl Shared {
    pub(super) fn book(&self, now: Timestamp, latest: Timestamp) -> Result<Booking, Refusal> {
        if let Ok(place) = self.take(now) {
            return Ok(Booking::AtOnce(place, now));
        }
        // Under the lock, so that the line stands in the order of its places.
        let mut line = self.line();
        let book = |word| self.gcra.reserve(word, now, latest).map(|booked| (booked.word, booked.place));
        let place = self.step(book)?;
        Ok(Booking::InLine(line.join(place, now)))
    }

    pub(super) fn at(&self, booking: Booking) -> Timestamp {
        match booking {
            Booking::AtOnce(_, now) => now,
            Booking::InLine(ticket) => {
                self.line().place(ticket).map_or(Timestamp::ZERO, |place| self.gcra.moment(place))
            }
        }
    }

    pub(super) fn claim(&self, booking: Booking, now: Timestamp) -> Option<Place> {
        match booking {
            Booking::AtOnce(place, _) => Some(place),
            Booking::InLine(ticket) => {
                let gone = self.line().go(&self.gcra, ticket, now);
                let (place, left) = gone?;
                self.finish(left);
                Some(place)
            }
        }
    }

    pub(super) fn watch(&self, booking: Booking, cx: &Context<'_>) -> Timestamp {
        let Booking::InLine(ticket) = booking else { return self.at(booking) };
        let watched = self.line().watch(ticket, cx.waker());
        watched.map_or(Timestamp::ZERO, |(place, _replaced)| self.gcra.moment(place))
    }

    pub(super) fn give_up(&self, booking: Booking) {
        match booking {
            Booking::AtOnce(place, _) => self.put_back(place),
            Booking::InLine(ticket) => {
                // Put back under the lock: nobody joins behind a place that is being freed.
                let mut line = self.line();
                let mut left = line.give_up(&self.gcra, ticket);
                if let Some(place) = left.freed.take() {
                    self.put_back(place);
                }
                drop(line);
                self.finish(left);
            }
        }
    }

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
