//! Sending what reqwest's own builder has built.

use relent::Clock;
use relent_tower::CallTerms;
use reqwest::RequestBuilder;

use crate::{HttpPipeline, Sending};

/// Sends a request through a pipeline, in place of [`RequestBuilder::send`].
pub trait SendThrough {
    /// Sends the request under the pipeline's policy. A request that could not be built is its error.
    ///
    /// # Errors
    ///
    /// [`Error`](crate::Error) holds reqwest's last error and says why it was the last.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future drops the attempt in flight, or ends the wait; nothing goes on and nothing is counted.
    fn send_through<C: Clock>(self, pipeline: &HttpPipeline<C>) -> Sending<C>;

    /// [`SendThrough::send_through`], with what the caller says about this request.
    ///
    /// # Errors
    ///
    /// As [`SendThrough::send_through`].
    ///
    /// # Cancellation safety
    ///
    /// As [`SendThrough::send_through`].
    fn send_on_terms<C: Clock>(self, pipeline: &HttpPipeline<C>, terms: CallTerms) -> Sending<C>;
}

impl SendThrough for RequestBuilder {
    fn send_through<C: Clock>(self, pipeline: &HttpPipeline<C>) -> Sending<C> {
        self.send_on_terms(pipeline, CallTerms::new())
    }

    fn send_on_terms<C: Clock>(self, pipeline: &HttpPipeline<C>, terms: CallTerms) -> Sending<C> {
        let (client, request) = self.build_split();
        pipeline.send(client, request, terms)
    }
}
