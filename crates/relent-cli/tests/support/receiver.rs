//! A receiver that answers by the path it is asked for.

use std::{
    io::Write as _,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::request::{Request, read};

/// Answers `/STATUS` with that status until it is mended and with 200 from then on; `/hostile` with 422 and a body
/// that would steer a terminal; `/asks` with 429 and `Retry-After: 2`.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    closed: AtomicBool,
    mended: AtomicBool,
    requests: Mutex<Vec<Request>>,
}

impl Receiver {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if theirs.closed.load(Ordering::Relaxed) {
                    return;
                }
                // A sender that hangs up early is a request that did not come.
                let _ = theirs.answer(stream.unwrap());
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn mend(&self) {
        self.shared.mended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        // Wakes the accept; if that fails the listener is gone already.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let request = read(&stream)?;
        let path = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
        self.requests.lock().unwrap().push(request);
        let mended = self.mended.load(Ordering::Relaxed);
        let (path, _query) = path.split_once('?').unwrap_or((&path, ""));
        let (status, headers, body) = match path {
            _ if mended => ("200", "", "mended"),
            "/hostile" => ("422", "", "\u{1b}[2Jevil\u{202e}\r\nsecond line"),
            "/asks" => ("429", "retry-after: 2\r\n", ""),
            path => match path.trim_start_matches('/') {
                status if status.parse::<u16>().is_ok() => (status, "", "as asked"),
                _ => ("404", "", "nothing here"),
            },
        };
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    }
}
