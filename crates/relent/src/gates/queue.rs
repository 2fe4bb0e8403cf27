//! A wait at the limits of a place: for room, then for the rate's moment, and no longer than the deadline allows.
//!
//! It is plain data that whoever waits polls: so it fits into a future that has a name, and borrows nothing from
//! the limits while it waits.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use relent_core::{Gate, Refusal, Timestamp, rate};

use super::limits::{Limits, Pass, Place};
use crate::{
    clock::{BlockingClock, Clock, Timer},
    control::{Concurrency, Rate, concurrency, rate::Booking},
};

/// Why nobody was let through.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Halt {
    /// At that time.
    Refused(Refusal, Timestamp),
    /// The call's deadline left no room for an attempt.
    TooLate,
}

/// What a wait came to.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) pass: Pass,
    /// The time after it.
    pub(crate) now: Timestamp,
    /// For room.
    in_flight: Option<Duration>,
    /// For the rate's moment.
    rate: Option<Duration>,
}

/// A wait under way. [`Queue::give_up`] leaves both queues.
#[derive(Debug)]
pub(crate) struct Queue {
    /// What it has come to so far.
    come: Queued,
    /// Until when it may last.
    cut: Option<Timestamp>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Room(concurrency::Wait),
    Moment(Option<Booking>),
}

impl Queue {
    pub(crate) const fn new(now: Timestamp, cut: Option<Timestamp>) -> Self {
        Self { come: Queued::blank(now), cut, stage: Stage::Room(concurrency::Wait::NotAsked) }
    }

    /// Through, as soon as it is possible, before the cut. Whatever it comes to, nothing is left in a queue.
    pub(crate) fn poll<C: Clock>(
        &mut self,
        limits: &Limits,
        clock: &C,
        mut timer: Pin<&mut Timer<C::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Queued, Halt>> {
        if let (Stage::Room(_), Some(limit)) = (self.stage, &limits.concurrency) {
            let room = ready!(self.poll_room(limit, clock, timer.as_mut(), cx));
            timer.as_mut().stop();
            if let Err(halt) = room {
                return Poll::Ready(self.end(limits, Err(halt)));
            }
        }
        let Some(rate) = &limits.rate else { return Poll::Ready(self.end(limits, Ok(()))) };
        let come = ready!(self.poll_moment(rate, clock, timer.as_mut(), cx));
        timer.stop();
        Poll::Ready(self.end(limits, come))
    }

    /// [`Queue::poll`], on this thread.
    pub(crate) fn block<C: BlockingClock>(&mut self, limits: &Limits, clock: &C) -> Result<Queued, Halt> {
        let come = self.block_for_room(limits, clock).and_then(|()| self.block_for_moment(limits, clock));
        self.end(limits, come)
    }

    /// Gives up: both queues are left, and what was got already goes back.
    pub(crate) fn give_up(&mut self, limits: &Limits) {
        match (self.stage, &limits.concurrency, &limits.rate) {
            (Stage::Room(wait), Some(limit), _) => limit.give_up(wait),
            (Stage::Moment(Some(booking)), _, Some(rate)) => rate.give_up(booking),
            _ => {}
        }
        self.stage = Stage::Moment(None);
        self.come.pass.give_back(limits);
    }

    fn poll_room<C: Clock>(
        &mut self,
        limit: &Concurrency,
        clock: &C,
        timer: Pin<&mut Timer<C::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Halt>> {
        let Stage::Room(wait) = &mut self.stage else { return Poll::Ready(Ok(())) };
        let is_first = matches!(wait, concurrency::Wait::NotAsked);
        let Poll::Ready(entered) = limit.poll_enter(wait, cx) else {
            let Some(cut) = self.cut else { return Poll::Pending };
            return timer.poll_until(clock, cut, cx).map(|()| Err(Halt::TooLate));
        };
        if let Err(refusal) = entered {
            return Poll::Ready(Err(Halt::Refused(refusal, self.come.now)));
        }
        self.came_in();
        Poll::Ready(if is_first { Ok(()) } else { self.has_waited_for_room(clock.now()) })
    }

    fn poll_moment<C: Clock>(
        &mut self,
        rate: &Rate,
        clock: &C,
        mut timer: Pin<&mut Timer<C::Sleep>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Halt>> {
        loop {
            let asked = match self.stage {
                Stage::Moment(Some(booking)) => self.claim(rate, booking, clock.now()),
                _ => self.book(rate),
            };
            let at = match asked {
                Ok(Claim::Early(booking)) => rate.watch(booking, cx),
                Ok(Claim::Through) => return Poll::Ready(Ok(())),
                Err(halt) => return Poll::Ready(Err(halt)),
            };
            ready!(timer.as_mut().poll_until(clock, at, cx));
        }
    }

    fn block_for_room<C: BlockingClock>(&mut self, limits: &Limits, clock: &C) -> Result<(), Halt> {
        let Some(limit) = &limits.concurrency else { return Ok(()) };
        if limit.enter().is_ok() {
            self.came_in();
            return Ok(());
        }
        let acquired = clock.block_until(self.cut.unwrap_or(Timestamp::MAX), limit.acquire());
        acquired.ok_or(Halt::TooLate)?.map_err(|refusal| Halt::Refused(refusal, self.come.now))?.detach();
        self.came_in();
        self.has_waited_for_room(clock.now())
    }

    fn block_for_moment<C: BlockingClock>(&mut self, limits: &Limits, clock: &C) -> Result<(), Halt> {
        let Some(rate) = &limits.rate else { return Ok(()) };
        let mut asked = self.book(rate)?;
        while let Claim::Early(booking) = asked {
            clock.pause_until(rate.at(booking));
            asked = self.claim(rate, booking, clock.now())?;
        }
        Ok(())
    }

    fn came_in(&mut self) {
        self.come.pass.place = Place::Held;
        self.stage = Stage::Moment(None);
    }

    fn has_waited_for_room(&mut self, now: Timestamp) -> Result<(), Halt> {
        self.come.in_flight = Some(now.since(self.come.now));
        self.is_in_time(now)
    }

    /// Books the rate's next place, unless its moment would leave no room before the cut.
    fn book(&mut self, rate: &Rate) -> Result<Claim, Halt> {
        let now = self.come.now;
        let latest = self.cut.map_or(Timestamp::MAX, |cut| cut.before(Duration::from_nanos(1)));
        let booking = rate.book(now, latest).map_err(|refusal| Halt::Refused(refusal, now))?;
        self.stage = Stage::Moment(Some(booking));
        let Some(place) = rate.claim(booking, now) else { return Ok(Claim::Early(booking)) };
        self.got(place);
        Ok(Claim::Through)
    }

    /// Takes the place up, if its moment has come.
    fn claim(&mut self, rate: &Rate, booking: Booking, now: Timestamp) -> Result<Claim, Halt> {
        let Some(place) = rate.claim(booking, now) else { return Ok(Claim::Early(booking)) };
        self.got(place);
        self.come.rate = Some(now.since(self.come.now));
        self.is_in_time(now).map(|()| Claim::Through)
    }

    fn got(&mut self, place: rate::Place) {
        self.come.pass.rate = Some(place);
        self.stage = Stage::Moment(None);
    }

    fn is_in_time(&mut self, now: Timestamp) -> Result<(), Halt> {
        self.come.now = now;
        if self.cut.is_some_and(|cut| now >= cut) { Err(Halt::TooLate) } else { Ok(()) }
    }

    fn end(&mut self, limits: &Limits, come: Result<(), Halt>) -> Result<Queued, Halt> {
        match come {
            Ok(()) => Ok(mem::replace(&mut self.come, Queued::blank(Timestamp::ZERO))),
            Err(halt) => {
                self.give_up(limits);
                Err(halt)
            }
        }
    }
}

impl Queued {
    const fn blank(now: Timestamp) -> Self {
        Self { pass: Pass::NONE, now, in_flight: None, rate: None }
    }

    /// The gates that it waited at, for events.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (Gate, Duration)> + use<> {
        [(Gate::Concurrency, self.in_flight), (Gate::Rate, self.rate)]
            .into_iter()
            .filter_map(|(gate, waited)| Some((gate, waited?)))
    }
}

/// What came of asking for a place in the rate's sequence.
enum Claim {
    Through,
    /// Its moment is still to come.
    Early(Booking),
}
