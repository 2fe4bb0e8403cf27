//! The real client over real sockets: every way in which an exchange can end, produced for real.
//!
//! Nothing here depends on how long something takes. A limit that must not fire is far away ([`support::LONG`]);
//! one that must fire has a peer that stays silent for ever.

mod bodies;
mod connections;
mod dialled;
mod faults;
mod requests;
mod settings;
mod support;
mod tls;
mod waits;
