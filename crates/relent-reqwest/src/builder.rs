//! A client that sends again only what the policy says.

use reqwest::{ClientBuilder, redirect, retry};

/// A builder of reqwest's with reqwest's own retries off, and its redirects. Everything else is as reqwest has it.
pub fn client_builder() -> ClientBuilder {
    ClientBuilder::new().without_own_retries()
}

/// Switches off what reqwest sends by itself, on a builder of yours.
pub trait WithoutOwnRetries {
    /// The same builder, whose client never sends a request again that reqwest has a policy for, and gives the
    /// caller a redirect as the response that it is. A policy for either that was set before is gone; one that is
    /// set afterwards is back.
    ///
    /// Where a client follows a redirect, the request was carried out once already when the second one is sent;
    /// and if that cannot be sent, reqwest's error says just what it would say had nothing been sent at all. So a
    /// pipeline takes a client's word that nothing was sent only if it was told
    /// ([`HttpPipeline::trusting_clients`](crate::HttpPipeline::trusting_clients)) that the client follows none.
    #[must_use]
    fn without_own_retries(self) -> Self;
}

impl WithoutOwnRetries for ClientBuilder {
    fn without_own_retries(self) -> Self {
        // Without any the client does not even copy the request for one that never comes.
        self.retry(retry::never().max_retries_per_request(0)).redirect(redirect::Policy::none())
    }
}
