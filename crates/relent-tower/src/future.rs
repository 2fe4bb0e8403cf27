//! The future of a call, which has a name and is in no box.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use relent::{Calls, Clock, Pipeline, Report, Run, TokioClock};
use tower_service::Service;

use crate::{BoxError, Error, HttpClassifier, Replay, exchange::Exchange, service::RequestRoute};

type RunOf<S, B, ResB, C> = Run<Pipeline<C, HttpClassifier>, RequestRoute, Exchange<S, B, ResB>>;

pin_project! {
    /// The future of [`PipelineService`](crate::PipelineService): the last response, with a report where there is
    /// something to tell; or the last error.
    ///
    /// # Cancellation safety
    ///
    /// Dropping it drops the attempt in flight, or ends the wait; nothing goes on and nothing is counted.
    #[must_use = "a request is sent only while this is polled"]
    pub struct PipelineFuture<S, B, ResB, C = TokioClock>
    where
        S: Service<Request<B>, Response = Response<ResB>>,
        S: Clone,
        S::Error: Into<BoxError>,
        B: Replay,
        ResB: Body,
        C: Clock,
    {
        // `None` once it has ended: whoever still reads a body of this call need not wait for another attempt.
        #[pin]
        run: Option<RunOf<S, B, ResB, C>>,
    }
}

impl<S, B, ResB, C> PipelineFuture<S, B, ResB, C>
where
    S: Service<Request<B>, Response = Response<ResB>> + Clone,
    S::Error: Into<BoxError>,
    B: Replay,
    ResB: Body,
    C: Clock,
{
    pub(crate) fn new(
        calls: Calls<Pipeline<C, HttpClassifier>, RequestRoute>,
        exchange: Exchange<S, B, ResB>,
    ) -> Self {
        Self { run: Some(calls.run_operation(exchange)) }
    }
}

impl<S, B, ResB, C> Future for PipelineFuture<S, B, ResB, C>
where
    S: Service<Request<B>, Response = Response<ResB>> + Clone,
    S::Error: Into<BoxError>,
    B: Replay,
    ResB: Body,
    C: Clock,
{
    type Output = Result<Response<ResB>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(run) = this.run.as_mut().as_pin_mut() else {
            panic!("polled after it has given its output")
        };
        let polled = run.poll(cx);
        if polled.is_ready() {
            this.run.set(None);
        }
        polled
    }
}

impl<S, B, ResB, C> fmt::Debug for PipelineFuture<S, B, ResB, C>
where
    S: Service<Request<B>, Response = Response<ResB>> + Clone,
    S::Error: Into<BoxError>,
    B: Replay,
    ResB: Body,
    C: Clock,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineFuture").finish_non_exhaustive()
    }
}

/// What became of the call that ended with this response. `None`: its first attempt succeeded.
///
/// # Examples
///
/// ```
/// # fn look(response: &http::Response<()>) {
/// if let Some(report) = relent_tower::report(response) {
///     println!("{} attempts, then {}", report.attempts, report.stop.name());
/// }
/// # }
/// ```
pub fn report<B>(response: &Response<B>) -> Option<&Report> {
    response.extensions().get()
}
