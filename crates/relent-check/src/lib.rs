//! The questions that a retry must answer, asked of a policy.
//!
//! Does it back off, does it jitter, does it stop by attempts, by time and by budget; where does the work go and who
//! finds out; what does it repeat, is that safe, can anyone see it? Each answer comes from a named setting, or is
//! "cannot tell". With the answers comes the arithmetic (attempts that fit, the longest wait, what retries make of
//! the load), and for everything that is wrong a stable name, a sentence why, and the smallest change that mends it.
//!
//! A policy may be relent's own or what a team already runs: .NET's resilience handlers, a gRPC service config, the
//! settings of the AWS and Azure SDKs, Envoy's routes, resilience4j.
//!
//! ```
//! use relent_check::{Document, World, check};
//! use relent_core::Policy;
//!
//! let text = "total_timeout = \"5s\"\n[retry]\njitter = \"none\"";
//! let document = Document::parse(text, None, &Policy::live())?;
//! let report = check(&document.subjects[0], &World::default());
//! assert_eq!(report.findings[0].name, "no_jitter");
//! # Ok::<_, relent_check::Unreadable>(())
//! ```

#![forbid(unsafe_code)]

mod answer;
mod change;
pub mod figure;
mod finding;
mod print;
mod read;
mod report;
mod rule;
mod subject;
mod view;
mod world;

pub use answer::{Answer, List, Question, Verdict};
pub use finding::{Finding, Limit, Mend};
pub use read::{Document, Edit, Key, Notation, Unreadable, of_policy};
pub use report::{Report, check};
pub use subject::{Days, Format, Habits, Origin, Part, Subject, Unread};
pub use view::View;
pub use world::{PerSecond, World};
