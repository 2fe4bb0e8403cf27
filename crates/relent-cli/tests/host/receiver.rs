//! A receiver whose answers the test decides, and can hold back.

use std::{
    io::{self, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    thread,
};

use super::request::{Request, read};

/// Answers every request with the present status, once its gate is open.
pub(crate) struct Receiver {
    address: SocketAddr,
    shared: Arc<(Mutex<Mood>, Condvar)>,
}

struct Mood {
    status: u16,
    open: bool,
    seen: Vec<Request>,
}

impl Receiver {
    /// One that answers at once with this status.
    pub(crate) fn answering(status: u16) -> Self {
        Self::open(Mood { status, open: true, seen: Vec::new() })
    }

    /// One that takes requests and answers 200 when it is told to.
    pub(crate) fn holding() -> Self {
        Self::open(Mood { status: 200, open: false, seen: Vec::new() })
    }

    fn open(mood: Mood) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new((Mutex::new(mood), Condvar::new()));
        let theirs = Arc::clone(&shared);
        // The threads end with the test's process: each is blocked in a read or by the gate.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&theirs);
                thread::spawn(move || while answer(&stream, &shared).is_ok() {});
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// From now on requests are answered with this status, those that wait as well.
    pub(crate) fn answer_with(&self, status: u16) {
        let mut mood = self.shared.0.lock().unwrap();
        (mood.status, mood.open) = (status, true);
        self.shared.1.notify_all();
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.shared.0.lock().unwrap().seen.clone()
    }
}

fn answer(stream: &TcpStream, shared: &(Mutex<Mood>, Condvar)) -> io::Result<()> {
    let seen = read(stream)?;
    let mut mood = shared.0.lock().unwrap();
    mood.seen.push(seen);
    while !mood.open {
        mood = shared.1.wait(mood).unwrap();
    }
    let status = mood.status;
    drop(mood);
    let mut stream = stream;
    write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 5\r\n\r\nheard")
}
