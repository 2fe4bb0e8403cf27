//! A peer that does what a test says, and a client that may dial it.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::{Command, Output},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method};
use relent::{ErrorClass, ManualClock, Observed, Timestamp};
use relent_deliver::{Answered, ClientSettings, Guard, HttpClient, Outbound, Resolve, Resolving, Transport};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A limit that is never reached.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A limit that is reached, since the peer never does what would end the wait for it.
pub(crate) const SHORT: Duration = Duration::from_millis(1500);

/// A receiver on a free port of the loopback interface.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Receiver {
    /// Runs `script` for every connection, with the connection's number from 1.
    pub(crate) async fn start<F, Fut>(script: F) -> Self
    where
        F: Fn(usize, Peer) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Self::start_at(Ipv4Addr::LOCALHOST, script).await
    }

    /// The same on another address.
    pub(crate) async fn start_at<F, Fut>(address: Ipv4Addr, script: F) -> Self
    where
        F: Fn(usize, Peer) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((address, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (accepted, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (Arc::clone(&accepted), Arc::clone(&open));
        let accepting = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let number = counters.0.fetch_add(1, Ordering::SeqCst) + 1;
                counters.1.fetch_add(1, Ordering::SeqCst);
                let open = Arc::clone(&counters.1);
                let served = script(number, Peer { tcp, unread: Vec::new() });
                tokio::spawn(async move {
                    served.await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, accepted, open, accepting }
    }

    /// Answers every request on every connection with these bytes.
    pub(crate) async fn answering(response: impl Into<Vec<u8>>) -> Self {
        let response = Arc::new(response.into());
        Self::start(move |_, mut peer| {
            let response = Arc::clone(&response);
            async move {
                while peer.request().await.is_some() {
                    peer.send(response.as_slice()).await;
                }
            }
        })
        .await
    }

    /// Answers the first request on every connection with these bytes and leaves the connection open.
    pub(crate) async fn stalling_after(response: &'static str) -> Self {
        Self::start(move |_, mut peer| async move {
            peer.request().await;
            peer.send(response).await;
            peer.until_closed().await;
        })
        .await
    }

    /// Answers the first request on every connection with these bytes and closes the connection.
    pub(crate) async fn closing_after(response: &'static str) -> Self {
        Self::start(move |_, mut peer| async move {
            peer.request().await;
            peer.send(response).await;
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Connections whose script has not ended.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection, seen from the receiver.
pub(crate) struct Peer {
    pub(crate) tcp: TcpStream,
    unread: Vec<u8>,
}

impl Peer {
    /// Reads one request, head and body; `None` once the client has closed the connection.
    pub(crate) async fn request(&mut self) -> Option<String> {
        loop {
            if let Some(end) = whole_request(&self.unread) {
                let request = self.unread.drain(..end).collect();
                return Some(String::from_utf8(request).expect("the tests send text"));
            }
            if self.tcp.read_buf(&mut self.unread).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Sends these bytes. A client that has gone away meanwhile is the test's to notice.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.tcp.write_all(bytes.as_ref()).await;
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(self) {
        self.tcp.set_zero_linger().expect("an open socket lingers as told");
    }

    /// Waits until the client closes the connection, whatever it sends.
    pub(crate) async fn until_closed(&mut self) {
        let mut ignored = [0; 4096];
        while matches!(self.tcp.read(&mut ignored).await, Ok(read) if read > 0) {}
    }
}

/// Where the first request in these bytes ends, if it is whole.
fn whole_request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let end = head + length.map_or(0, |length| length.parse::<usize>().expect("a length"));
    (bytes.len() >= end).then_some(end)
}

pub(crate) type TestClient = HttpClient<ManualClock>;

/// A client that may dial the loopback interface. Its clock stands still.
pub(crate) fn client() -> TestClient {
    client_with(settings())
}

pub(crate) fn client_with(settings: ClientSettings) -> TestClient {
    HttpClient::new(settings, ManualClock::new()).expect("good settings")
}

pub(crate) fn client_at(now: Timestamp) -> TestClient {
    HttpClient::new(settings(), ManualClock::starting_at(now)).expect("good settings")
}

/// A client that asks this resolver.
pub(crate) fn client_asking(resolver: &Arc<Scripted>, settings: ClientSettings) -> TestClient {
    let resolver = Arc::clone(resolver) as Arc<dyn Resolve>;
    HttpClient::with_resolver(settings, ManualClock::new(), resolver).expect("good settings")
}

/// Settings under which the loopback interface may be dialled and no step of connecting is cut short.
pub(crate) fn settings() -> ClientSettings {
    ClientSettings { guard: allowing("127.0.0.0/8"), connect_timeout: LONG, ..ClientSettings::default() }
}

pub(crate) fn allowing(range: &str) -> Guard {
    Guard::new(vec![range.parse().expect("a range")])
}

/// Sends a small POST with a limit that is never reached.
pub(crate) async fn post(client: &TestClient, url: &str) -> Answered {
    client.send(outbound(Method::POST, url, "hello world"), LONG).await
}

pub(crate) fn outbound(method: Method, url: &str, body: &'static str) -> Outbound {
    let uri = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
    Outbound { method, uri, headers: HeaderMap::new(), body: Bytes::from_static(body.as_bytes()) }
}

/// Asserts the class and that its words hold each of these.
#[track_caller]
pub(crate) fn assert_failed(answered: &Answered, class: ErrorClass, words: &[&str]) {
    assert_eq!(answered.observed, Observed::Error(class), "{answered:?}");
    for word in words {
        assert!(answered.detail.contains(word), "{word:?} is not in {:?}", answered.detail);
    }
    assert!(!answered.detail.is_empty() && !answered.detail.contains('\n'), "{:?}", answered.detail);
}

/// A resolver that answers from a list, and with its last answer from then on.
pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Script>>,
    asked: AtomicUsize,
}

/// One answer of a resolver.
pub(crate) enum Script {
    Found(Vec<IpAddr>),
    Failed(fn() -> io::Error),
    Silent,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Script>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), asked: AtomicUsize::new(0) })
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Resolve for Scripted {
    fn resolve(&self, _: String) -> Resolving {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().expect("no test panics with it");
        let last = answers.len() == 1;
        let answer = match answers.front().expect("an answer") {
            Script::Found(found) => Ok(found.clone()),
            Script::Failed(error) => Err(error()),
            Script::Silent => return Box::pin(std::future::pending()),
        };
        if !last {
            answers.pop_front();
        }
        Box::pin(std::future::ready(answer))
    }
}

/// Waits until this holds; what never holds ends with the test's own time.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::timeout(Duration::from_millis(2), std::future::pending::<()>()).await.ok();
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("it never came to hold");
}

pub(crate) fn found(addresses: &[&str]) -> Script {
    Script::Found(addresses.iter().map(|text| text.parse().expect("an address")).collect())
}

/// Runs this test once more in a process of its own, where `is_child` holds. The shell prepares the process with
/// `setup`.
pub(crate) fn in_a_child(test: &str, setup: &str, environment: &[(&str, &str)]) {
    let itself = std::env::current_exe().expect("a test is a program");
    let output = Command::new("sh")
        .args(["-c", &format!("{setup}; exec \"$0\" --exact {test} --nocapture")])
        .arg(itself)
        .env(CHILD, "1")
        .envs(environment.iter().copied())
        .output()
        .expect("there is a shell");
    let Output { status, stdout, stderr } = output;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
}

pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

const CHILD: &str = "RELENT_TEST_IS_CHILD";
