//! A receiver whose answers the test decides, and can hold back.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use http::StatusCode;
use relent_probe::{Act, Answer, Dependency, Gate, Head};

use super::request::{self, Request};

/// Answers every request with the present status, once its gate is open.
pub(crate) struct Receiver {
    dependency: Dependency,
    status: Arc<AtomicU16>,
    gate: Gate,
}

impl Receiver {
    /// One that answers at once with this status.
    pub(crate) fn answering(status: u16) -> Self {
        let receiver = Self::holding();
        receiver.answer_with(status);
        receiver
    }

    /// One that takes requests and answers 200 when it is told to.
    pub(crate) fn holding() -> Self {
        let (status, gate) = (Arc::new(AtomicU16::new(200)), Gate::new());
        let (theirs, held) = (Arc::clone(&status), gate.clone());
        let dependency = request::receiver(move |_: &Head<'_>| match held.is_open() {
            false => Act::Held(held.clone()),
            true => {
                let status = StatusCode::from_u16(theirs.load(Ordering::SeqCst)).unwrap();
                Answer::new(status).with_body("heard").into()
            }
        });
        Self { dependency, status, gate }
    }

    pub(crate) fn url(&self) -> String {
        self.dependency.url("/hook")
    }

    /// From now on requests are answered with this status, those that wait as well.
    pub(crate) fn answer_with(&self, status: u16) {
        self.status.store(status, Ordering::SeqCst);
        self.gate.open();
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        request::requests(&self.dependency)
    }
}
