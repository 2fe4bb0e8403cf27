//! HTTP into the words of the decision core.

pub mod classify;
pub mod failure;
pub mod hints;
