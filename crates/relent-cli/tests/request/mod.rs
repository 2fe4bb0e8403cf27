//! A request as it arrived at the scripted dependency that the tests use as a receiver.

use relent_probe::{Arrival, Dependency, Limits, Play, Whole};

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// `POST /path HTTP/1.1`.
    pub(crate) line: String,
    /// Lines in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// A receiver on a free port.
pub(crate) fn receiver(play: impl Play) -> Dependency {
    let limits = Limits { body: 1 << 20, ..Limits::default() };
    Dependency::listen((std::net::Ipv4Addr::LOCALHOST, 0).into(), play, limits).unwrap()
}

/// The requests that came whole.
pub(crate) fn requests(dependency: &Dependency) -> Vec<Request> {
    dependency
        .arrivals()
        .iter()
        .filter(|arrival| arrival.body.whole == Whole::Yes)
        .map(Request::from)
        .collect()
}

impl From<&Arrival> for Request {
    fn from(arrival: &Arrival) -> Self {
        let method = arrival.method.as_ref().expect("what came whole has a method");
        let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())).to_ascii_lowercase()
        };
        Self {
            line: format!("{method} {} HTTP/1.1", arrival.path),
            headers: arrival.headers.iter().map(header).collect(),
            body: arrival.body.kept.to_vec(),
        }
    }
}
