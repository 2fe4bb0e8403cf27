//! What a handler takes from a request's target: a message's id, a page of a list.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use relent_core::StopReason;
use relent_deliver::origin;
use relent_ledger::{Cursor, Destination, ListQuery, MessageId, State, Stretch};

use crate::{
    server::problem::{Kind, Problem},
    wire::{dead_reason, no_origin},
};

/// The message that the path names.
pub(super) struct Id(pub(super) MessageId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    /// What is no id names no message: 404.
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state).await.map(|Path(text)| text);
        let id = text.ok().and_then(|text| text.parse().ok());
        id.map(Self).ok_or_else(|| {
            let example = "ids look like 0198c5d2-7f3a-7c41-9d55-3b1f2a6e8c90";
            Problem::new(Kind::NotFound, format!("{} names no message: {example}", parts.uri.path()))
                .with_field("id")
        })
    }
}

/// The parameters after the question mark, in order.
pub(super) struct Parameters(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        // Any query reads as pairs of texts: what is not UTF-8 in it is replaced.
        let pairs = Query::try_from_uri(&parts.uri).map(|Query(pairs)| pairs);
        Ok(Self(pairs.unwrap_or_default()))
    }
}

impl Parameters {
    /// The page of messages that they ask for.
    ///
    /// # Errors
    ///
    /// 422 naming the parameter; one that is not known is refused, since `?stat=dead` must not list everything.
    pub(super) fn page(&self) -> Result<ListQuery, Problem> {
        let mut query = ListQuery::newest(DEFAULT_LIMIT);
        for (name, value) in &self.0 {
            match name.as_str() {
                "state" => {
                    for state in value.split(',').filter(|state| !state.is_empty()) {
                        query.states.push(self::state(state)?);
                    }
                }
                _ => place(&mut query, name, value, "state, limit and cursor")?,
            }
        }
        Ok(query)
    }

    /// The page of dead letters that they ask for. An empty reason is none: a script whose variable is not set must
    /// not get everything.
    ///
    /// # Errors
    ///
    /// As [`Parameters::page`].
    pub(super) fn dead_page(&self) -> Result<ListQuery, Problem> {
        let mut query = ListQuery { states: vec![State::Dead], ..ListQuery::newest(DEFAULT_LIMIT) };
        for (name, value) in &self.0 {
            match name.as_str() {
                "reason" => {
                    for reason in value.split(',') {
                        query.reasons.push(self::reason(reason)?);
                    }
                }
                "destination" => {
                    for origin in value.split(',') {
                        query.destinations.push(destination(origin)?);
                    }
                }
                _ => place(&mut query, name, value, "reason, destination, limit and cursor")?,
            }
        }
        Ok(query)
    }

    /// The cycle in which the caller saw a dead letter, if it says so.
    ///
    /// # Errors
    ///
    /// 422 naming the parameter.
    pub(super) fn seen_cycle(&self) -> Result<Option<u32>, Problem> {
        let mut seen = None;
        for (name, value) in &self.0 {
            match name.as_str() {
                "cycle" => seen = Some(cycle(value)?),
                _ => return Err(not_known(name, "only cycle")),
            }
        }
        Ok(seen)
    }

    /// The stretch of a message's log that they ask for: the newest attempts, or those before one.
    ///
    /// # Errors
    ///
    /// 422 naming the parameter.
    pub(super) fn stretch(&self) -> Result<Stretch, Problem> {
        let mut stretch = Stretch::newest(DEFAULT_ATTEMPTS);
        for (name, value) in &self.0 {
            match name.as_str() {
                "attempts" => stretch.limit = attempts(value)?,
                "before" => stretch.before = Some(before(value)?),
                _ => return Err(not_known(name, "attempts and before")),
            }
        }
        Ok(stretch)
    }
}

/// What every list takes.
fn place(query: &mut ListQuery, name: &str, value: &str, known: &str) -> Result<(), Problem> {
    match name {
        "limit" => query.limit = limit(value)?,
        "cursor" => query.after = Some(cursor(value)?),
        _ => return Err(not_known(name, known)),
    }
    Ok(())
}

fn not_known(name: &str, known: &str) -> Problem {
    Problem::invalid(name, format!("the parameter {name} is not known; there are {known}"))
}

fn attempts(value: &str) -> Result<u32, Problem> {
    let wrong = || format!("attempts must be a number from 0 to {MOST_ATTEMPTS}; page with before");
    let number = value.parse().ok().filter(|number| *number <= MOST_ATTEMPTS);
    number.ok_or_else(|| Problem::invalid("attempts", wrong()))
}

fn before(value: &str) -> Result<u32, Problem> {
    let wrong = |_| Problem::invalid("before", "before must be the number of an attempt");
    value.parse().map_err(wrong)
}

fn limit(value: &str) -> Result<usize, Problem> {
    value
        .parse()
        .ok()
        .filter(|limit| (1..=LARGEST_LIMIT).contains(limit))
        .ok_or_else(|| Problem::invalid("limit", format!("limit must be a number from 1 to {LARGEST_LIMIT}")))
}

fn cursor(value: &str) -> Result<Cursor, Problem> {
    let wrong = |_| Problem::invalid("cursor", "cursor must be the `next` of an earlier page");
    value.parse().map(Cursor).map_err(wrong)
}

fn state(name: &str) -> Result<State, Problem> {
    State::from_name(name).ok_or_else(|| {
        let names = State::ALL.map(State::name).join(", ");
        Problem::invalid("state", format!("there is no state \"{name}\"; there are {names}"))
    })
}

fn reason(name: &str) -> Result<StopReason, Problem> {
    dead_reason(name).map_err(|wrong| Problem::invalid("reason", wrong))
}

fn destination(text: &str) -> Result<Destination, Problem> {
    origin(text).ok_or_else(|| Problem::invalid("destination", no_origin(text)))
}

fn cycle(value: &str) -> Result<u32, Problem> {
    let wrong = |_| Problem::invalid("cycle", "cycle must be the `cycle` of the dead letter as you saw it");
    value.parse().map_err(wrong)
}

const DEFAULT_LIMIT: usize = 50;

/// More than a message has under the default policy.
const DEFAULT_ATTEMPTS: u32 = 50;

/// Each may carry the start of an answer, and all of them are in memory at once.
const MOST_ATTEMPTS: u32 = 250;

/// A page is one read of the store and one JSON text in memory.
const LARGEST_LIMIT: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(query: &str) -> Parameters {
        let uri = format!("/v1/messages?{query}").parse().unwrap();
        Parameters(Query::try_from_uri(&uri).unwrap().0)
    }

    fn page(query: &str) -> Result<ListQuery, Problem> {
        parameters(query).page()
    }

    #[test]
    fn a_page_is_asked_for_by_state_limit_and_cursor() {
        let query = page("state=waiting,dead&state=held&limit=7&cursor=12").unwrap();
        assert_eq!(query.states, [State::Waiting, State::Dead, State::Held]);
        assert_eq!((query.limit, query.after), (7, Some(Cursor(12))));
        let query = page("state=waiting%2Cdead").unwrap();
        assert_eq!((query.states.len(), query.limit, query.after), (2, 50, None));
    }

    #[test]
    fn dead_letters_are_asked_for_by_reason_and_destination() {
        let query =
            "reason=permanent,ambiguous&reason=unreadable&destination=https%3A%2F%2FA.example&limit=7";
        let query = parameters(query).dead_page().unwrap();
        assert_eq!((&query.states[..], query.limit), (&[State::Dead][..], 7));
        assert_eq!(query.reasons, [StopReason::Permanent, StopReason::Ambiguous, StopReason::Unreadable]);
        assert_eq!(query.destinations, [Destination::new("https://a.example:443")]);
        assert_eq!(parameters("").dead_page().unwrap().reasons, []);
        for (query, field) in [
            ("reason=", "reason"),
            ("reason=permanent,", "reason"),
            ("reason=delivered", "reason"),
            ("reason=succeeded", "reason"),
            ("destination=", "destination"),
            ("destination=a.example", "destination"),
            ("destination=https://a.example/hook", "destination"),
            ("state=held", "state"),
        ] {
            let problem = parameters(query).dead_page().unwrap_err();
            assert_eq!(problem, problem.clone().with_field(field), "{query}");
        }
    }

    #[test]
    fn the_cycle_that_was_seen_is_a_number() {
        assert_eq!(parameters("").seen_cycle().unwrap(), None);
        assert_eq!(parameters("cycle=3").seen_cycle().unwrap(), Some(3));
        for (query, field) in [("cycle=-1", "cycle"), ("cycle=", "cycle"), ("cicle=1", "cicle")] {
            let problem = parameters(query).seen_cycle().unwrap_err();
            assert_eq!(problem, problem.clone().with_field(field), "{query}");
        }
    }

    fn stretch(query: &str) -> Result<Stretch, Problem> {
        parameters(query).stretch()
    }

    #[test]
    fn a_log_is_asked_for_by_attempts_and_before() {
        assert_eq!(stretch("").unwrap(), Stretch::newest(50));
        assert_eq!(stretch("attempts=7&before=9").unwrap(), Stretch { before: Some(9), limit: 7 });
        assert_eq!(stretch("attempts=0").unwrap(), Stretch::NONE);
        for (query, field) in [
            ("attempts=251", "attempts"),
            ("attempts=all", "attempts"),
            ("before=x", "before"),
            ("limit=1", "limit"),
        ] {
            let problem = stretch(query).unwrap_err();
            assert_eq!(problem, problem.clone().with_field(field), "{query}");
        }
    }

    #[test]
    fn a_parameter_that_says_nothing_is_refused() {
        for (query, field) in [
            ("stat=dead", "stat"),
            ("state=deda", "state"),
            ("reason=permanent", "reason"),
            ("limit=0", "limit"),
            ("limit=251", "limit"),
            ("limit=many", "limit"),
            ("cursor=-1", "cursor"),
        ] {
            let problem = page(query).unwrap_err();
            assert_eq!(problem, problem.clone().with_field(field), "{query}");
        }
    }
}
