//! The server's half of `Idempotency-Key`: a tower layer that makes a POST safe to repeat.
//!
//! A client whose request timed out does not know whether it was carried out. With a key, sent again with every attempt,
//! it need not know: the handler runs **at most once**, and whoever asks again is given its answer, or is told that nobody
//! knows it. Never is the work done twice silently. After the IETF's draft
//! [draft-ietf-httpapi-idempotency-key-header-07](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/).
//!
//! ```
//! use http::header::AUTHORIZATION;
//! use relent::TokioClock;
//! use relent_idempotency::{ByHeader, IdempotencyLayer, Settings, UnsharedMemory};
//!
//! let store = UnsharedMemory::new(TokioClock); // for tests; `relent-idempotency-sqlite` and `-postgres` are for keeps
//! let layer = IdempotencyLayer::new(store, ByHeader(AUTHORIZATION), Settings::default())?;
//! // axum: Router::new().route("/orders", post(create_order)).route_layer(layer)
//! # Ok::<_, relent::Invalid>(())
//! ```
//!
//! `examples/orders.rs` is a whole server. A handler that writes into the store's own database can end its run in its own
//! transaction; then there is no unknown outcome at all: see [`WhenLost::SharedTransaction`] and the stores' `finish_in`.
//!
//! # What is answered
//!
//! | request | answer | problem type, `urn:relent:problem:idempotency:…` |
//! |---|---|---|
//! | the first with its key | the handler's | |
//! | the same again, later | the first answer, with `Idempotency-Replayed: true` | |
//! | the same again, while the first runs | 409, `Retry-After` (or it waits: [`Settings::wait`]) | `in-progress` |
//! | the same again, and nobody knows how the first ended | 409, never carried out again | `outcome-unknown` |
//! | the same again, and the answer was over the limit | 410, which names the first status | `answer-not-kept` |
//! | the same again, after the answer's life | 410, until the key is forgotten | `key-expired` |
//! | another method, path, query or body under the key, whatever the state | 422 | `key-reused` |
//! | no key where one is required | 400 | `key-missing` |
//! | no valid key, or two lines | 400 | `key-invalid` |
//! | nobody can tell whose it is | 403 | `caller-unknown` |
//! | a body over the limit, or one that broke off | 413, 400 | `request-too-large`, `request-unreadable` |
//! | the store is down, or full | 503, `Retry-After`; nothing is done | `store-unavailable`, `store-full` |
//!
//! Answers of every status are kept, 5xx included: a 500 says nothing about what was done. Where the handler knows that
//! nothing was, it says so with [`NoEffect`]. Trailers are the first caller's alone, and a change of protocol (101) is
//! not kept: a repeat is told so with 410. Keys belong to a caller ([`Callers`]) and to one request; they are one space
//! for all routes of a caller. Methods other than POST and PATCH pass untouched.
//!
//! # The life of a record
//!
//! ```text
//!            claim                        answer, or too large to keep        life is over    forgotten
//!  (none) ─────────► running ───────────────────────────────► answered, ──────► expired ──────► (none)
//!    ▲                │  │ ▲ renew                            not kept
//!    │ no effect      │  └─┘                                     ▲
//!    ├────────────────┤                                          │ a late answer, or an operator's
//!    │                │ the lease ran out, or the run broke      │
//!    │                └─────────────────────────────► unknown ───┤
//!    └────────────────────────────────────────────────────┴──────┘ an operator: it was not done
//! ```
//!
//! A claim is a lease under a name drawn by chance, the fencing token: only who knows it can renew the lease and end the
//! run. It is renewed while the handler runs, and never beyond the record's life, so nobody commits late. A lease that ran
//! out makes the outcome *unknown*, for as long as nobody resolves it: the run itself, if it still lives and ends; or an
//! operator ([`Store::unknown`], [`Store::resolve`]). Where the settings allow it ([`WhenLost`]) the next claim does the
//! work again, and the late run's end is refused.
//!
//! The decisions are pure functions of [`Row`], the same for every store.
//!
//! # For an operator
//!
//! What nobody knows is a list, not a log line: [`Store::unknown`] names the records, the longest known first. Look up
//! what became of each, then say so: [`Resolution::Answer`] is what repeats are answered from now on,
//! [`Resolution::RunAgain`] frees the key. The stores' front pages have the same as SQL.
//!
//! # Sizes and times
//!
//! All in [`Settings`]: a request of 1 MiB is read whole before the handler runs, an answer of 256 KiB is kept, headers
//! included. A larger or endless one is streamed to the first caller from there on; up to the limit it is held back until
//! it is whole, so do not guard routes that stream events. Answers live 24 h and are remembered 1 h more; a lease is 30 s.
//! Stores remove a few forgotten records with each claim; a limit to their number is theirs, and off by default, because
//! what makes room for new records can be carried out again.
//!
//! # When something fails
//!
//! | what fails | the first caller | the record |
//! |---|---|---|
//! | the handler panics | the panic goes on as without the layer | unknown |
//! | it fails without a response | its error | unknown |
//! | its answer breaks off halfway | the half, and the error | unknown |
//! | the process dies | nothing | running until its lease ends, then unknown |
//! | the store does not take the answer | the answer | running, while the layer asks for a minute; then unknown |
//! | the store does not answer a claim | 503, and nothing is done; unguarded if so chosen ([`WhenDown`]) | taken back if it was made |
//!
//! With [`WhenLost::RunAgain`] and [`WhenLost::SharedTransaction`] the unknown ones of these leave the key free instead.
//! [`IdempotencyLayer::observed_by`] tells all of it.
//!
//! # Cancellation safety
//!
//! A client that goes away while its request is read leaves nothing. From the claim on, the request is a task of its own:
//! if the client is gone before the handler begins, the key is free again; after that **the handler runs to its end**, its
//! answer is kept, and a repeat is given it. A handler is never half cancelled without its record knowing. So put time-outs
//! inside of the layer, and at shutdown, when the server has stopped, await [`IdempotencyLayer::idle`].
//!
//! The caller's deadline and attempt ([`relent::Ambient`]) and tracing's span go along into that task, so a deadline layer
//! belongs outside ([`IdempotencyLayer`] says what else does). Other task-locals do not: hand them on in the request's
//! extensions.
//!
//! # Features
//!
//! - `suite`: the contract of [`Store`] as tests, for those who write one.
//! - `tracing`: `Tracing`, which tells tracing what happens; and handlers run in the span of their request.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod body;
mod caller;
mod error;
mod event;
mod fingerprint;
mod key;
mod layer;
mod live;
mod memory;
mod refusal;
mod row;
mod run;
mod settings;
mod store;
#[cfg(feature = "suite")]
pub mod suite;

pub use answer::{Answer, KeptHeaders};
pub use body::{RequestBody, ResponseBody};
pub use caller::{ByHeader, Caller, Callers, Everyone};
pub use error::{Error, ErrorKind};
#[cfg(feature = "tracing")]
pub use event::Tracing;
pub use event::{Asked, Ended, Event, Observe};
pub use fingerprint::Fingerprint;
pub use key::{BadKey, IDEMPOTENCY_KEY, Key};
pub use layer::{Idempotency, IdempotencyLayer, ResponseFuture};
pub use memory::UnsharedMemory;
pub use refusal::Refusal;
pub use relent::NoEffect;
pub use row::{Row, Stage, Step, Write};
pub use run::Run;
pub use settings::{KeyIs, Settings, WhenDown, WhenLost};
pub use store::{
    Claim, ClaimId, Claimed, End, Finished, IfLost, Lease, Record, RecordId, Resolution, Resolved, State,
    Store,
};

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
