//! The same policy as a middleware of reqwest-middleware.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use http::Extensions;
use relent::{
    Attempt, Calls, Classifier, Clock, Operation, Outcome, Report, Rulebook, StopReason, Verdict, Work,
};
use relent_tower::{CallTerms, Drain, Wire, http::failure::failure};
use reqwest::{Body, Request, Response};
use reqwest_middleware::{Error, Middleware, Next, Result};

use crate::{
    HttpPipeline,
    classifier::{ReqwestClassifier, class},
    template::Template,
};

/// Under a stack of middlewares. What stands after it in the stack is called once for each attempt, what stands
/// before it once for the call; another middleware that retries, such as reqwest-retry's, has no place in the same
/// stack.
///
/// [`CallTerms`] in the request's extensions are heard: `.with_extension(CallTerms::new().keyed())`. A call that
/// ends without a response is [`Error::Middleware`], which holds a [`relent::Error`] of this crate's [`Error`]
/// with its report; one that ends on a response is that response, with a report in its extensions.
///
/// # Examples
///
/// ```no_run
/// use relent::{Pipeline, Policy};
/// use relent_reqwest::{HttpPipeline, client_builder};
/// use reqwest_middleware::ClientBuilder;
///
/// # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
/// let stock = HttpPipeline::new(Pipeline::new(Policy::live())?.named("stock"))?;
/// let client = ClientBuilder::new(client_builder().build()?).with(stock).build();
/// let response = client.get("http://stock.example/apples").send().await?;
/// # Ok(())
/// # }
/// ```
///
/// [`Error`]: reqwest_middleware::Error
#[cfg_attr(docsrs, doc(cfg(feature = "middleware")))]
#[async_trait::async_trait]
impl<C: Clock> Middleware for HttpPipeline<C> {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        self.doubt();
        let said = extensions.get::<CallTerms>().copied().unwrap_or_default();
        let (calls, route) = self.terms(Calls::through(self.pipeline().clone()), &mut request, said);
        let left = Arc::default();
        let exchange = Exchange {
            next,
            template: Template::new(Ok(request)),
            extensions: extensions.clone(),
            left: Arc::clone(&left),
            wire: Arc::clone(self.wire()),
            attempts: 0,
            leftover: None,
        };
        let result = calls.routed_by(route).run_operation(exchange).await;
        if let Some(last) = left.lock().unwrap_or_else(PoisonError::into_inner).take() {
            *extensions = last;
        }
        result.map_err(Error::middleware)
    }
}

/// A request and the rest of the stack, for as long as the call lasts.
struct Exchange<'n> {
    next: Next<'n>,
    template: Template,
    /// As the call found them: what one attempt leaves in them is not the next one's.
    extensions: Extensions,
    /// What the last attempt that ended has left in them.
    left: Arc<Mutex<Option<Extensions>>>,
    wire: Arc<Wire>,
    attempts: u32,
    leftover: Option<Drain<Body>>,
}

impl<'n> Operation for Exchange<'n> {
    type Value = Response;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response>> + Send + 'n>>;

    fn begin(&mut self, attempt: Attempt, _: impl FnOnce() -> Work) -> Self::Future {
        self.leftover = None;
        self.attempts = attempt.number;
        let Self { template, wire, .. } = self;
        let request = template.send(|mut request| {
            wire.stamp(request.headers_mut(), attempt);
            request
        });
        let (next, left) = (self.next.clone(), Arc::clone(&self.left));
        let mut extensions = self.extensions.clone();
        Box::pin(async move {
            let result = next.run(request?, &mut extensions).await;
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(extensions);
            result
        })
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

#[cfg_attr(docsrs, doc(cfg(feature = "middleware")))]
impl Classifier<Response, Error> for ReqwestClassifier {
    fn verdict(&self, outcome: Outcome<'_, Response, Error>, rules: Rulebook<'_>) -> Verdict {
        match outcome {
            Outcome::Ok(response) => self.response(response, rules),
            Outcome::Err(Error::Reqwest(error)) => self.failure(class(error), rules),
            Outcome::Err(Error::Middleware(error)) => self.failure(failure(error.as_ref()), rules),
            unreturned => rules.unreturned(unreturned).unwrap_or(Verdict::Permanent),
        }
    }
}
