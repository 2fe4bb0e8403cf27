//! Which request is told what: sequences of acts, one for each key.

mod text;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, HeaderName, Method};

use crate::{act::Act, hint::Hint};

/// Decides what is done with each request. Closures do.
pub trait Play: Send + Sync + 'static {
    /// What is done with a request whose head has come.
    fn act(&self, request: &Head<'_>) -> Act;

    /// Asked before the first byte of a request is read: whether its connection is reset instead.
    fn greet(&self) -> Greeting {
        Greeting::Read
    }
}

/// What becomes of a request that nobody has looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Greeting {
    /// It is read.
    Read,
    /// Its connection is reset.
    Reset,
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, with its query.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl<F: Fn(&Head<'_>) -> Act + Send + Sync + 'static> Play for F {
    fn act(&self, request: &Head<'_>) -> Act {
        self(request)
    }
}

/// Sequences of acts. The requests with one key take their sequence's acts in turn, and its last act from then on.
///
/// # Examples
///
/// ```
/// use relent_probe::{RequestKey, Script};
///
/// let script = Script::parse("503 asks 1s, reset, 200")?
///     .by(RequestKey::Path)
///     .on("POST", "/orders/*", "hang, 201")?;
/// # let _ = script;
/// # Ok::<(), relent::Invalid>(())
/// ```
#[derive(Debug)]
pub struct Script {
    otherwise: Vec<Act>,
    rules: Vec<Rule>,
    key: RequestKey,
    turns: Mutex<Turns>,
}

/// What makes two requests tries of the same thing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum RequestKey {
    /// Every request is.
    #[default]
    All,
    /// The path without its query.
    Path,
    /// The method and the path without its query.
    MethodAndPath,
    /// The value of a header; requests without it have one key together.
    Header(HeaderName),
}

#[derive(Debug)]
struct Rule {
    method: Option<Method>,
    path: String,
    acts: Vec<Act>,
}

/// How many requests each key has had; the oldest key is forgotten where there are too many.
#[derive(Debug, Default)]
struct Turns {
    counts: HashMap<String, usize>,
    order: VecDeque<String>,
}

impl Script {
    /// One sequence for all requests. An empty one answers 200.
    pub fn new(acts: impl Into<Vec<Act>>) -> Self {
        Self { otherwise: acts.into(), rules: Vec::new(), key: RequestKey::All, turns: Mutex::default() }
    }

    /// The same with a sequence for each key.
    #[must_use]
    pub fn by(self, key: RequestKey) -> Self {
        Self { key, ..self }
    }

    /// What the first answer of the sequence asks for.
    pub(crate) fn first_hint(&self) -> Option<Hint> {
        match self.otherwise.first()? {
            Act::Answer(answer) => answer.hints.first().copied(),
            _ => None,
        }
    }

    /// The position of a request among those with its key, counted from 0.
    fn turn(&self, key: String) -> usize {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.take(key)
    }

    fn key_of(&self, request: &Head<'_>) -> String {
        let path = request.path.split('?').next().unwrap_or_default();
        match &self.key {
            RequestKey::All => String::new(),
            RequestKey::Path => path.to_owned(),
            RequestKey::MethodAndPath => format!("{} {path}", request.method),
            RequestKey::Header(name) => {
                let value = request.headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
                String::from_utf8_lossy(value).into_owned()
            }
        }
    }
}

impl Play for Script {
    fn act(&self, request: &Head<'_>) -> Act {
        let rule = self.rules.iter().position(|rule| rule.matches(request));
        let acts = rule.map_or(&self.otherwise, |rule| &self.rules[rule].acts);
        let place = rule.map_or_else(String::new, |rule| rule.to_string());
        let turn = self.turn(format!("{place} {}", self.key_of(request)));
        step(acts, turn)
    }

    fn greet(&self) -> Greeting {
        if self.key != RequestKey::All || !self.rules.is_empty() {
            return Greeting::Read;
        }
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.counts.get(" ").copied().unwrap_or_default();
        if step(&self.otherwise, turn) != Act::ResetUnread {
            return Greeting::Read;
        }
        turns.take(" ".to_owned());
        Greeting::Reset
    }
}

impl Turns {
    fn take(&mut self, key: String) -> usize {
        if let Some(count) = self.counts.get_mut(&key) {
            *count += 1;
            return *count - 1;
        }
        if self.order.len() == MOST_KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.counts.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.counts.insert(key, 1);
        0
    }
}

impl Rule {
    fn matches(&self, request: &Head<'_>) -> bool {
        let path = request.path.split('?').next().unwrap_or_default();
        let method = self.method.as_ref().is_none_or(|method| method == request.method);
        method
            && match self.path.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => path == self.path,
            }
    }
}

fn step(acts: &[Act], turn: usize) -> Act {
    acts.get(turn).or(acts.last()).cloned().unwrap_or_else(|| Act::status(http::StatusCode::OK))
}

/// The most keys that are remembered: 65,536 of 100 bytes are 6 MiB.
const MOST_KEYS: usize = 65_536;

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn told(script: &Script, method: Method, path: &str, key: Option<&str>) -> Act {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert("idempotency-key", key.parse().unwrap());
        }
        script.act(&Head { method: &method, path, headers: &headers })
    }

    #[test]
    fn a_sequence_is_taken_in_turn_and_its_last_act_stays() {
        let script = Script::parse("503, 2x 429, 200").unwrap();
        let told: Vec<Act> = (0..6).map(|_| told(&script, Method::GET, "/", None)).collect();
        let expected =
            [503, 429, 429, 200, 200, 200].map(|code| Act::status(StatusCode::from_u16(code).unwrap()));
        assert_eq!(told, expected);
    }

    #[test]
    fn each_key_has_its_own_turn() {
        let (ok, busy) = (Act::status(StatusCode::OK), Act::status(StatusCode::SERVICE_UNAVAILABLE));
        let by_path = Script::parse("503, 200").unwrap().by(RequestKey::Path);
        assert_eq!(told(&by_path, Method::GET, "/a?x=1", None), busy);
        assert_eq!(told(&by_path, Method::GET, "/b", None), busy);
        assert_eq!(told(&by_path, Method::GET, "/a?x=2", None), ok);
        let key = RequestKey::Header(HeaderName::from_static("idempotency-key"));
        let by_key = Script::parse("503, 200").unwrap().by(key);
        assert_eq!(told(&by_key, Method::POST, "/", Some("one")), busy);
        assert_eq!(told(&by_key, Method::POST, "/", Some("two")), busy);
        assert_eq!(told(&by_key, Method::POST, "/", Some("one")), ok);
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let script = Script::parse("404").unwrap().on("POST", "/orders/*", "201").unwrap();
        let script = script.on("", "/orders/7", "hang").unwrap();
        assert_eq!(told(&script, Method::POST, "/orders/7", None), Act::status(StatusCode::CREATED));
        assert_eq!(told(&script, Method::GET, "/orders/7", None), Act::Hang);
        assert_eq!(told(&script, Method::GET, "/orders", None), Act::status(StatusCode::NOT_FOUND));
    }

    #[test]
    fn a_reset_before_the_first_byte_takes_its_turn() {
        let script = Script::parse("reset-unread, 200").unwrap();
        assert_eq!(script.greet(), Greeting::Reset);
        assert_eq!(script.greet(), Greeting::Read);
        assert_eq!(told(&script, Method::GET, "/", None), Act::status(StatusCode::OK));
    }

    #[test]
    fn memory_is_bounded_by_forgetting_the_oldest_key() {
        let script = Script::parse("503, 200").unwrap().by(RequestKey::Path);
        for path in 0..=MOST_KEYS {
            let _ = told(&script, Method::GET, &format!("/{path}"), None);
        }
        assert_eq!(script.turns.lock().unwrap().counts.len(), MOST_KEYS);
        let forgotten = told(&script, Method::GET, "/0", None);
        assert_eq!(forgotten, Act::status(StatusCode::SERVICE_UNAVAILABLE));
    }
}
