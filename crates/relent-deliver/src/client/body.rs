//! An answer as it comes in: the head at once, the body up to a limit.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use relent::{ErrorClass, Observed};
use relent_ledger::Truncated;
use relent_tower::http::classify;

use crate::transport::Answered;

/// The head of a response, and as much of its body as has come and is kept.
pub(super) struct Answer {
    status: StatusCode,
    server_wait: Option<Duration>,
    kept: BytesMut,
    max_kept: usize,
    /// Whether more is known to have come, or may have.
    truncated: Truncated,
}

impl Answer {
    /// An answer whose body has not been read. At most `max_kept` bytes of it will be kept.
    pub(super) fn new(status: StatusCode, server_wait: Option<Duration>, max_kept: usize) -> Self {
        Self { status, server_wait, kept: BytesMut::new(), max_kept, truncated: Truncated::Yes }
    }

    /// Reads the body to its end, so that its connection can serve again, but no more than about `limit`
    /// bytes: beyond them it is dropped, and its connection closed with it.
    ///
    /// # Errors
    ///
    /// The body broke off, or is not one.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, it closes the connection; what was kept by then stays.
    pub(super) async fn read(&mut self, mut body: Incoming, limit: usize) -> Result<(), hyper::Error> {
        let mut read = 0_usize;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            read = read.saturating_add(data.len());
            let room = self.max_kept - self.kept.len();
            self.kept.extend_from_slice(&data[..data.len().min(room)]);
            if read > limit {
                return Ok(());
            }
        }
        if read == self.kept.len() {
            self.truncated = Truncated::No;
        }
        Ok(())
    }

    /// The observation of an answer that came to its end, or to ours.
    pub(super) fn whole(self) -> Answered {
        let observed = classify::answered(self.status);
        self.observed(observed, String::new())
    }

    /// The observation of an answer whose body did not come to its end.
    pub(super) fn broke_off(self, class: ErrorClass, detail: String) -> Answered {
        let success = self.status.is_success();
        let observed = if success { Observed::Error(class) } else { classify::answered(self.status) };
        let detail = format!("after the head of a {}: {detail}", self.status.as_u16());
        self.observed(observed, detail)
    }

    fn observed(self, observed: Observed, detail: String) -> Answered {
        let Self { server_wait, kept, truncated, .. } = self;
        // A copy of the right size: the buffer that grew may hold much more than is kept.
        Answered { observed, server_wait, detail, response: Bytes::copy_from_slice(&kept), truncated }
    }
}
