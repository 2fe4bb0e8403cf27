//! The decision core of relent.
//!
//! A retry is a decision: given what has happened to a call and the time, try again after a wait, or stop for
//! a reason. Everywhere else that decision hides in a loop that sleeps, so it can be neither stored nor
//! printed nor simulated. Here it is a function and nothing else:
//!
//! ```
//! use core::time::Duration;
//! use relent_core::{Cause, Decision, Policy, Sent, Timestamp, Verdict};
//!
//! let policy = Policy::live();
//! let mut history = policy.begin(42, Timestamp::ZERO, None, None);
//! let failed = Verdict::Failure { cause: Cause::Error, sent: Sent::No, server_wait: None };
//! match policy.retry.conclude(&mut history, failed, Timestamp::from_millis(30)) {
//!     Decision::Retry(wait) => assert!(wait.length <= Duration::from_millis(200)),
//!     Decision::Stop(reason) => unreachable!("stopped: {}", reason.name()),
//! }
//! ```
//!
//! No clock (`now` is an argument), no generator (`History::seed` is the call's whole supply of chance), no
//! lock, no I/O, no `async`; nothing allocates outside configuration. Drivers own time; none has an opinion.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod backoff;
pub mod breaker;
pub mod budget;
mod chance;
mod classify;
pub mod concurrency;
mod deadline;
mod decision;
mod exhausted;
mod history;
mod jitter;
mod policy;
mod preset;
pub mod rate;
mod retry;
mod script;
mod settlement;
mod text;
mod time;
mod timeline;
mod verdict;
pub mod window;

pub use backoff::Backoff;
pub use breaker::{BreakerPolicy, BreakerState, SlowCalls};
pub use budget::BudgetPolicy;
pub use chance::SplitMix64;
pub use classify::{Answer, Classification, ErrorClass, Observed, Route, RouteRule, Rules, Table, Terms};
pub use concurrency::ConcurrencyPolicy;
pub use deadline::Deadlines;
pub use decision::{Decision, Gate, Refusal, StopReason, Wait, WaitOrigin};
pub use exhausted::OnExhausted;
pub use history::{History, Idempotency, Nesting, Unreadable};
pub use jitter::Jitter;
#[cfg(feature = "serde")]
pub use policy::PolicyText;
pub use policy::{Attempts, Doubt, Gates, Hints, Invalid, Pace, Policy, Severity, Warning};
pub use preset::Preset;
pub use rate::RatePolicy;
pub use retry::{Over, RetryPolicy, ServerWait, ServerWaitMode};
pub use script::{Script, ScriptedOutcome, parse_script};
pub use settlement::Settlement;
pub use text::{Brief, DurationText, format_duration, parse_duration};
pub use time::Timestamp;
pub use timeline::{Step, Timeline, timeline};
pub use verdict::{Cause, Neutral, Outcome, Sent, Verdict};
pub use window::Window;
