//! A client that leaves trying again to the policy.

use reqwest::{ClientBuilder, retry};

/// A builder of reqwest's with reqwest's own retries off. Everything else is as reqwest has it.
pub fn client_builder() -> ClientBuilder {
    ClientBuilder::new().without_own_retries()
}

/// Switches reqwest's own retries off on a builder of yours.
pub trait WithoutOwnRetries {
    /// The same builder, whose client never sends a request again that reqwest has a policy for. A policy that was
    /// set before is gone; one that is set afterwards is back.
    #[must_use]
    fn without_own_retries(self) -> Self;
}

impl WithoutOwnRetries for ClientBuilder {
    fn without_own_retries(self) -> Self {
        // Without any the client does not even copy the request for one that never comes.
        self.retry(retry::never().max_retries_per_request(0))
    }
}
