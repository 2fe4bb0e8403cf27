//! Which failures say "not now", as data: two built-in tables and a policy's own rules above them.

mod terms;

use alloc::{string::String, vec::Vec};
use core::{fmt, time::Duration};

use crate::{
    decision::names,
    history::Idempotency,
    verdict::{Cause, Neutral, Sent, Verdict},
};

pub use terms::Terms;

/// What a driver saw of an attempt's end: a status, or an error without one.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Observed {
    /// The dependency answered with this HTTP status.
    Status(u16),
    /// No whole answer came.
    Error(ErrorClass),
}

/// The kinds of failure without an answer. A closed list: it is stored, and a metric label.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum ErrorClass {
    /// The name could not be resolved.
    Dns,
    /// The connection was refused, or the host or network could not be reached.
    Connect,
    /// The connection was not made in time.
    ConnectTimeout,
    /// The TLS handshake failed.
    Tls,
    /// A connection closed before anything of the request was written.
    NotSent,
    /// The dependency said that it did not process the request: HTTP/2's `REFUSED_STREAM`, or a `GOAWAY` that
    /// leaves it out.
    Unprocessed,
    /// The connection broke after the request may have been sent.
    Reset,
    /// No response head came in time.
    HeaderTimeout,
    /// The response body did not end in time.
    BodyTimeout,
    /// A time-out of which no more is known.
    Timeout,
    /// What came was not the protocol.
    Protocol,
    /// The address may not be dialled.
    Blocked,
    /// Nobody saw the end of the attempt: its worker died, or was cut off by a shutdown.
    Lost,
    /// The operation panicked.
    Panic,
    /// Something on our own side failed before anything was sent (no more file descriptors, ports or memory).
    OwnFault,
    /// None of these.
    Other,
}

names!(ErrorClass {
    Dns => "dns",
    Connect => "connect",
    ConnectTimeout => "connect_timeout",
    Tls => "tls",
    NotSent => "not_sent",
    Unprocessed => "unprocessed",
    Reset => "reset",
    HeaderTimeout => "header_timeout",
    BodyTimeout => "body_timeout",
    Timeout => "timeout",
    Protocol => "protocol",
    Blocked => "blocked",
    Lost => "unknown",
    Panic => "panic",
    OwnFault => "own_fault",
    Other => "other",
});

/// What an observation means by contract.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    /// Done.
    Success,
    /// Worth another attempt.
    NotNow,
    /// Worth another attempt; and we ask too often.
    Throttled,
    /// Another attempt would get the same.
    No,
}

names!(Answer { Success => "success", NotNow => "not_now", Throttled => "throttled", No => "no" });

/// A built-in table.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Table {
    /// For live calls: 408, 429, 502, 503, 504, connect and reset failures and time-outs are "not now"; 500,
    /// TLS, unknown host, protocol errors and everything unknown are "no".
    Documents,
    /// For durable delivery: every 5xx but 501 and 505, every 3xx (never followed), 408, 425, 429 and every
    /// failure of the network are "not now"; every other 4xx is "no".
    Webhook,
}

names!(Table { Documents => "documents", Webhook => "webhook" });

/// What means what: a table, a policy's rules above it, and rules for some routes above those.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Classification {
    /// The table to fall back on.
    pub table: Table,
    /// Rules for every route.
    pub rules: Rules,
    /// Rules for some routes; the first that matches and has an answer wins.
    pub routes: Vec<RouteRule>,
}

/// Answers by status and by class of error.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rules {
    /// Ranges of statuses, both ends included. A narrower range wins over a wider one, and of equally wide ones
    /// the one that begins lower, so their order means nothing.
    pub statuses: Vec<(u16, u16, Answer)>,
    /// Classes of error.
    pub errors: Vec<(ErrorClass, Answer)>,
}

/// Rules for the requests whose method and path match.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RouteRule {
    /// Only this method; every method if `None`.
    pub method: Option<String>,
    /// The path; a trailing `*` matches any rest.
    pub path: String,
    /// What answers mean there.
    pub rules: Rules,
    /// Whether these requests may be repeated, whatever their method says: a search by `POST` is safe, a report
    /// that takes the database a minute is better not asked for twice.
    pub repeat: Option<Idempotency>,
    /// How long after its call began an answer is still of use: a shorter total time-out.
    pub fresh_for: Option<Duration>,
}

/// The request that an observation belongs to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Route<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path without the query.
    pub path: &'a str,
}

impl Observed {
    /// A short name with few values, for metrics and lists.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Status(100..=199) => "1xx",
            Self::Status(200..=299) => "2xx",
            Self::Status(300..=399) => "3xx",
            Self::Status(429) => "429",
            Self::Status(400..=499) => "4xx",
            Self::Status(500..=599) => "5xx",
            Self::Status(_) => "other_status",
            Self::Error(class) => class.name(),
        }
    }

    /// Reads what `Display` wrote: a status, or the name of an error class.
    pub fn from_name(name: &str) -> Option<Self> {
        match name.parse::<u16>() {
            Ok(status) if (100..=999).contains(&status) => Some(Self::Status(status)),
            Ok(_) => None,
            Err(_) => ErrorClass::from_name(name).map(Self::Error),
        }
    }

    /// Whether the dependency may have acted on the request. A status alone, 429 and 503 included, is "maybe".
    pub const fn sent(self) -> Sent {
        match self {
            Self::Error(
                ErrorClass::Dns
                | ErrorClass::Connect
                | ErrorClass::ConnectTimeout
                | ErrorClass::Tls
                | ErrorClass::NotSent
                | ErrorClass::OwnFault
                | ErrorClass::Blocked,
            ) => Sent::No,
            Self::Error(ErrorClass::Unprocessed) => Sent::RefusedBefore,
            Self::Status(_) | Self::Error(_) => Sent::Maybe,
        }
    }
}

/// The one text of an observation: `503`, or the name of its error class.
impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Error(class) => f.write_str(class.name()),
        }
    }
}

impl Classification {
    /// A table without rules of one's own.
    pub const fn new(table: Table) -> Self {
        let rules = Rules { statuses: Vec::new(), errors: Vec::new() };
        Self { table, rules, routes: Vec::new() }
    }

    /// What an observation means: by the first matching route's rules, else the policy's, else the table.
    pub fn answer(&self, observed: Observed, route: Route<'_>) -> Answer {
        self.rule(observed, route).unwrap_or_else(|| self.table.answer(observed))
    }

    /// What the rules of the route or of the policy say of an observation, if one of them does.
    pub fn rule(&self, observed: Observed, route: Route<'_>) -> Option<Answer> {
        self.routes
            .iter()
            .filter(|rule| rule.matches(route))
            .find_map(|rule| rule.rules.answer(observed))
            .or_else(|| self.rules.answer(observed))
    }

    /// The verdict on an observation. Two are never a matter of rules: a lost attempt, whose end nobody saw, and
    /// a fault of our own, which says nothing about the dependency.
    pub fn verdict(&self, observed: Observed, route: Route<'_>, server_wait: Option<Duration>) -> Verdict {
        if observed == Observed::Error(ErrorClass::Lost) {
            return Verdict::LOST;
        }
        if observed == Observed::Error(ErrorClass::OwnFault) {
            return Verdict::Neutral(Neutral::OwnFault);
        }
        let cause = match (self.answer(observed, route), observed) {
            (Answer::Success, _) => return Verdict::Success,
            (Answer::No, _) => return Verdict::Permanent,
            (Answer::Throttled, _) => Cause::Throttled,
            (
                Answer::NotNow,
                Observed::Error(
                    ErrorClass::ConnectTimeout
                    | ErrorClass::HeaderTimeout
                    | ErrorClass::BodyTimeout
                    | ErrorClass::Timeout,
                ),
            ) => Cause::Timeout,
            (Answer::NotNow, _) => Cause::Error,
        };
        Verdict::Failure { cause, sent: observed.sent(), server_wait }
    }
}

impl Table {
    /// What the table says.
    pub const fn answer(self, observed: Observed) -> Answer {
        match self {
            Self::Documents => documents(observed),
            Self::Webhook => webhook(observed),
        }
    }
}

impl Rules {
    fn answer(&self, observed: Observed) -> Option<Answer> {
        match observed {
            Observed::Status(status) => self
                .statuses
                .iter()
                .filter(|(low, high, _)| (*low..=*high).contains(&status))
                .min_by_key(|(low, high, _)| (high - low, *low))
                .map(|(_, _, answer)| *answer),
            Observed::Error(class) => {
                self.errors.iter().find(|(known, _)| *known == class).map(|(_, answer)| *answer)
            }
        }
    }
}

impl RouteRule {
    /// A rule for this path, under every method, that says nothing yet.
    pub fn on(path: impl Into<String>) -> Self {
        Self { method: None, path: path.into(), rules: Rules::default(), repeat: None, fresh_for: None }
    }

    fn matches(&self, route: Route<'_>) -> bool {
        let method = self.method.as_deref().is_none_or(|method| method.eq_ignore_ascii_case(route.method));
        let path = match self.path.strip_suffix('*') {
            Some(start) => route.path.starts_with(start),
            None => route.path == self.path,
        };
        method && path
    }
}

const fn documents(observed: Observed) -> Answer {
    match observed {
        Observed::Status(200..=299) => Answer::Success,
        Observed::Status(429) => Answer::Throttled,
        Observed::Status(408 | 502..=504) => Answer::NotNow,
        Observed::Status(_) => Answer::No,
        Observed::Error(
            ErrorClass::Connect
            | ErrorClass::ConnectTimeout
            | ErrorClass::NotSent
            | ErrorClass::Unprocessed
            | ErrorClass::Reset
            | ErrorClass::HeaderTimeout
            | ErrorClass::BodyTimeout
            | ErrorClass::Timeout
            | ErrorClass::Lost
            | ErrorClass::OwnFault,
        ) => Answer::NotNow,
        Observed::Error(
            ErrorClass::Dns
            | ErrorClass::Tls
            | ErrorClass::Protocol
            | ErrorClass::Blocked
            | ErrorClass::Panic
            | ErrorClass::Other,
        ) => Answer::No,
    }
}

const fn webhook(observed: Observed) -> Answer {
    match observed {
        Observed::Status(200..=299) => Answer::Success,
        Observed::Status(429) => Answer::Throttled,
        Observed::Status(501 | 505) => Answer::No,
        Observed::Status(100..=199 | 300..=399 | 408 | 425 | 500..=599) => Answer::NotNow,
        Observed::Status(_) | Observed::Error(ErrorClass::Blocked) => Answer::No,
        Observed::Error(_) => Answer::NotNow,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_order_of_rules_means_nothing() {
        let mut rules = vec![
            (400, 499, Answer::No),
            (404, 404, Answer::Success),
            (402, 405, Answer::Throttled),
            (403, 406, Answer::NotNow),
        ];
        for _ in 0..rules.len() {
            rules.rotate_left(1);
            let mut classify = Classification::new(Table::Documents);
            classify.rules.statuses = rules.clone();
            for (status, answer) in [
                (400, Answer::No),
                (402, Answer::Throttled),
                (404, Answer::Success),
                (405, Answer::Throttled),
                (406, Answer::NotNow),
                (503, Answer::NotNow),
            ] {
                let given = classify.answer(Observed::Status(status), Route::default());
                assert_eq!(given, answer, "{status} under {rules:?}");
            }
        }
    }

    #[test]
    fn a_route_matches_by_method_and_path() {
        let rule = |method: Option<&str>, path: &str| RouteRule {
            method: method.map(String::from),
            ..RouteRule::on(path)
        };
        for (rule, method, path, matches) in [
            (rule(Some("GET"), "/orders/*"), "GET", "/orders/1", true),
            (rule(Some("GET"), "/orders/*"), "get", "/orders/", true),
            (rule(Some("GET"), "/orders/*"), "GET", "/orders", false),
            (rule(Some("GET"), "/orders/*"), "POST", "/orders/1", false),
            (rule(None, "/orders"), "POST", "/orders", true),
            (rule(None, "/orders"), "POST", "/orders/1", false),
            (rule(None, "*"), "", "", true),
        ] {
            assert_eq!(rule.matches(Route { method, path }), matches, "{rule:?} {method} {path}");
        }
    }

    #[test]
    fn no_rule_decides_an_attempt_that_nobody_saw_end() {
        let mut classify = Classification::new(Table::Documents);
        classify.rules.errors =
            vec![(ErrorClass::Lost, Answer::No), (ErrorClass::Timeout, Answer::Throttled)];
        let verdict = |class| classify.verdict(Observed::Error(class), Route::default(), None);
        assert_eq!(verdict(ErrorClass::Lost), Verdict::LOST);
        assert_eq!(verdict(ErrorClass::OwnFault), Verdict::Neutral(Neutral::OwnFault));
        let throttled = Verdict::Failure { cause: Cause::Throttled, sent: Sent::Maybe, server_wait: None };
        assert_eq!(verdict(ErrorClass::Timeout), throttled);
        assert_eq!(verdict(ErrorClass::HeaderTimeout), Verdict::TIMED_OUT);
    }

    #[test]
    fn an_observation_reads_back_as_it_is_written() {
        use alloc::string::ToString;
        let statuses = (100..=999).map(Observed::Status);
        for observed in statuses.chain(ErrorClass::ALL.iter().copied().map(Observed::Error)) {
            assert_eq!(Observed::from_name(&observed.to_string()), Some(observed));
        }
        for name in ["", "99", "1000", "lost", "2xx"] {
            assert_eq!(Observed::from_name(name), None, "{name}");
        }
    }
}
