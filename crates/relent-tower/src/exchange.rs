//! What a call does at each attempt: the request once more, sent by a service that is ready for it.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use relent::{Attempt, Operation, Report, StopReason, Work};
use tower_service::Service;

use crate::{BoxError, Drain, Replay, Wire, fault::Fault, template::Template};

/// A request and the service that sends it, for as long as the call lasts.
pub(crate) struct Exchange<S, B, ResB> {
    /// The one that was polled before the call: the first attempt calls it, later ones call clones of it.
    service: S,
    readiness: Readiness,
    attempts: u32,
    template: Template<B>,
    wire: Arc<Wire>,
    leftover: Option<Drain<ResB>>,
}

/// How the service stands that is to send the next attempt.
pub(crate) enum Readiness {
    /// It says that it is ready.
    Ready,
    /// It says that it never will be.
    Failed(Fault),
    /// It has not been asked, or no longer counts: a clone of it will be.
    Unasked,
}

impl<S, B, ResB> Exchange<S, B, ResB> {
    pub(crate) fn new(service: S, readiness: Readiness, request: Request<B>, wire: Arc<Wire>) -> Self {
        Self { service, readiness, attempts: 0, template: Template::Whole(request), wire, leftover: None }
    }
}

impl<S, B, ResB> Operation for Exchange<S, B, ResB>
where
    S: Service<Request<B>, Response = Response<ResB>> + Clone,
    S::Error: Into<BoxError>,
    B: Replay,
    ResB: Body,
{
    type Value = Response<ResB>;
    type Error = Fault;
    type Future = Exchanging<S, B>;

    fn begin(&mut self, attempt: Attempt, _: impl FnOnce() -> Work) -> Self::Future {
        self.leftover = None;
        self.attempts = attempt.number;
        let Self { service, template, wire, .. } = self;
        // Made where it is used: requests are large, and every move is a copy.
        let mut next = || template.next(|headers| wire.stamp(headers, attempt));
        match mem::replace(&mut self.readiness, Readiness::Unasked) {
            Readiness::Ready => Exchanging::Sent { future: service.call(next()) },
            Readiness::Failed(fault) => Exchanging::Failed { fault: Some(fault) },
            Readiness::Unasked => Exchanging::Waiting {
                sender: Box::new(Sender { service: service.clone(), request: Some(next()) }),
            },
        }
    }

    fn can_repeat(&self) -> bool {
        self.template.promises_next()
    }

    fn discard(&mut self, response: Response<ResB>) {
        self.leftover = Drain::of(response.into_body());
    }

    fn poll_discarded(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(leftover) = &mut self.leftover {
            ready!(leftover.poll(cx));
            self.leftover = None;
        }
        Poll::Ready(())
    }

    fn finish(&mut self, response: &mut Response<ResB>, stop: StopReason, report: impl FnOnce() -> Report) {
        self.wire.report(response.extensions_mut(), self.attempts, stop, report);
    }
}

pin_project! {
    /// One attempt: the service gets ready, and the very same one is called.
    #[project = ExchangingStep]
    pub(crate) enum Exchanging<S: Service<Request<B>>, B> {
        Waiting { sender: Box<Sender<S, B>> },
        Sent { #[pin] future: S::Future },
        Failed { fault: Option<Fault> },
    }
}

/// A service that is not ready yet, and what it is to send: in a box, since only another attempt has one and every call
/// would carry its room along.
pub(crate) struct Sender<S, B> {
    service: S,
    request: Option<Request<B>>,
}

impl<S, B, ResB> Future for Exchanging<S, B>
where
    S: Service<Request<B>, Response = Response<ResB>>,
    S::Error: Into<BoxError>,
{
    type Output = Result<Response<ResB>, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let future = match self.as_mut().project() {
                ExchangingStep::Sent { future } => return future.poll(cx).map_err(Fault::of),
                ExchangingStep::Failed { fault } => match fault.take() {
                    Some(fault) => return Poll::Ready(Err(fault)),
                    None => unreachable!("an attempt fails once"),
                },
                ExchangingStep::Waiting { sender } => {
                    let Sender { service, request } = &mut **sender;
                    if let Err(error) = ready!(service.poll_ready(cx)) {
                        return Poll::Ready(Err(Fault::of(error)));
                    }
                    match request.take() {
                        Some(request) => service.call(request),
                        None => unreachable!("a request is sent once"),
                    }
                }
            };
            self.set(Self::Sent { future });
        }
    }
}
