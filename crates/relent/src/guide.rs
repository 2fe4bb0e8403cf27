//! How to choose, classify, bound and test: four short guides, each compiled.
//!
//! - [Choosing a policy](choosing_a_policy): from the caller's deadline to the numbers; budgets, breakers, limits.
//! - [Classifying failures](classifying_failures): what is worth another attempt, and what may be repeated at all.
//! - [Deadlines](deadlines): the four of them, and passing them on.
//! - [Testing your own code](testing_your_own_code): retries under a clock that moves when it is told to.
//!
//! # If you come from elsewhere
//!
//! | there | here |
//! |---|---|
//! | Polly `MaxRetryAttempts = 3`, Failsafe `withMaxRetries(3)` | `max_attempts: Some(4)`: the first is counted, as resilience4j does |
//! | Polly `UseJitter`, resilience4j `ofExponentialRandomBackoff` | on by default ([`Jitter::Full`](crate::Jitter)); Polly's own is `Jitter::PollyV2` |
//! | an outer and an inner timeout strategy | `total_timeout` and `attempt_timeout`, two fields that cannot change places |
//! | a builder, an annotation or a `ServiceBuilder` that sets the order | one order, [`Pipeline`](crate::Pipeline#ordering): the breaker counts attempts, retries ask a budget |
//! | Polly `ShouldHandle`, `retryOnResult`, tower's `retry::Policy` | [`Classify`](crate::Classify), or a [classifier](crate::Pipeline::classify_with), and the policy's table |
//! | resilience4j `ignoreExceptions` | [`Verdict::Permanent`](crate::Verdict): the dependency answered, and the breaker counts no failure |
//! | `BrokenCircuitException`, `CallNotPermittedException` | [`Error::refusal`](crate::Error::refusal), with the moment to come back |
//! | `DisableForUnsafeHttpMethods()` | the default; say [`safe`](crate::Pipeline::safe) or [`keyed`](crate::Pipeline::keyed) where repeating does no harm |
//! | tower's `retry::budget` | on by default; tower's is [`RatioPolicy`](crate::budget::RatioPolicy) |
//! | `TimeProvider`, `tokio::time::pause` | [`ManualClock`](crate::ManualClock) |
//! | a fallback, a cache | `.or_else(…)` on the result, and a cache that you choose |

#[doc = include_str!("guide/choosing_a_policy.md")]
pub mod choosing_a_policy {}

#[doc = include_str!("guide/classifying_failures.md")]
pub mod classifying_failures {}

#[doc = include_str!("guide/deadlines.md")]
pub mod deadlines {}

#[doc = include_str!("guide/testing_your_own_code.md")]
pub mod testing_your_own_code {}
