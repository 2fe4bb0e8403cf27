//! Safe retries for reqwest, with the client that you have already.
//!
//! ```no_run
//! use relent::{Pipeline, Policy};
//! use relent_reqwest::{HttpPipeline, SendThrough, client_builder};
//!
//! # async fn fetch() -> Result<(), Box<dyn std::error::Error>> {
//! let client = client_builder().build()?; // reqwest's own builder, its own retries and redirects off
//! let stock = HttpPipeline::new(Pipeline::new(Policy::live())?.named("stock"))?.trusting_clients();
//!
//! let response = client.get("http://stock.example/apples").send_through(&stock).await?;
//! println!("{} {}", response.status(), response.text().await?);
//! # Ok(())
//! # }
//! ```
//!
//! What is repeated, how long is waited, and what the caller gets is as [`relent_tower`] says: by the method and the
//! idempotency key, by the policy's table and routes, above the server's hints, within the deadline and the budget.
//! When retries end on a response, the caller gets that response, and [`report`] tells why. A body that is a stream
//! is sent once: reqwest cannot make it again.
//!
//! What a caller says of one request is said on the way:
//!
//! ```no_run
//! # use relent::{Pipeline, Policy};
//! # use relent_reqwest::{HttpPipeline, SendThrough, client_builder};
//! # async fn pay(client: reqwest::Client, payments: HttpPipeline) -> Result<(), Box<dyn std::error::Error>> {
//! use relent_tower::CallTerms;
//!
//! let paid = client
//!     .post("http://bank.example/payments")
//!     .body("{\"amount\": 10}")
//!     .send_on_terms(&payments, CallTerms::new().keyed()) // one key for the call, on every attempt
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # reqwest's own retries
//!
//! A client of reqwest's sends again by itself what HTTP/2 or HTTP/3 refused unprocessed, up to twice and at once; if
//! it was given a [`reqwest::retry`] policy, also other things; and, beneath that, what a closing connection gave
//! back. It can be told not to only while it is built: by [`client_builder`], or by
//! [`without_own_retries`](WithoutOwnRetries::without_own_retries) on a builder of yours. (The last of the three
//! cannot be switched off; it never repeats what was sent.) Of a client that is built already nobody can tell, so
//! the first request through an [`HttpPipeline`] that was not told tells the pipeline's observer:
//! [`Event::MayRetryBeneath`](relent::Event::MayRetryBeneath). [`HttpPipeline::trusting_clients`] says that you know.
//!
//! # Redirects
//!
//! A `POST` that is answered with a redirect has been carried out. If the client follows it and the second request
//! cannot be sent, reqwest's error is that of a request which never was, to the first URL; repeated on its word, the
//! command would be carried out twice. So a client of [`client_builder`] follows none: a redirect is the response that
//! the caller gets, and goes on from. And of a client that may follow some, which is any that the pipeline was not
//! told to trust, no error proves that nothing was sent: a command is then repeated under a key only. Do not trust a
//! client to which you gave a [`reqwest::redirect`] policy, except for requests that can be repeated anyway.
//!
//! # Time-outs
//!
//! The policy's attempt time-out ends an attempt that has no response head yet; a time-out of reqwest's own that is
//! shorter counts as well, and its `connect_timeout` is worth setting: what did not connect was not sent. Reading the
//! body is the caller's, and reqwest's `read_timeout` and `timeout` bound it.
//!
//! # Features
//!
//! - `http2`: HTTP/2, and its word that a request was refused before it was processed.
//! - `middleware`: [`HttpPipeline`] as a middleware of reqwest-middleware.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod builder;
mod classifier;
mod exchange;
mod future;
#[cfg(feature = "middleware")]
mod middleware;
mod pipeline;
mod send;
mod template;

pub use builder::{WithoutOwnRetries, client_builder};
pub use classifier::ReqwestClassifier;
pub use future::{Sending, report};
pub use pipeline::HttpPipeline;
pub use send::SendThrough;

/// How a call fails: reqwest's last error where there is one, and why it was the last.
///
/// A response is never an error, whatever its status: when retries end on a 503, the caller gets that response.
pub type Error = relent::Error<reqwest::Error>;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
