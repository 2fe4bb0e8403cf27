//! What the work that called the layer knew, taken along to the task that its handler runs in.

use std::future::Future;

use relent::{Ambient, Clock};
#[cfg(feature = "tracing")]
use tracing::{Instrument, Span};

/// The caller's deadline and attempt, and tracing's span. They are the handler's alone: what the store is asked to
/// record is not bounded by how long the caller waits.
pub(super) struct Surroundings<C> {
    ambient: Option<Ambient<C>>,
    #[cfg(feature = "tracing")]
    span: Span,
}

impl<C: Clock> Surroundings<C> {
    /// Those of the work which this thread is doing.
    pub(super) fn here(clock: C) -> Self {
        Self {
            ambient: Ambient::here(clock),
            #[cfg(feature = "tracing")]
            span: Span::current(),
        }
    }

    /// The handler's work, as it would be without a task of its own.
    pub(super) async fn around<F: Future>(self, handler: F) -> F::Output {
        #[cfg(feature = "tracing")]
        let handler = handler.instrument(self.span);
        match self.ambient {
            Some(ambient) => ambient.scope(handler).await,
            None => handler.await,
        }
    }
}
