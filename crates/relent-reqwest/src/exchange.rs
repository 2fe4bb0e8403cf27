//! What a call does at each attempt: the request once more, through the client.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use relent::{Attempt, Operation, Report, StopReason, Work};
use relent_tower::{Drain, Wire};
use reqwest::{Body, Client, Request, Response};
use tower_service::Service;

use crate::template::Template;

/// A request and the client that sends it, for as long as the call lasts.
pub(crate) struct Exchange {
    client: Client,
    attempts: u32,
    template: Template,
    wire: Arc<Wire>,
    leftover: Option<Drain<Body>>,
}

impl Exchange {
    pub(crate) fn new(client: Client, request: reqwest::Result<Request>, wire: Arc<Wire>) -> Self {
        Self { client, attempts: 0, template: Template::new(request), wire, leftover: None }
    }

    /// The request, if it could be built.
    pub(crate) fn request_mut(&mut self) -> Option<&mut Request> {
        self.template.whole_mut()
    }
}

impl Operation for Exchange {
    type Value = Response;
    type Error = reqwest::Error;
    type Future = Exchanging;

    fn begin(&mut self, attempt: Attempt, _: impl FnOnce() -> Work) -> Exchanging {
        self.leftover = None;
        self.attempts = attempt.number;
        let Self { client, template, wire, .. } = self;
        let sent = template.send(|mut request| {
            wire.stamp(request.headers_mut(), attempt);
            client.call(request)
        });
        match sent {
            Ok(pending) => Exchanging::Sent { pending },
            Err(error) => Exchanging::Refused { error: Some(error) },
        }
    }

    fn can_repeat(&self) -> bool {
        self.template.has_next()
    }

    fn discard(&mut self, response: Response) {
        self.leftover = Drain::of(http::Response::from(response).into_body());
    }

    fn poll_discarded(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(leftover) = &mut self.leftover {
            ready!(leftover.poll(cx));
            self.leftover = None;
        }
        Poll::Ready(())
    }

    fn finish(&mut self, response: &mut Response, stop: StopReason, report: impl FnOnce() -> Report) {
        self.wire.report(response.extensions_mut(), self.attempts, stop, report);
    }
}

pin_project! {
    /// One attempt.
    #[project = ExchangingStep]
    pub(crate) enum Exchanging {
        Sent { #[pin] pending: <Client as Service<Request>>::Future },
        Refused { error: Option<reqwest::Error> },
    }
}

impl Future for Exchanging {
    type Output = reqwest::Result<Response>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            ExchangingStep::Sent { pending } => pending.poll(cx),
            ExchangingStep::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => unreachable!("no attempt follows one that could not be repeated"),
            },
        }
    }
}
