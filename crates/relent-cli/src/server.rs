//! What `relent serve` runs: the HTTP API over a ledger, the delivery beside it, and their common end.
//!
//! From the outside in: `run` starts and drains the whole; `connection` bounds what a client may hold; `gate`
//! asks for the token; `api` answers; `intake` reads a submission; `watch` turns what the driver tells into
//! logs and metrics.

mod api;
mod app;
mod connection;
mod gate;
mod intake;
pub(crate) mod logs;
mod metrics;
mod patient;
mod problem;
mod run;
mod token;
mod watch;

pub(crate) use run::Server;
