//! Retries that know when to stop.
//!
//! A [`Policy`] is what you write down, in Rust or in TOML; a [`Pipeline`] is that policy in force for one
//! dependency. It calls again what failed with "not now", after a wait drawn with full jitter, inside the
//! caller's deadline and never beyond it, and does not repeat what is not known to be safe to repeat.
//!
//! ```
//! use std::io;
//!
//! use relent::{Attempt, Pipeline, Policy};
//!
//! /// Stands for a request: refused at first, answered when it is asked again.
//! async fn fetch_stock(item: &str, attempt: Attempt) -> io::Result<usize> {
//!     match attempt.number {
//!         1 => Err(io::ErrorKind::ConnectionRefused.into()),
//!         _ => Ok(item.len()),
//!     }
//! }
//!
//! # #[cfg(feature = "tokio")]
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let inventory = Pipeline::new(Policy::live())?.named("inventory");
//!
//!     let stock = inventory.safe().run(|attempt| fetch_stock("apples", attempt)).await?;
//!
//!     println!("{stock} apples");
//!     Ok(())
//! }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! To run it, paste it over `src/main.rs` of a new crate with
//!
//! ```toml
//! [dependencies]
//! relent = "0.1"
//! tokio = { version = "1", features = ["macros", "rt"] }
//! ```
//!
//! By default ([`Policy::live`]) that is at most five attempts of two seconds each within five seconds, as long
//! as the retry budget over all calls lends them, and
//! `safe()` says that reading a stock twice does no harm; without it, an attempt that may have been processed
//! is the last. Which errors say "not now" is the error type's own word, [`Classify`]; an error type that says
//! nothing does not compile.
//!
//! Four [guides] say how to [choose a policy](guide::choosing_a_policy), to
//! [classify failures](guide::classifying_failures), to [set and pass on deadlines](guide::deadlines), and to
//! [test your own code](guide::testing_your_own_code). Runnable [examples] show a loop of one's own, blocking calls, a
//! shared budget, a breaker, and a clock that is not tokio's.
//!
//! [guides]: guide
//! [examples]: https://github.com/relent-rs/relent/tree/main/crates/relent/examples
//!
//! # What it answers
//!
//! - A value, also one that the classifier calls a failure (a last 503): the caller sees what was answered.
//! - [`Error`]: the operation's own last error, the [`StopReason`], and a [`Report`].
//!
//! A gate that refuses (a limit, the retry budget, an open breaker, the switch) ends the call at once with the
//! dependency's last real failure; the reason names the gate, and [`Error::refusal`] says when to come back.
//!
//! Every wait has its derivation ([`Wait`]), and every decision is one pure function, [`RetryPolicy::decide`],
//! the same that delivers messages and previews policies.
//!
//! # In operation
//!
//! - [`Policy::in_words`] is what a policy comes to, for a log at the start; [`Pipeline::warnings`] what is doubtful
//!   about it.
//! - [`Pipeline::observed_by`] tells an [`Observe`] everything that happens, an [`Event`] at a time.
//! - [`retries_off`] stops all retries of the process now, [`Pipeline::retries`] those of one pipeline; first
//!   attempts go on.
//! - [`Pipeline::breaker`], [`Pipeline::call_limit`] and their like give the controls in force, to look at and to
//!   move by hand.
//! - A retry within a retry is seen ([`Pipeline::named`]), and work that outlives its attempt is counted
//!   ([`Pipeline::overruns`]).
//!
//! # Testing what uses it
//!
//! Give the pipeline a [`ManualClock`]; the test waits for nothing:
//!
//! ```
//! use std::{io, time::Duration};
//! use relent::{ManualClock, Pipeline, Policy, StopReason};
//!
//! let clock = ManualClock::new();
//! // The budget over all calls would soon stop a first call that fails.
//! let policy = Policy { budget: None, ..Policy::live() };
//! let pipeline = Pipeline::on(clock.clone(), policy)?;
//! let called = clock.block_on(pipeline.run(|_| async {
//!     Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused))
//! }));
//! let error = called.unwrap_err();
//! assert_eq!(error.stop(), StopReason::AttemptsExhausted);
//! assert_eq!(error.to_string(), "gave up after 5 attempts: attempts_exhausted");
//! assert!(error.report().took <= Duration::from_secs(5));
//! # Ok::<_, relent::Invalid>(())
//! ```
//!
//! # Features
//!
//! - `tokio` (default): [`TokioClock`] and [`UnixClock`]. Without it, bring a [`Clock`] of your own.
//! - `serde`: policies from TOML, read with the crate `toml` (or any other of serde's formats).
//! - `tracing`: `Tracing`, which tells tracing what happens to calls.
//! - `opentelemetry`: `OpenTelemetry`, which measures it.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod ambient;
mod blocking;
mod call;
mod calls;
mod classify;
mod clock;
pub mod control;
mod error;
mod event;
mod gates;
pub mod guide;
mod nesting;
mod no_effect;
mod operation;
mod overrun;
mod pipeline;
mod reach;
mod report;
mod run;
mod switch;
mod sync;

pub use relent_core;
pub use relent_core::*;

pub use ambient::{Ambient, InAmbient};
pub use call::{Attempt, Call, InAttempt};
pub use calls::{Calls, Routed};
pub use classify::{ByError, Classifier, Classify, Observing, Rulebook, Sighting, With, io_error_class};
pub use clock::{BlockingClock, Clock, ManualClock, ManualSleep, TokioClock};
#[cfg(feature = "tokio")]
pub use clock::{TokioSleep, UnixClock};
pub use error::{Error, Stopped};
#[cfg(feature = "opentelemetry")]
pub use event::OpenTelemetry;
#[cfg(feature = "tracing")]
pub use event::Tracing;
pub use event::{Event, Lending, Observe, Scene};
pub use no_effect::NoEffect;
pub use operation::{Operation, Working};
pub use overrun::{Overruns, Work};
pub use pipeline::Pipeline;
pub use reach::Reach;
pub use report::{Report, Stage};
pub use run::{Run, RunWithReport};
pub use switch::{Retries, retries, retries_off, retries_on};

/// The README's example, compiled.
#[cfg(all(doctest, feature = "tokio"))]
#[doc = include_str!("../README.md")]
struct Readme;
