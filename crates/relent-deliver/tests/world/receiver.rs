//! A receiver with a script: what it answers, in order, for each host; 200 where nothing is written.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use relent::{Clock, ErrorClass, ManualClock, Observed, Timestamp};
use relent_deliver::{Answered, Outbound, Transport};
use relent_ledger::Truncated;
use tokio::sync::watch;

use super::soon;

/// What it does with one request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers at once.
    Status(u16),
    /// Answers at once and asks to be left alone.
    Wait(u16, Duration),
    /// Fails at once.
    Fails(ErrorClass),
    /// Answers after this time, if it is given so long.
    After(Duration, u16),
    /// Never answers.
    Hangs,
    /// Panics in the sender's hands.
    Panics,
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Timestamp,
    pub limit: Duration,
    pub outbound: Outbound,
}

impl Sent {
    pub fn header(&self, name: &str) -> &str {
        self.outbound.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

#[derive(Clone)]
pub struct Receiver {
    clock: ManualClock,
    scripts: Arc<Mutex<HashMap<String, VecDeque<Reply>>>>,
    sent: Arc<Mutex<Vec<Sent>>>,
    changed: watch::Sender<()>,
}

impl Receiver {
    pub fn new(clock: ManualClock) -> Self {
        Self { clock, scripts: Arc::default(), sent: Arc::default(), changed: watch::Sender::new(()) }
    }

    /// Adds to the script of a host.
    pub fn will(&self, host: &str, replies: impl IntoIterator<Item = Reply>) {
        self.scripts.lock().unwrap().entry(host.to_owned()).or_default().extend(replies);
    }

    pub fn all(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    pub fn to(&self, host: &str) -> Vec<Sent> {
        self.all().into_iter().filter(|sent| sent.outbound.uri.host() == Some(host)).collect()
    }

    /// Waits until `count` requests have come to a host, without moving the time.
    pub async fn until(&self, count: usize, host: &str) {
        let mut changed = self.changed.subscribe();
        soon(async {
            while self.to(host).len() < count {
                changed.changed().await.expect("the receiver lives");
            }
        })
        .await;
    }

    fn next(&self, request: &Outbound) -> Reply {
        let host = request.uri.host().expect("a host");
        let mut scripts = self.scripts.lock().unwrap();
        scripts.get_mut(host).and_then(VecDeque::pop_front).unwrap_or(Reply::Status(200))
    }
}

impl Transport for Receiver {
    async fn send(&self, outbound: Outbound, limit: Duration) -> Answered {
        let at = self.clock.now();
        let reply = self.next(&outbound);
        self.sent.lock().unwrap().push(Sent { at, limit, outbound });
        self.changed.send_replace(());
        let (after, observed) = match reply {
            Reply::Status(status) | Reply::Wait(status, _) => (Duration::ZERO, Observed::Status(status)),
            Reply::Fails(class) => (Duration::ZERO, Observed::Error(class)),
            Reply::After(after, status) => (after, Observed::Status(status)),
            Reply::Hangs => (Duration::MAX, Observed::Status(200)),
            Reply::Panics => panic!("the script says so"),
        };
        if !after.is_zero() {
            self.clock.sleep_until(at.after(after.min(limit))).await;
        }
        let observed = if after > limit { Observed::Error(ErrorClass::HeaderTimeout) } else { observed };
        let server_wait = match reply {
            Reply::Wait(_, length) => Some(length),
            _ => None,
        };
        let detail = match observed {
            Observed::Error(class) => format!("scripted: {}", class.name()),
            Observed::Status(_) => String::new(),
        };
        let response = Bytes::from(format!("said {observed}"));
        Answered { observed, server_wait, detail, response, truncated: Truncated::No }
    }
}
