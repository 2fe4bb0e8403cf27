//! The two limits of a place in the pipeline: how many may be in flight, then how many may begin in a time.
//!
//! The rate comes second, so that a place in its sequence is not used up by a wait for room, and is taken right
//! before what it is for.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use relent_core::{Gate, Gates, Invalid, Refusal, Timestamp};

use crate::{
    clock::{BlockingClock, Clock},
    control::{
        Concurrency, Rate,
        concurrency::{self, Acquire, OwnedPermit},
        rate::{self, Reservation},
    },
    run::before,
};

/// The limits that stand at one place.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) rate: Option<Rate>,
}

/// The leave to go on. Dropped, the place in flight comes free, and so does that in the rate's sequence unless
/// it was spent.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    place: Place<'a>,
    rate: Option<rate::Permit<'a>>,
}

/// A place in flight.
#[derive(Debug)]
enum Place<'a> {
    /// There is no limit.
    None,
    Own(concurrency::Permit<'a>),
    /// It belongs to work as well that may outlive the call.
    Shared(Arc<OwnedPermit>),
}

/// Why nobody was let through.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Halt {
    Refused(Refusal),
    /// The call's deadline left no room for an attempt.
    TooLate,
}

/// What a wait came to.
pub(crate) struct Queued<'a> {
    pub(crate) pass: Pass<'a>,
    /// The time after it.
    pub(crate) now: Timestamp,
    /// For room.
    pub(crate) in_flight: Option<Duration>,
    /// For the rate's moment.
    pub(crate) rate: Option<Duration>,
}

impl Limits {
    pub(crate) fn new(policy: &Gates) -> Result<Self, Invalid> {
        Ok(Self {
            concurrency: policy.concurrency.as_ref().map(Concurrency::new).transpose()?,
            rate: policy.rate.as_ref().map(Rate::new).transpose()?,
        })
    }

    /// Through, if that is possible at once.
    #[inline]
    pub(crate) fn try_pass(&self, now: Timestamp) -> Result<Pass<'_>, Refusal> {
        if self.concurrency.is_none() && self.rate.is_none() {
            return Ok(Pass::NONE);
        }
        let place = match &self.concurrency {
            Some(limit) => Place::Own(limit.try_acquire()?),
            None => Place::None,
        };
        let rate = self.rate.as_ref().map(|rate| rate.try_take(now)).transpose()?;
        Ok(Pass { place, rate })
    }

    /// Through, as soon as it is possible, before `cut`.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future leaves both queues.
    pub(crate) async fn pass<C: Clock>(
        &self,
        clock: &C,
        now: Timestamp,
        cut: Option<Timestamp>,
    ) -> Result<Queued<'_>, Halt> {
        let mut queued = Queued::begun(now);
        if let Some(limit) = &self.concurrency {
            match limit.try_acquire() {
                Ok(place) => queued.pass.place = Place::Own(place),
                Err(_) => {
                    let acquired = until(clock, cut, limit.acquire()).await;
                    queued.found_room(acquired, clock.now(), cut)?;
                }
            }
        }
        if let Some(rate) = &self.rate {
            let booked = book(rate, queued.now, cut)?;
            match booked.claim(queued.now) {
                Ok(permit) => queued.pass.rate = Some(permit),
                Err(booked) => {
                    let permit = booked.ready(clock).await;
                    queued.came_to_its_moment(permit, clock.now(), cut)?;
                }
            }
        }
        Ok(queued)
    }

    /// [`Limits::pass`], on this thread.
    pub(crate) fn pass_blocking<C: BlockingClock>(
        &self,
        clock: &C,
        now: Timestamp,
        cut: Option<Timestamp>,
    ) -> Result<Queued<'_>, Halt> {
        let mut queued = Queued::begun(now);
        if let Some(limit) = &self.concurrency {
            match limit.try_acquire() {
                Ok(place) => queued.pass.place = Place::Own(place),
                Err(_) => {
                    let acquired = clock.block_until(cut.unwrap_or(Timestamp::MAX), limit.acquire());
                    queued.found_room(acquired, clock.now(), cut)?;
                }
            }
        }
        if let Some(rate) = &self.rate {
            let mut claimed = book(rate, queued.now, cut)?.claim(queued.now);
            let waited = claimed.is_err();
            let permit = loop {
                match claimed {
                    Ok(permit) => break permit,
                    Err(booked) => {
                        clock.pause_until(booked.at());
                        claimed = booked.claim(clock.now());
                    }
                }
            };
            match waited {
                true => queued.came_to_its_moment(permit, clock.now(), cut)?,
                false => queued.pass.rate = Some(permit),
            }
        }
        Ok(queued)
    }
}

impl Pass<'_> {
    /// Through where nothing stands.
    pub(crate) const NONE: Self = Self { place: Place::None, rate: None };

    /// What it is for is being sent: it counts for the rate.
    #[inline]
    pub(crate) fn spend(&mut self) {
        if let Some(permit) = self.rate.take() {
            permit.spend();
        }
    }

    /// Its place in flight, if it has one, for work that is to keep it until it ends.
    pub(crate) fn share(&mut self) -> Option<Arc<OwnedPermit>> {
        let shared = match std::mem::replace(&mut self.place, Place::None) {
            Place::None => return None,
            Place::Own(permit) => Arc::new(permit.keep()),
            Place::Shared(permit) => permit,
        };
        self.place = Place::Shared(Arc::clone(&shared));
        Some(shared)
    }
}

impl<'a> Queued<'a> {
    const fn begun(now: Timestamp) -> Self {
        Self { pass: Pass::NONE, now, in_flight: None, rate: None }
    }

    fn found_room(
        &mut self,
        acquired: Option<<Acquire<'a> as Future>::Output>,
        now: Timestamp,
        cut: Option<Timestamp>,
    ) -> Result<(), Halt> {
        self.pass.place = Place::Own(acquired.ok_or(Halt::TooLate)?.map_err(Halt::Refused)?);
        self.in_flight = Some(now.since(self.now));
        self.is_in_time(now, cut)
    }

    fn came_to_its_moment(
        &mut self,
        permit: rate::Permit<'a>,
        now: Timestamp,
        cut: Option<Timestamp>,
    ) -> Result<(), Halt> {
        self.pass.rate = Some(permit);
        self.rate = Some(now.since(self.now));
        self.is_in_time(now, cut)
    }

    fn is_in_time(&mut self, now: Timestamp, cut: Option<Timestamp>) -> Result<(), Halt> {
        self.now = now;
        if cut.is_some_and(|cut| now >= cut) { Err(Halt::TooLate) } else { Ok(()) }
    }
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Books the rate's next place, unless its moment would leave no room before the cut.
fn book(rate: &Rate, now: Timestamp, cut: Option<Timestamp>) -> Result<Reservation<'_>, Refusal> {
    rate.reserve(now, cut.map_or(Timestamp::MAX, |cut| cut.before(Duration::from_nanos(1))))
}

/// The future's output, or `None` if `cut` comes first. Without one there is no timer.
async fn until<C: Clock, F: Future>(clock: &C, cut: Option<Timestamp>, future: F) -> Option<F::Output> {
    match cut {
        Some(cut) => before(clock, cut, pin!(future)).await,
        None => Some(future.await),
    }
}

/// The gate that a wait was at, for events.
impl Queued<'_> {
    pub(crate) fn waits(&self) -> impl Iterator<Item = (Gate, Duration)> {
        [(Gate::Concurrency, self.in_flight), (Gate::Rate, self.rate)]
            .into_iter()
            .filter_map(|(gate, waited)| Some((gate, waited?)))
    }
}
