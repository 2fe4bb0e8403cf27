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
#[derive(Debug)]
pub(crate) struct Pass {
    pub(super) place: Place,
    /// In the rate's sequence, unless it was spent.
    pub(super) rate: Option<rate::Place>,
}

/// A place in flight.
#[derive(Debug)]
pub(super) enum Place {
    /// There is no limit.
    None,
    Own,
    /// It belongs to work as well that may outlive the call.
    Shared(Arc<OwnedPermit>),
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
    pub(crate) fn try_pass(&self, now: Timestamp) -> Result<Pass, Refusal> {
        let mut pass = Pass::NONE;
        if let Some(limit) = &self.concurrency {
            limit.enter()?;
            pass.place = Place::Own;
        }
        if let Some(rate) = &self.rate {
            match rate.take(now) {
                Ok(place) => pass.rate = Some(place),
                Err(refusal) => {
                    pass.give_back(self);
                    return Err(refusal);
                }
            }
        }
        Ok(pass)
    }
}

impl Pass {
    /// Through where nothing stands.
    pub(crate) const NONE: Self = Self { place: Place::None, rate: None };

    /// What it is for is being sent: it counts for the rate.
    #[inline]
    pub(crate) fn spend(&mut self) {
        self.rate = None;
    }

    /// Its place in flight, if it has one, for work that is to keep it until it ends.
    pub(crate) fn share(&mut self, limits: &Limits) -> Option<Arc<OwnedPermit>> {
        let shared = match (mem::replace(&mut self.place, Place::None), &limits.concurrency) {
            (Place::Own, Some(limit)) => Arc::new(limit.keep()),
            (Place::Shared(permit), _) => permit,
            (Place::None | Place::Own, _) => return None,
        };
        self.place = Place::Shared(Arc::clone(&shared));
        Some(shared)
    }

    /// The place in flight comes free, and so does that in the rate's sequence unless it was spent.
    #[inline]
    pub(crate) fn give_back(&mut self, limits: &Limits) {
        if let (Some(place), Some(rate)) = (self.rate.take(), &limits.rate) {
            rate.put_back(place);
        }
        if let (Place::Own, Some(limit)) = (mem::replace(&mut self.place, Place::None), &limits.concurrency) {
            limit.leave();
        }
    }
}
