//! The work of an attempt that a loop of one's own makes, so that calls which begin in it see whose attempt they are
//! part of.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;

use super::Call;
use crate::{nesting::Frame, reach::Reach};

impl<P: Reach, R> Call<P, R> {
    /// The work of the present attempt, for a loop of one's own: calls that begin while it is polled know that they
    /// are nested, as under [`Calls::run`](crate::Calls::run). See [`Pipeline::named`](crate::Pipeline::named).
    ///
    /// # Examples
    ///
    /// ```
    /// use relent::{Decision, ManualClock, Pipeline, Policy};
    ///
    /// # async fn fetch() -> std::io::Result<u32> { Ok(42) }
    /// let clock = ManualClock::new();
    /// let users = Pipeline::on(clock.clone(), Policy::live())?.named("users");
    /// let mut call = users.safe().call();
    /// let attempt = call.admit()?;
    /// let result = clock.block_on(call.scope(fetch()));
    /// assert!(matches!(call.conclude(&result), Decision::Stop(_)));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn scope<F: Future>(&self, work: F) -> InAttempt<F> {
        InAttempt { work, frame: self.course.frame() }
    }

    /// [`Call::scope`], for work that blocks: done when this returns.
    pub fn around<T>(&self, work: impl FnOnce() -> T) -> T {
        self.course.frame().around(work)
    }
}

pin_project! {
    /// Work of an attempt: what [`Call::scope`] makes.
    ///
    /// # Cancellation safety
    ///
    /// As the work's.
    #[must_use = "work is done only while it is polled"]
    pub struct InAttempt<F> {
        #[pin]
        work: F,
        frame: Frame,
    }
}

impl<F: Future> Future for InAttempt<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.frame.around(|| this.work.poll(cx))
    }
}

impl<F> fmt::Debug for InAttempt<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InAttempt").field("frame", &self.frame).finish_non_exhaustive()
    }
}
