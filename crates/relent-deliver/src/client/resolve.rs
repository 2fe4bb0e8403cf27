//! From a host's name to its addresses.

use std::{future::Future, io, net::IpAddr, pin::Pin};

/// A resolver's answer, when it comes.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host. Not asked about what is an address already.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of this host, the best first. An empty answer is a name without addresses.
    ///
    /// # Errors
    ///
    /// The name does not exist, or nobody could be asked. An error with the code of an operating system's error
    /// (no more file descriptors, say) is taken for our own fault, not the host's.
    fn resolve(&self, host: String) -> Resolving;
}

/// The operating system's resolver.
///
/// # Cancellation safety
///
/// A question that was asked goes on in a thread until the system answers it; nobody waits for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: String) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
