//! A receiver with a script, on real sockets: it decides by its script what each delivery is told, and keeps
//! its own log of what came and what it answered. The tests judge from this log, not from the sender's counters.

mod serve;

use std::{
    collections::HashMap,
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{wall, wire};

/// A running receiver. Dropping it ends its threads.
pub struct Receiver {
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

/// One delivery as it arrived.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its last byte was read, since the receiver began.
    pub at: Duration,
    /// The same on the wall, in milliseconds since the Unix epoch.
    pub unix_millis: u64,
    /// How many deliveries to this path came before, and this one.
    pub nth: usize,
    /// The method.
    pub method: String,
    /// The path and query.
    pub path: String,
    /// The headers, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// What the receiver did with it.
    pub answer: Answered,
}

/// What became of a delivery, as the receiver knows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answered {
    /// Nothing yet.
    Pending,
    /// This status, and every byte of it was given to the socket.
    Written(u16),
    /// This status was decided on (the receiver did its work), but the sender was gone.
    Unwritten(u16),
    /// No answer, by the script.
    Withheld,
}

/// What a script says.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answer.
    Answer(Answer),
    /// Say nothing and keep the connection until the sender gives up.
    Silence,
    /// Close the connection without an answer.
    Hangup,
}

/// An answer of a script.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers besides `Content-Length`.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long the receiver works before it answers.
    pub after: Duration,
}

impl Act {
    /// An empty answer at once.
    pub fn status(status: u16) -> Self {
        Self::Answer(Answer { status, headers: Vec::new(), body: Vec::new(), after: Duration::ZERO })
    }
}

impl Arrival {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        wire::find(&self.headers, name)
    }

    /// The message's id, from its header.
    pub fn id(&self) -> Option<&str> {
        self.header(ID_HEADER)
    }

    /// The number of the attempt, from its header.
    pub fn attempt(&self) -> Option<u32> {
        self.header(ATTEMPT_HEADER)?.parse().ok()
    }

    /// Whether the receiver took the message, told or untold.
    pub fn was_taken(&self) -> bool {
        matches!(self.answer, Answered::Written(200..=299) | Answered::Unwritten(200..=299))
    }
}

impl Receiver {
    /// A receiver on a free port of the loopback.
    ///
    /// # Panics
    ///
    /// If there is no port.
    pub fn start(script: impl Fn(&Arrival) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let shared = Arc::new(Shared {
            at: listener.local_addr().expect("a bound socket has an address"),
            began: wall::now(),
            script: Box::new(script),
            log: Mutex::default(),
            open: Mutex::default(),
            busy: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let listener = thread::spawn(move || serve::accept(&listener, &accepting));
        Self { shared, listener: Some(listener) }
    }

    /// The URL of a path (which begins with `/`).
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.shared.at)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.at
    }

    /// Everything that arrived so far, in order.
    pub fn log(&self) -> Vec<Arrival> {
        self.shared.log().entries.clone()
    }

    /// What arrived for one path, in order.
    pub fn arrivals(&self, path: &str) -> Vec<Arrival> {
        self.shared.log().entries.iter().filter(|arrival| arrival.path == path).cloned().collect()
    }

    /// How many deliveries arrived so far.
    pub fn count(&self) -> usize {
        self.shared.log().entries.len()
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How many deliveries it is working on now.
    pub fn busy(&self) -> usize {
        self.shared.busy.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        // The listener waits for a connection; this one wakes it. If it cannot be made, it has ended already.
        drop(TcpStream::connect(self.shared.at));
        if let Some(listener) = self.listener.take()
            && listener.join().is_err()
            && !thread::panicking()
        {
            panic!("the receiver's listener died");
        }
    }
}

struct Shared {
    at: SocketAddr,
    began: Instant,
    script: Box<dyn Fn(&Arrival) -> Act + Send + Sync>,
    log: Mutex<Log>,
    /// The open connections, so that the end of the receiver ends them.
    open: Mutex<HashMap<u64, TcpStream>>,
    busy: AtomicUsize,
    connections: AtomicUsize,
    ended: AtomicBool,
}

#[derive(Default)]
struct Log {
    entries: Vec<Arrival>,
    by_path: HashMap<String, usize>,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a delivery down and returns its place in the log.
    fn arrived(&self, parts: wire::Parts) -> io::Result<usize> {
        let mut words = parts.first.split(' ');
        let (Some(method), Some(path)) = (words.next(), words.next()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, parts.first.clone()));
        };
        let mut log = self.log();
        let nth = log.by_path.entry(path.to_string()).or_default();
        *nth += 1;
        let arrival = Arrival {
            at: self.began.elapsed(),
            unix_millis: wall::unix_millis(),
            nth: *nth,
            method: method.to_string(),
            path: path.to_string(),
            headers: parts.headers,
            body: parts.body,
            answer: Answered::Pending,
        };
        log.entries.push(arrival);
        Ok(log.entries.len() - 1)
    }

    fn answered(&self, place: usize, answer: Answered) {
        self.log().entries[place].answer = answer;
    }
}

/// The header that carries the message's id.
pub const ID_HEADER: &str = "x-relent-message";
/// The header that carries the number of the attempt.
pub const ATTEMPT_HEADER: &str = "x-relent-attempt";
