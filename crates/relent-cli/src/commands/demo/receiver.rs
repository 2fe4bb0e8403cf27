//! The demo's receiver: a shop's order desk on a real socket, with a temper ([`super::temper`]) and a memory for
//! idempotency keys.
//!
//! It is the other side of the story, so it keeps a log of its own, written as requests come: what the demo says
//! about deliveries can be recounted from it.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Write as _},
    net::SocketAddr,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use relent::{Clock as _, UnixClock};
use serde::{Deserialize, Serialize};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use super::temper::{Mended, SLOW, Temper, Trouble};
use crate::wire::At;

/// A receiver that runs until it is closed.
pub(super) struct Receiver {
    address: SocketAddr,
    desk: Arc<Desk>,
    close: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// What the sender posts; what else stands in an order is not the receiver's business.
#[derive(Deserialize)]
struct Order {
    order: u32,
}

/// One line of the receiver's log.
#[derive(Serialize)]
struct Entry<'a> {
    at: At,
    order: u32,
    key: Option<&'a str>,
    attempt: Option<&'a str>,
    /// The status, `no answer`, or `200 too late`.
    answer: &'static str,
    /// How long the sender was asked to stay away.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_s: Option<u32>,
    /// Whether the receiver had been mended by then.
    mended: bool,
    /// Whether this request carried the order out, or an earlier one with its key had.
    done: Done,
}

#[derive(Clone, Copy, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Done {
    No,
    Now,
    Before,
}

/// What all connections share.
struct Desk {
    seed: u64,
    clock: UnixClock,
    mended: AtomicBool,
    books: Mutex<Books>,
}

/// What the receiver knows.
#[derive(Default)]
struct Books {
    /// How many requests came for an order.
    requests: HashMap<u32, u32>,
    /// The keys of the orders that are carried out.
    done: HashSet<String>,
    log: Option<File>,
    /// The first failure to write the log: a log with a hole must not be taken for the truth.
    log_failure: Option<io::Error>,
}

impl Receiver {
    /// Opens the door on a free port of the loopback address; the log, if one is asked for, is made anew.
    ///
    /// # Errors
    ///
    /// What the system says of the port or of the file.
    pub(super) async fn open(seed: u64, log: Option<&Path>) -> io::Result<Self> {
        let log = log.map(File::create).transpose()?;
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let books = Mutex::new(Books { log, ..Books::default() });
        let desk = Arc::new(Desk { seed, clock: UnixClock::new(), mended: AtomicBool::new(false), books });
        let (close, closed) = oneshot::channel();
        let task = tokio::spawn(serve(listener, Arc::clone(&desk), closed));
        Ok(Self { address, desk, close, task })
    }

    /// Where orders go.
    pub(super) fn url(&self) -> String {
        format!("http://{}/orders", self.address)
    }

    /// Ends the trouble that would last.
    pub(super) fn mend(&self) {
        self.desk.mended.store(true, Ordering::Relaxed);
    }

    /// Shuts the door and waits until every connection is closed.
    ///
    /// # Errors
    ///
    /// The first failure to write the log.
    pub(super) async fn close(self) -> io::Result<()> {
        // The other end is gone only if the task has ended, which the next line finds out.
        let _ = self.close.send(());
        self.task.await.map_err(io::Error::other)?;
        self.desk.books().log_failure.take().map_or(Ok(()), Err)
    }
}

async fn serve(listener: TcpListener, desk: Arc<Desk>, mut closed: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        // Both arms are cancel safe: an accept that is dropped has taken nothing, nor has a receive.
        tokio::select! {
            _ = &mut closed => break,
            accepted = listener.accept() => {
                // A failed accept is the sender's reset or a lack of descriptors: either shows as a failed
                // attempt at the sender, which is what this program is about.
                if let Ok((stream, _)) = accepted {
                    connections.spawn(converse(stream, Arc::clone(&desk)));
                }
            }
        }
        while connections.try_join_next().is_some() {}
    }
    connections.shutdown().await;
}

/// Answers the requests of one connection.
async fn converse(stream: TcpStream, desk: Arc<Desk>) {
    let service = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { desk.answer(request).await }
    });
    // It ends in an error whenever the receiver hangs up or the sender gives up: both belong to the play.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

impl Desk {
    /// Answers one request; an error closes the connection without an answer.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, HungUp> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| HungUp)?.to_bytes();
        let Ok(order) = serde_json::from_slice::<Order>(&body) else {
            return Ok(plain(StatusCode::BAD_REQUEST, "this desk takes orders: {\"order\": 1}"));
        };
        let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
        let (trouble, done) = self.note(order.order, text("idempotency-key"), text(ATTEMPT_HEADER));
        match trouble {
            None if done == Done::Before => Ok(plain(StatusCode::OK, ALREADY)),
            None => Ok(plain(StatusCode::OK, "thank you")),
            Some(Trouble::Slow) => {
                self.clock.sleep(SLOW).await;
                Ok(plain(StatusCode::OK, "thank you, and sorry for the wait"))
            }
            Some(Trouble::HangsUp) => Err(HungUp),
            Some(Trouble::Refused) => {
                Ok(plain(StatusCode::UNPROCESSABLE_ENTITY, "unknown field \"gift_wrap\""))
            }
            Some(trouble @ (Trouble::Overloaded | Trouble::Closed)) => {
                Ok(later(trouble, StatusCode::SERVICE_UNAVAILABLE, "too much to do"))
            }
            Some(trouble @ Trouble::TooOften) => {
                Ok(later(trouble, StatusCode::TOO_MANY_REQUESTS, "not so fast"))
            }
        }
    }

    /// Enters a request into the books and the log, and says what comes of it.
    fn note(&self, order: u32, key: Option<&str>, attempt: Option<&str>) -> (Option<Trouble>, Done) {
        let mended = if self.mended.load(Ordering::Relaxed) { Mended::Yes } else { Mended::NotYet };
        let mut books = self.books();
        let request = books.requests.entry(order).or_default();
        *request += 1;
        let trouble = Temper::of(order, self.seed).trouble(*request, mended);
        let done = match (trouble, key) {
            (None | Some(Trouble::Slow), Some(key)) if !books.done.insert(key.to_owned()) => Done::Before,
            (None | Some(Trouble::Slow), _) => Done::Now,
            _ => Done::No,
        };
        let at = At(self.clock.now());
        let (answer, asked_s) = (answer_text(trouble), trouble.and_then(Trouble::asks));
        let mended = mended == Mended::Yes;
        books.write(&Entry { at, order, key, attempt, answer, asked_s, mended, done });
        (trouble, done)
    }

    /// The books are whole after a panic as well: no entry spans two statements that could part.
    fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn write(&mut self, entry: &Entry<'_>) {
        let Some(log) = &mut self.log else {
            return;
        };
        let line = serde_json::to_string(entry).map_err(io::Error::from);
        if let Err(error) = line.and_then(|line| log.write_all(format!("{line}\n").as_bytes())) {
            self.log_failure.get_or_insert(error);
        }
    }
}

/// Tells hyper to close the connection without an answer.
#[derive(Debug)]
struct HungUp;

impl std::fmt::Display for HungUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the receiver hung up")
    }
}

impl std::error::Error for HungUp {}

const fn answer_text(trouble: Option<Trouble>) -> &'static str {
    match trouble {
        None => "200",
        Some(Trouble::Slow) => "200 too late",
        Some(Trouble::HangsUp) => "no answer",
        Some(Trouble::Overloaded | Trouble::Closed) => "503",
        Some(Trouble::TooOften) => "429",
        Some(Trouble::Refused) => "422",
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

/// An answer that asks the sender to stay away as long as the trouble says.
fn later(trouble: Trouble, status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = plain(status, text);
    if let Some(seconds) = trouble.asks() {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// What the receiver answers to an order whose key it has seen: the demo counts by it how often the key kept an
/// order from being carried out twice.
pub(super) const ALREADY: &str = "done already: this key was here before";

/// Where an attempt says its number.
const ATTEMPT_HEADER: &str = "x-relent-attempt";
