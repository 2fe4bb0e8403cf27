//! A deterministic simulator of retries against a failing dependency, on relent's own decision core.
//!
//! A retry policy that is good for one call may be a storm for everybody. This crate puts a policy, the same value that
//! a live pipeline runs by, in front of a dependency that gets into trouble, and tells what comes of it:
//!
//! ```
//! use relent_sim::{Recovery, policies, run, scenario::standard};
//!
//! let stall = standard("S4").expect("a standard scenario").scenario(&[])?;
//! let plain = run(&stall, &policies::named("plain-loop").expect("built in"), 1);
//! assert_eq!(plain.recovery, Some(Recovery::Never));
//! let default = run(&stall, &policies::named("default").expect("built in"), 1);
//! assert!(matches!(default.recovery, Some(Recovery::After(_))));
//! # Ok::<_, relent_sim::scenario::Unusable>(())
//! ```
//!
//! # The model
//!
//! - **A dependency** ([`scenario::Dependency`]): so many workers behind one queue, exponential lengths of work. A full
//!   queue rejects at once, and that may cost a worker's time. Work is done whether or not somebody still waits for it,
//!   unless the dependency knows its callers' deadlines. A cache, if there is one, fills only through misses whose
//!   callers still wait.
//! - **What goes wrong** ([`scenario::EffectKind`]), from one moment to another: it slows down or stands still, refuses,
//!   hangs, fails for a share of the requests, is overrun, loses its cache, or is in maintenance and says until when.
//! - **Callers** ([`scenario::CallersKind`]): a stream that does not care what becomes of its calls, callers who each
//!   wait for theirs, or a herd; in any number of processes, each with a budget, a breaker and limits of its own; and
//!   up to eight services on the way, each with the whole policy.
//! - **A driver without an opinion**: whether to try again and how long to wait is
//!   [`RetryPolicy::conclude`](relent_core::RetryPolicy::conclude); budgets, breakers, rates and limits are the states
//!   of `relent-core`, asked in the live driver's order.
//!
//! Time is an integer of nanoseconds, events of one moment come in the order in which they were put down, every purpose
//! draws from a stream of its own, and logarithms are `libm`'s: the same scenario, policy and seed give the same report
//! to the last bit, on any machine. Two policies under one seed meet the same arrivals.
//!
//! # What it assumes
//!
//! All clients are alike and choose nothing but what the policy says. Networks take no time, but for a moment until an
//! answer that needs no work. A caller who gives up an attempt does not tell the dependency. A request of an attempt
//! does not know that it is a retry. Service times do not depend on load but for the queue. There is one route, one
//! dependency, and nothing is hedged.
//!
//! # What it cannot tell
//!
//! Whether your dependency is like this one. The figures compare policies under one model and are good for that: which
//! of two recovers, and by how much one amplifies more than the other. They are no forecast of your seconds. Differences
//! of less than two seconds of recovery or one point of success are chance; look at several seeds before you believe
//! them.

#![forbid(unsafe_code)]

mod agenda;
mod chance;
pub mod gate;
mod measure;
pub mod paper;
pub mod policies;
pub mod report;
pub mod scenario;
mod server;
pub mod trials;
mod world;

use relent_core::{History, Policy, Route, Script, Timeline, Timestamp};

pub use measure::{Point, Sums};
pub use report::{Recovery, Report};
pub use scenario::Scenario;

/// Runs a scenario under a policy.
///
/// The policy is one that [`Policy::validate`] lets pass.
pub fn run(scenario: &Scenario, policy: &Policy, seed: u64) -> Report {
    run_with_progress(scenario, policy, seed, &mut |_| {})
}

/// The same; `progress` is told how far the simulated time has come, at every point of the series.
pub fn run_with_progress(
    scenario: &Scenario,
    policy: &Policy,
    seed: u64,
    progress: &mut dyn FnMut(Timestamp),
) -> Report {
    world::World::new(scenario, policy, seed).run(progress)
}

/// Puts one call through a script of outcomes, by the simulator's driver: through its agenda and its timers. It must give
/// what [`relent_core::timeline`] gives, and what the live and the durable driver live through; the tests of the
/// workspace hold all of them to the same. What calls share (budget, breaker, limits) has no part in it.
pub fn replay(policy: &Policy, history: History, route: Route<'_>, script: &Script) -> Timeline {
    world::replay(policy, history, route, script)
}
