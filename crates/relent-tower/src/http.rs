//! HTTP into the words of the decision core.

pub mod classify;
pub mod deadline;
pub mod failure;
pub mod hints;
pub mod idempotency;
