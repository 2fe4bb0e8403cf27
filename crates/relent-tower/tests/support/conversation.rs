//! A client under a policy and a server on a real socket that answers from a script, in time that a test owns.
//!
//! The pipeline's clock stands still but for two moments: when the client begins a wait, the wait is over; and when
//! the server holds a request, the attempt's time-out comes. So nothing depends on how long anything takes.

#![allow(dead_code, reason = "no test uses all of it")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use relent::{Clock, Event, ManualClock, Observe, Pipeline, Policy, Scene, StopReason, Wait};
use relent_tower::{Error, PipelineLayer, PipelineService, Wire, report};
use tower::{ServiceExt, layer::Layer};

use crate::server::{Peer, Server};

/// What the server does with one request. The last counts for all that follow.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Status(u16, Vec<(&'static str, &'static str)>, &'static str),
    /// It has received the request, and nothing comes back until the client gives up.
    Hold,
    /// The connection breaks with a reset, the request received.
    Reset,
}

pub(crate) fn status(code: u16) -> Reply {
    Reply::Status(code, vec![], "")
}

/// One request as the server received it.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) key: Option<String>,
    pub(crate) attempt: Option<u32>,
    pub(crate) body: String,
}

pub(crate) struct Conversation {
    pub(crate) clock: ManualClock,
    pub(crate) service: PipelineService<Client<HttpConnector, Full<Bytes>>, ManualClock>,
    pub(crate) server: Server,
    received: Arc<Mutex<Vec<Received>>>,
    pace: Arc<Pace>,
}

/// How a call ended, and all that was seen of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) attempts: u32,
    pub(crate) reason: StopReason,
    /// The response's status, if it ended on one.
    pub(crate) status: Option<u16>,
    pub(crate) body: String,
    pub(crate) waits: Vec<Wait>,
    pub(crate) took: Duration,
}

impl Conversation {
    pub(crate) async fn new(policy: Policy, script: impl IntoIterator<Item = Reply>) -> Self {
        let clock = ManualClock::new();
        let received = Arc::new(Mutex::new(Vec::new()));
        let script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<_>>()));
        let hold = policy.attempt_timeout;
        let (log, time) = (Arc::clone(&received), clock.clone());
        let server = Server::start(move |_, peer| {
            converse(peer, Arc::clone(&script), Arc::clone(&log), time.clone(), hold)
        })
        .await;
        let pace = Arc::new(Pace { clock: clock.clone(), waits: Mutex::default(), ended: Mutex::default() });
        let pipeline = Pipeline::on(clock.clone(), policy).expect("a possible policy");
        let pipeline = pipeline.named("the server").observed_by(pace.clone());
        let layer =
            PipelineLayer::new(pipeline).expect("a patient policy").with_wire(Wire::new().reporting_all());
        let http = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
        Self { clock, service: layer.layer(http), server, received, pace }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request<Full<Bytes>> {
        let url = format!("http://{}{path}", self.server.address);
        Request::builder().method(method).uri(url).body(Full::from("hello world")).expect("a request")
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The reasons for which calls ended, told to whoever observes them.
    pub(crate) fn told(&self) -> Vec<StopReason> {
        self.pace.ended.lock().unwrap().clone()
    }

    /// Sends one request to its end.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Ended {
        self.pace.waits.lock().unwrap().clear();
        let began = self.clock.now();
        let result = self.service.clone().oneshot(request).await;
        let (attempts, reason) = match &result {
            Ok(response) => {
                let report = report(response).expect("every response is reported on");
                (report.attempts, report.stop)
            }
            Err(error) => (error.report().attempts, error.stop()),
        };
        let took = self.clock.now().since(began);
        let (status, body) = read(result).await;
        let waits = self.pace.waits.lock().unwrap().clone();
        Ended { attempts, reason, status, body, waits, took }
    }
}

async fn read(result: Result<Response<Incoming>, Error>) -> (Option<u16>, String) {
    let Ok(response) = result else { return (None, String::new()) };
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a whole response").to_bytes();
    (Some(status), String::from_utf8(body.to_vec()).expect("text"))
}

async fn converse(
    mut peer: Peer,
    script: Arc<Mutex<VecDeque<Reply>>>,
    log: Arc<Mutex<Vec<Received>>>,
    clock: ManualClock,
    hold: Duration,
) {
    while let Some(request) = peer.request().await {
        log.lock().unwrap().push(parse(&request));
        let reply = {
            let mut script = script.lock().unwrap();
            let last = script.len() == 1;
            let reply = script.front().expect("a reply").clone();
            if !last {
                script.pop_front();
            }
            reply
        };
        match reply {
            Reply::Reset => return peer.reset(),
            Reply::Hold => {
                clock.until_asleep(1).await;
                clock.advance(hold);
                return peer.until_closed().await;
            }
            Reply::Status(code, headers, body) => {
                let mut response = format!("HTTP/1.1 {code} \r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    response += &format!("{name}: {value}\r\n");
                }
                peer.send(response + "\r\n" + body).await;
            }
        }
    }
}

fn parse(request: &str) -> Received {
    let (head, body) = request.split_once("\r\n\r\n").expect("a whole request");
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    Received {
        line: head.lines().next().expect("a first line").to_owned(),
        key: header("idempotency-key"),
        attempt: header("x-relent-attempt").map(|number| number.parse().expect("a number")),
        body: body.to_owned(),
    }
}

/// Lets every wait be over as soon as it begins, and keeps what was waited for.
struct Pace {
    clock: ManualClock,
    waits: Mutex<Vec<Wait>>,
    ended: Mutex<Vec<StopReason>>,
}

impl Observe for Pace {
    fn observe(&self, _: Scene<'_>, event: &Event<'_>) {
        match event {
            Event::Waiting { wait, .. } => {
                self.waits.lock().unwrap().push(*wait);
                self.clock.advance(wait.length);
            }
            Event::CallEnded(report) => self.ended.lock().unwrap().push(report.stop),
            _ => {}
        }
    }
}
