//! The two limits of a place in the pipeline: how many may be in flight, then how many may begin in a time.
//!
//! The rate comes second, so that a place in its sequence is not used up by a wait for room, and is taken right
//! before what it is for.

use std::{mem, sync::Arc};

use relent_core::{Gates, Invalid, Refusal, Timestamp, rate};

use crate::control::{Concurrency, Rate, concurrency::OwnedPermit};

/// The limits that stand at one place.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) rate: Option<Rate>,
}

/// The leave to go on, as plain data: given back by [`Pass::give_back`] to the limits that gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass {
    pub(super) place: Place,
    /// In the rate's sequence, unless it was spent.
    pub(super) rate: Option<rate::Place>,
}

/// A place in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// There is no limit, or the place belongs to work that may outlive the call.
    None,
    Held,
}

impl Limits {
    pub(crate) fn new(policy: &Gates) -> Result<Self, Invalid> {
        Ok(Self {
            concurrency: policy.concurrency.as_ref().map(Concurrency::new).transpose()?,
            rate: policy.rate.as_ref().map(Rate::new).transpose()?,
        })
    }

    /// Whether there is none.
    pub(crate) const fn is_absent(&self) -> bool {
        self.concurrency.is_none() && self.rate.is_none()
    }

    /// Through, if that is possible at once.
    pub(crate) fn try_pass(&self, now: Timestamp) -> Result<Pass, Refusal> {
        let mut pass = Pass::NONE;
        if let Some(limit) = &self.concurrency {
            limit.enter()?;
            pass.place = Place::Held;
        }
        match &self.rate {
            None => Ok(pass),
            Some(rate) => self.with_rate(pass, rate, now),
        }
    }

    #[inline(never)]
    fn with_rate(&self, mut pass: Pass, rate: &Rate, now: Timestamp) -> Result<Pass, Refusal> {
        match rate.take(now) {
            Ok(place) => Ok(Pass { rate: Some(place), ..pass }),
            Err(refusal) => {
                pass.give_back(self);
                Err(refusal)
            }
        }
    }
}

impl Pass {
    /// Through where nothing stands.
    pub(crate) const NONE: Self = Self { place: Place::None, rate: None };

    /// That of a place which was taken in the limit, if there is one.
    pub(crate) const fn of(limit: Option<&Concurrency>) -> Self {
        let place = if limit.is_some() { Place::Held } else { Place::None };
        Self { place, rate: None }
    }

    /// What it is for is being sent: it counts for the rate.
    #[inline]
    pub(crate) fn spend(&mut self) {
        self.rate = None;
    }

    /// Its place in flight, if it has one, for work that is to keep it until it ends.
    pub(crate) fn keep(&mut self, limits: &Limits) -> Option<Arc<OwnedPermit>> {
        match (mem::replace(&mut self.place, Place::None), &limits.concurrency) {
            (Place::Held, Some(limit)) => Some(Arc::new(limit.keep())),
            _ => None,
        }
    }

    /// The place in flight comes free, and so does that in the rate's sequence unless it was spent.
    pub(crate) fn give_back(&mut self, limits: &Limits) {
        if self.rate.is_some() {
            self.give_back_rate(limits);
        }
        if let (Place::Held, Some(limit)) = (mem::replace(&mut self.place, Place::None), &limits.concurrency)
        {
            limit.leave();
        }
    }

    #[inline(never)]
    fn give_back_rate(&mut self, limits: &Limits) {
        if let (Some(place), Some(rate)) = (self.rate.take(), &limits.rate) {
            rate.put_back(place);
        }
    }
}
