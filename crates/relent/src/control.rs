//! The controls in force: what the core decides in pure functions, kept in atomics for live calls.
//!
//! No control reads a clock, sleeps or calls anybody with a lock held; each may be used by itself or shared by
//! several pipelines.

mod breaker;
pub mod budget;
pub mod concurrency;
pub mod rate;
mod window;

pub use breaker::{Breaker, Permit};
pub use budget::Budget;
pub use concurrency::Concurrency;
pub use rate::Rate;
