//! A receiver that answers by the path it is asked for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use relent_probe::{Act, Answer, Dependency, Head, Hint, WaitForm};

use super::request::{self, Request};

/// Answers `/STATUS` with that status until it is mended and with 200 from then on; `/hostile` with 422 and a body
/// that would steer a terminal; `/asks` with 429 and `Retry-After: 2`.
pub(crate) struct Receiver {
    dependency: Dependency,
    mended: Arc<AtomicBool>,
}

impl Receiver {
    pub(crate) fn open() -> Self {
        let mended = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&mended);
        let dependency =
            request::receiver(move |request: &Head<'_>| act(request.path, theirs.load(Ordering::SeqCst)));
        Self { dependency, mended }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.dependency.url(path)
    }

    pub(crate) fn mend(&self) {
        self.mended.store(true, Ordering::SeqCst);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        request::requests(&self.dependency)
    }
}

fn act(path: &str, mended: bool) -> Act {
    let path = path.split('?').next().unwrap_or_default();
    let says = |status: StatusCode, body: &'static str| Answer::new(status).with_body(body);
    let answer = match path {
        _ if mended => says(StatusCode::OK, "mended"),
        "/hostile" => says(StatusCode::UNPROCESSABLE_ENTITY, "\u{1b}[2Jevil\u{202e}\r\nsecond line"),
        "/asks" => says(StatusCode::TOO_MANY_REQUESTS, "")
            .with_hint(Hint::Wait(Duration::from_secs(2), WaitForm::Seconds)),
        path => {
            match path.trim_start_matches('/').parse().ok().and_then(|code| StatusCode::from_u16(code).ok()) {
                Some(status) => says(status, "as asked"),
                None => says(StatusCode::NOT_FOUND, "nothing here"),
            }
        }
    };
    answer.into()
}
