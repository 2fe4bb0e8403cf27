//! Safe retries for HTTP as a tower layer, kept apart from `relent` so that the versions of `http` and `tower`
//! bind nobody who does not use them.
//!
//! # A client
//!
//! [`PipelineLayer`] puts any service of HTTP requests under a pipeline's policy: hyper-util's client, a stack of
//! tower's, a service of your own. Its future has a name and is in no box.
//!
//! ```
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::{client::legacy::{Client, connect::HttpConnector}, rt::TokioExecutor};
//! use relent::{Pipeline, Policy};
//! use relent_tower::PipelineLayer;
//! use tower::{Service, ServiceExt, layer::Layer};
//!
//! # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
//! let http: Client<HttpConnector, Full<Bytes>> =
//!     Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
//! let stock = PipelineLayer::new(Pipeline::new(Policy::live())?.named("stock"))?.trusting_clients();
//!
//! let request = Request::get("http://stock.example/apples").body(Full::default())?;
//! let response = stock.layer(http).ready().await?.call(request).await?;
//! # Ok(())
//! # }
//! ```
//!
//! What a request may have done decides whether it is sent again:
//!
//! | the attempt | GET, HEAD, OPTIONS, TRACE, PUT, DELETE | POST, PATCH | with an idempotency key |
//! |---|---|---|---|
//! | was not sent: refused or no connection, closed unused | again | again | again |
//! | was refused before it was processed (`REFUSED_STREAM`, `GOAWAY`) | again | again | again |
//! | may have been processed: a reset, a time-out | again | no: [`Ambiguous`] | again, same key |
//! | was answered "not now": 408, 429, 502, 503, 504 | again | no: a status proves nothing | again, same key |
//! | was answered anything else | no | no | no |
//!
//! "Again" is after a wait with jitter, above what the server asks for ([`http::hints`]), within the deadline and
//! the retry budget, and not more often than the policy says. The table of statuses is the policy's; its routes
//! can say otherwise (a 404 right after a write, a 409 while the first attempt runs, a `POST` that only searches,
//! a `GET` too dear to repeat), and so can the caller of one request, by [`CallTerms`].
//!
//! ```
//! use relent::{Answer, Policy, RouteRule, Rules};
//!
//! let not_now = |method: &str, path, status| RouteRule {
//!     method: Some(method.into()),
//!     rules: Rules { statuses: vec![(status, status, Answer::NotNow)], ..Rules::default() },
//!     ..RouteRule::on(path)
//! };
//! let mut policy = Policy::live();
//! policy.classify.routes = vec![
//!     // The token has expired, and the service beneath the layer fetches another for the next attempt.
//!     not_now("GET", "/account/*", 401),
//!     // Written a moment ago, and perhaps not seen by every replica yet.
//!     not_now("GET", "/orders/*", 404),
//!     // The first attempt under this key is still at work.
//!     not_now("POST", "/payments", 409),
//! ];
//! policy.validate()?;
//! # Ok::<_, relent::Invalid>(())
//! ```
//!
//! When retries end on a response, the caller gets that response; [`report`] tells why they ended and how many
//! attempts there were. An [`Error`] has the client's last error, and the same report.
//!
//! Bodies are sent whole or not at all: see [`Replay`] and [`ReplayBody`]. A response that another attempt follows
//! is read to its end, up to 64 KiB, while the call waits, so that its connection can serve again; a longer one is
//! dropped. Nothing is repeated once a response was given to the caller. How long its body may then take is
//! [`BodyTimeoutLayer`]'s to say.
//!
//! # What retries beneath
//!
//! Two layers that each make three attempts make nine. A layer that follows redirects, such as tower-http's
//! `FollowRedirect`, belongs *above* this one, never beneath it. A `POST` that is answered with a redirect has been
//! carried out; where a layer beneath follows it and the second request finds nobody, all that this layer sees is
//! that nothing was sent, and it repeats what was done. Above, the redirect is a response, and what follows it is a
//! call of its own.
//!
//! hyper-util's client sends again by itself what a closing
//! connection gave back unwritten, for ever if need be; it never repeats what was sent, but it does it without
//! regard to any policy, so say `retry_canceled_requests(false)` when you build it, as above. Whether a client that is
//! built already does so cannot be known, nor what it has sent again; so the first request that goes to one tells
//! the pipeline's observer, [`Event::MayRetryBeneath`](relent::Event::MayRetryBeneath), unless
//! [`PipelineLayer::trusting_clients`] says that you know. Of other retries in a stack, keep one.
//!
//! # A server
//!
//! [`DeadlineLayer`] reads how long its caller waits and which attempt this is, refuses what is too late with a
//! 504, and bounds every pipeline that is called to work out the answer. Where callers are not all your own give it a
//! floor, lest a hurried one open a breaker for the others. The other half of a safe command,
//! `Idempotency-Key` on the server's side, is the crate `relent-idempotency`.
//!
//! # Features
//!
//! - `hyper` (default), `h2`: tell the errors of hyper, of hyper-util's client and of HTTP/2 apart. Without them only
//!   I/O errors are understood, and what cannot be understood is not repeated, a `GET` included.
//!
//! [`Ambiguous`]: relent::StopReason::Ambiguous

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod beneath;
mod body;
mod classifier;
mod drain;
mod exchange;
mod fault;
mod future;
mod headers;
pub mod http;
mod layer;
mod patience;
mod replay;
mod server;
mod service;
mod template;
mod terms;
mod wire;

pub use body::{BodyError, BodyTimeoutFuture, BodyTimeoutLayer, BodyTimeoutService, BodyTimeouts, TimedBody};
pub use classifier::HttpClassifier;
pub use drain::Drain;
pub use fault::{Error, Fault};
pub use future::{PipelineFuture, report};
pub use headers::HeaderCopy;
pub use layer::PipelineLayer;
pub use patience::refuse_hours;
pub use replay::{Replay, ReplayBody, ReplayError};
pub use server::{DeadlineFuture, DeadlineLayer, DeadlineService, Incoming};
pub use service::PipelineService;
pub use terms::CallTerms;
pub use wire::Wire;

/// Any error: what tower's own layers make of theirs.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The README's example, compiled.
#[cfg(all(doctest, feature = "hyper"))]
#[doc = include_str!("../README.md")]
struct Readme;
