//! The terms on which calls are made: said by the caller, at the place of the call.

use std::time::Duration;

use relent_core::{Idempotency, Route, Timestamp};

use crate::{call::Call, clock::Clock, reach::Reach};

/// The terms of calls to be made through a pipeline. Where it borrows the pipeline it is [`Copy`]: make one for
/// each call. With a clone of the pipeline, from [`Calls::through`], its calls depend on nobody.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Calls<P, R = ()> {
    pub(crate) via: P,
    pub(crate) said: Said,
    pub(crate) route: R,
}

/// What the caller said of its calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    pub(crate) idempotency: Option<Idempotency>,
    pub(crate) upstream: Option<Timestamp>,
    pub(crate) seed: Option<u64>,
}

/// What is called, for rules of the policy that hold on some routes only. `()`: nobody says.
///
/// Implement it for what a call holds of its request anyway, where that must not be copied for the call.
pub trait Routed {
    /// The method and the path.
    fn route(&self) -> Route<'_>;
}

impl Routed for () {
    #[inline]
    fn route(&self) -> Route<'_> {
        Route::default()
    }
}

impl Routed for Route<'_> {
    #[inline]
    fn route(&self) -> Route<'_> {
        *self
    }
}

impl<P: Reach> Calls<P> {
    /// Calls on the policy's own terms, through a reference to the pipeline or a clone of it.
    ///
    /// # Examples
    ///
    /// ```
    /// use relent::{Calls, ManualClock, Pipeline, Policy};
    ///
    /// fn answer(users: &Pipeline<ManualClock>) -> impl Future<Output = u64> + Send + use<> {
    ///     let call = Calls::through(users.clone()).safe().run(|_| async { Ok::<_, std::io::Error>(42) });
    ///     async { call.await.unwrap_or_default() }
    /// }
    ///
    /// let clock = ManualClock::new();
    /// let users = Pipeline::on(clock.clone(), Policy::live())?;
    /// let call = answer(&users);
    /// drop(users);
    /// assert_eq!(clock.block_on(call), 42);
    /// # Ok::<_, relent::Invalid>(())
    /// ```
    #[inline]
    pub const fn through(via: P) -> Self {
        Self { via, said: Said { idempotency: None, upstream: None, seed: None }, route: () }
    }
}

impl<P: Reach, R> Calls<P, R> {
    /// Repeating them changes nothing.
    pub fn safe(self) -> Self {
        self.with_idempotency(Idempotency::Safe)
    }

    /// Their receiver honours a key that every attempt carries.
    pub fn keyed(self) -> Self {
        self.with_idempotency(Idempotency::Keyed)
    }

    /// Repeating them may do their work twice: an attempt that may have been processed is the last.
    pub fn unsafe_to_repeat(self) -> Self {
        self.with_idempotency(Idempotency::Unsafe)
    }

    /// Whether they may be repeated, in place of what the policy says; a route's `repeat = "never"` stands.
    pub fn with_idempotency(self, idempotency: Idempotency) -> Self {
        Self { said: Said { idempotency: Some(idempotency), ..self.said }, ..self }
    }

    /// They are of no use to the caller after `at`, on the pipeline's clock: nothing is begun that could not
    /// end before, and what is running then is given up. Of two deadlines the earlier counts.
    pub fn with_deadline(self, at: Timestamp) -> Self {
        let upstream = self.said.upstream.map_or(at, |known| known.min(at));
        Self { said: Said { upstream: Some(upstream), ..self.said }, ..self }
    }

    /// [`Calls::with_deadline`], from now.
    pub fn with_deadline_in(self, length: Duration) -> Self {
        let now = self.via.pipeline().clock().now();
        self.with_deadline(now.after(length))
    }

    /// What is called, for rules of the policy that hold on some routes only.
    pub fn on_route<'r>(self, method: &'r str, path: &'r str) -> Calls<P, Route<'r>> {
        self.routed_by(Route { method, path })
    }

    /// [`Calls::on_route`], by something that knows it.
    pub fn routed_by<R2: Routed>(self, route: R2) -> Calls<P, R2> {
        let Self { via, said, route: _ } = self;
        Calls { via, said, route }
    }

    /// Draws from this seed instead of a fresh one: the waits of a test repeat. Calls that share a seed draw
    /// the same waits, so leave it to tests.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { said: Said { seed: Some(seed), ..self.said }, ..self }
    }

    /// A call for a loop of one's own. It begins now: its total time-out counts from here.
    #[inline]
    pub fn call(self) -> Call<P, R>
    where
        R: Routed,
    {
        Call::begin(self)
    }
}
