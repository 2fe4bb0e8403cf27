//! What a handler takes from a request's target: a message's id, a page of a list.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use relent_ledger::{Cursor, ListQuery, MessageId, State, Stretch};

use crate::server::problem::{Kind, Problem};

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
    /// The page that they ask for. `states` are those of the list, unless the list lets them be chosen.
    ///
    /// # Errors
    ///
    /// 422 naming the parameter; one that is not known is refused, since `?stat=dead` must not list everything.
    pub(super) fn page(&self, states: Option<State>) -> Result<ListQuery, Problem> {
        let mut query =
            ListQuery { states: states.into_iter().collect(), ..ListQuery::newest(DEFAULT_LIMIT) };
        for (name, value) in &self.0 {
            match name.as_str() {
                "limit" => query.limit = limit(value)?,
                "cursor" => query.after = Some(cursor(value)?),
                "state" if states.is_none() => {
                    for state in value.split(',').filter(|state| !state.is_empty()) {
                        query.states.push(self::state(state)?);
                    }
                }
                _ => {
                    let known = if states.is_none() { "state, limit and cursor" } else { "limit and cursor" };
                    return Err(not_known(name, known));
                }
            }
        }
        Ok(query)
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

    fn page(query: &str, states: Option<State>) -> Result<ListQuery, Problem> {
        let uri = format!("/v1/messages?{query}").parse().unwrap();
        Parameters(Query::try_from_uri(&uri).unwrap().0).page(states)
    }

    #[test]
    fn a_page_is_asked_for_by_state_limit_and_cursor() {
        let query = page("state=waiting,dead&state=held&limit=7&cursor=12", None).unwrap();
        assert_eq!(query.states, [State::Waiting, State::Dead, State::Held]);
        assert_eq!((query.limit, query.after), (7, Some(Cursor(12))));
        let query = page("state=waiting%2Cdead", None).unwrap();
        assert_eq!((query.states.len(), query.limit, query.after), (2, 50, None));
        assert_eq!(page("limit=1", Some(State::Dead)).unwrap().states, [State::Dead]);
    }

    fn stretch(query: &str) -> Result<Stretch, Problem> {
        let uri = format!("/v1/messages/id?{query}").parse().unwrap();
        Parameters(Query::try_from_uri(&uri).unwrap().0).stretch()
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
        for (query, states, field) in [
            ("stat=dead", None, "stat"),
            ("state=deda", None, "state"),
            ("limit=0", None, "limit"),
            ("limit=251", None, "limit"),
            ("limit=many", None, "limit"),
            ("cursor=-1", None, "cursor"),
            ("state=held", Some(State::Dead), "state"),
        ] {
            let problem = page(query, states).unwrap_err();
            assert_eq!(problem, problem.clone().with_field(field), "{query}");
        }
    }
}
