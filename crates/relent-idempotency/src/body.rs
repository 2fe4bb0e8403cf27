//! Bodies on their way through the layer: untouched, or read and given on.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use pin_project_lite::pin_project;

use crate::Refusal;

pin_project! {
    /// The body of a request as the handler gets it: the client's own where the request is not guarded, otherwise the
    /// whole of it, read beforehand.
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        kind: RequestKind<B>,
    }
}

pin_project! {
    #[project = RequestProjection]
    #[derive(Debug)]
    enum RequestKind<B> {
        Passed { #[pin] body: B },
        Read { bytes: Option<Bytes> },
    }
}

impl<B> RequestBody<B> {
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: RequestKind::Passed { body } }
    }

    pub(crate) fn read(bytes: Bytes) -> Self {
        Self { kind: RequestKind::Read { bytes: Some(bytes).filter(|bytes| !bytes.is_empty()) } }
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            RequestProjection::Passed { body } => body.poll_frame(cx),
            RequestProjection::Read { bytes } => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            RequestKind::Passed { body } => body.is_end_stream(),
            RequestKind::Read { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            RequestKind::Passed { body } => body.size_hint(),
            RequestKind::Read { bytes } => exactly(bytes.as_ref().map_or(0, Bytes::len)),
        }
    }
}

pin_project! {
    /// The body of a response: the handler's own where the request is not guarded, what was read of it, or what was
    /// stored.
    pub struct ResponseBody<B>
    where
        B: Body,
    {
        #[pin]
        kind: ResponseKind<B>,
    }
}

pin_project! {
    #[project = ResponseProjection]
    enum ResponseKind<B>
    where
        B: Body,
    {
        Passed { #[pin] body: B },
        Read { bytes: Option<Bytes>, trailers: Option<HeaderMap> },
        Begun { chunks: VecDeque<Bytes>, rest: Pin<Box<B>> },
        Broken { chunks: VecDeque<Bytes>, error: Option<B::Error> },
    }
}

impl<B: Body> ResponseBody<B> {
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: ResponseKind::Passed { body } }
    }

    pub(crate) fn read(bytes: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self { kind: ResponseKind::Read { bytes: Some(bytes).filter(|bytes| !bytes.is_empty()), trailers } }
    }

    /// What was read so far, and the rest as it comes.
    pub(crate) fn begun(chunks: VecDeque<Bytes>, rest: Pin<Box<B>>) -> Self {
        Self { kind: ResponseKind::Begun { chunks, rest } }
    }

    /// What was read, and the error that ended it.
    pub(crate) fn broken(chunks: VecDeque<Bytes>, error: B::Error) -> Self {
        Self { kind: ResponseKind::Broken { chunks, error: Some(error) } }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            ResponseProjection::Passed { body } => body.poll_frame(cx),
            ResponseProjection::Read { bytes, trailers } => {
                let frame = bytes.take().map(Frame::data).or_else(|| trailers.take().map(Frame::trailers));
                Poll::Ready(frame.map(Ok))
            }
            ResponseProjection::Begun { chunks, rest } => match chunks.pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None => rest.as_mut().poll_frame(cx),
            },
            ResponseProjection::Broken { chunks, error } => match chunks.pop_front() {
                Some(chunk) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                None => Poll::Ready(error.take().map(Err)),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            ResponseKind::Passed { body } => body.is_end_stream(),
            ResponseKind::Read { bytes, trailers } => bytes.is_none() && trailers.is_none(),
            ResponseKind::Begun { chunks, rest } => chunks.is_empty() && rest.is_end_stream(),
            ResponseKind::Broken { chunks, error } => chunks.is_empty() && error.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            ResponseKind::Passed { body } => body.size_hint(),
            ResponseKind::Read { bytes, trailers: None } => exactly(bytes.as_ref().map_or(0, Bytes::len)),
            // HTTP/1.1 has trailers only where the length is not said beforehand.
            ResponseKind::Read { bytes, trailers: Some(_) } => {
                let mut hint = SizeHint::new();
                hint.set_lower(bytes.as_ref().map_or(0, Bytes::len) as u64);
                hint
            }
            ResponseKind::Broken { .. } => SizeHint::new(),
            ResponseKind::Begun { chunks, rest } => {
                let begun = chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
                let of_rest = rest.size_hint();
                let mut hint = SizeHint::new();
                hint.set_lower(begun.saturating_add(of_rest.lower()));
                if let Some(upper) = of_rest.upper() {
                    hint.set_upper(begun.saturating_add(upper));
                }
                hint
            }
        }
    }
}

impl<B: Body> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

fn exactly(length: usize) -> SizeHint {
    SizeHint::with_exact(length as u64)
}

/// Reads the whole body of a request, or says why not.
///
/// # Cancellation safety
///
/// Dropped, it leaves nothing behind: nothing was claimed yet.
pub(crate) async fn read_request<B: Body<Data = Bytes>>(body: B, limit: usize) -> Result<Bytes, Refusal> {
    let too_large = Refusal::RequestTooLarge(limit);
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large);
    }
    let mut body = std::pin::pin!(body);
    let mut chunks = Chunks::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::RequestUnreadable)?;
        if let Ok(data) = frame.into_data() {
            chunks.push(data);
            if chunks.length > limit {
                return Err(too_large);
            }
        }
    }
    Ok(chunks.join())
}

/// How a response's body was read.
pub(crate) enum Collected<B: Body> {
    /// To its end.
    Whole(Bytes, Option<HeaderMap>),
    /// Up to the limit; the last chunk may be beyond it.
    TooLarge(VecDeque<Bytes>, Pin<Box<B>>),
    /// Up to where it broke.
    Broken(VecDeque<Bytes>, B::Error),
}

/// Reads a response's body up to the limit.
pub(crate) async fn collect<B: Body<Data = Bytes>>(body: B, limit: usize) -> Collected<B> {
    let mut body = Box::pin(body);
    let mut chunks = Chunks::default();
    if body.size_hint().lower() > limit as u64 {
        return Collected::TooLarge(chunks.queue, body);
    }
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Collected::Broken(chunks.queue, error),
        };
        match frame.into_data() {
            Ok(data) => chunks.push(data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if chunks.length > limit {
            return Collected::TooLarge(chunks.queue, body);
        }
    }
    Collected::Whole(chunks.join(), trailers)
}

/// What was read so far.
#[derive(Default)]
struct Chunks {
    queue: VecDeque<Bytes>,
    length: usize,
}

impl Chunks {
    fn push(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.length += data.len();
            self.queue.push_back(data);
        }
    }

    /// One piece; a body of one chunk is not copied.
    fn join(mut self) -> Bytes {
        if self.queue.len() < 2 {
            return self.queue.pop_front().unwrap_or_default();
        }
        let mut all = Vec::with_capacity(self.length);
        self.queue.iter().for_each(|chunk| all.extend_from_slice(chunk));
        all.into()
    }
}
