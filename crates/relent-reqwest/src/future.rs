//! The future of a call, which has a name and is in no box.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use pin_project_lite::pin_project;
use relent::{Calls, Clock, Pipeline, Report, Run, TokioClock};
use reqwest::Response;

use crate::{Error, classifier::ReqwestClassifier, exchange::Exchange, pipeline::RequestRoute};

pin_project! {
    /// A request on its way: the last response, with a report where there is something to tell; or the last error.
    ///
    /// # Cancellation safety
    ///
    /// Dropping it drops the attempt in flight, or ends the wait; nothing goes on and nothing is counted.
    #[must_use = "a request is sent only while this is polled"]
    pub struct Sending<C: Clock = TokioClock> {
        #[pin]
        run: Run<Pipeline<C, ReqwestClassifier>, RequestRoute, Exchange>,
    }
}

impl<C: Clock> Sending<C> {
    pub(crate) fn new(
        calls: Calls<Pipeline<C, ReqwestClassifier>, RequestRoute>,
        exchange: Exchange,
    ) -> Self {
        Self { run: calls.run_operation(exchange) }
    }
}

impl<C: Clock> Future for Sending<C> {
    type Output = Result<Response, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().run.poll(cx)
    }
}

impl<C: Clock> fmt::Debug for Sending<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}

/// What became of the call that ended with this response. `None`: its first attempt succeeded.
pub fn report(response: &Response) -> Option<&Report> {
    response.extensions().get()
}
