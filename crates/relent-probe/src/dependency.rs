//! A scripted dependency on a real socket: HTTP/1.1 on the loopback address, on a thread of its own.
//!
//! A server library would stand between the script and the socket: it reads what it should leave unread, writes a
//! head in one piece, and closes in order. Here the script owns the socket; only the parsing of heads is a library's.

mod connection;
mod request;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use relent::{Clock as _, UnixClock};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

use crate::{
    record::{Arrival, Limits, Log},
    script::Play,
};

/// A running dependency.
///
/// It has a thread and a runtime of its own, so it serves blocking and async tests alike, and what it measures does
/// not wait for the caller's tasks. Dropping it closes its connections and joins its thread, which takes about a
/// millisecond.
///
/// # Examples
///
/// ```
/// use std::{io::{Read as _, Write as _}, net::TcpStream};
/// use relent_probe::{Dependency, Script};
///
/// let dependency = Dependency::open(Script::parse("503, 200")?)?;
/// for expected in ["HTTP/1.1 503", "HTTP/1.1 200"] {
///     let mut stream = TcpStream::connect(dependency.address())?;
///     stream.write_all(b"GET /stock HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
///     let mut answer = String::new();
///     stream.read_to_string(&mut answer)?;
///     assert!(answer.starts_with(expected));
/// }
/// let arrivals = dependency.arrivals();
/// assert_eq!((arrivals.len(), arrivals[1].path.as_str()), (2, "/stock"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dependency {
    address: SocketAddr,
    log: Arc<Log>,
    clock: UnixClock,
    close: watch::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

/// What all connections share.
struct Desk {
    play: Box<dyn Play>,
    log: Arc<Log>,
    limits: Limits,
    clock: UnixClock,
}

impl Dependency {
    /// One on a free port of the loopback address.
    ///
    /// # Errors
    ///
    /// What the system says of the port or of the thread.
    pub fn open(play: impl Play) -> io::Result<Self> {
        Self::listen((Ipv4Addr::LOCALHOST, 0).into(), play, Limits::default())
    }

    /// One on an address of choice. It asks nobody who they are: an address that is not loopback serves the
    /// script to everyone who reaches it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn listen(address: SocketAddr, play: impl Play, limits: Limits) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let clock = UnixClock::new();
        let log = Arc::new(Log::new(limits.arrivals));
        let desk = Desk { play: Box::new(play), log: Arc::clone(&log), limits, clock };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (close, closed) = watch::channel(());
        let thread = thread::Builder::new()
            .name("scripted-dependency".to_owned())
            .spawn(move || runtime.block_on(serve(listener, Arc::new(desk), closed)))?;
        Ok(Self { address, log, clock, close, thread: Some(thread) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The clock by which arrivals are told.
    pub const fn clock(&self) -> UnixClock {
        self.clock
    }

    /// What arrived and is remembered, in order.
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.log.arrivals()
    }

    /// Those after the one with this number.
    pub fn arrivals_after(&self, number: u64) -> Vec<Arrival> {
        self.log.after(number)
    }

    /// How many arrived, the forgotten included.
    pub fn count(&self) -> u64 {
        self.log.count()
    }

    /// How many arrivals are no longer remembered.
    pub fn forgotten(&self) -> u64 {
        self.log.forgotten()
    }

    /// Waits until more has happened than `seen` things, and says how many have: an arrival is one, and each thing
    /// that is learned of it.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn changed(&self, seen: u64) -> u64 {
        let mut changes = self.log.changes();
        // The log has the sender for as long as it lives, and we hold the log: this does not fail.
        changes.wait_for(|count| *count > seen).await.map_or(seen, |count| *count)
    }

    /// Waits until `done` is true of what has arrived, looked at after every change.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn until(&self, mut done: impl FnMut(&[Arrival]) -> bool) {
        let mut changes = 0;
        while !done(&self.log.arrivals()) {
            changes = self.changed(changes).await;
        }
    }
}

impl Drop for Dependency {
    fn drop(&mut self) {
        let _ = self.close.send(()); // fails only where the thread has ended already
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("the dependency's thread panicked");
        }
    }
}

async fn serve(listener: TcpListener, desk: Arc<Desk>, mut closed: watch::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return; // the runtime has its driver and the socket does not block: there is no other cause
    };
    let seats = Arc::new(Semaphore::new(desk.limits.connections.max(1)));
    let mut connections = JoinSet::new();
    let mut accepted = 0;
    loop {
        let taken = async {
            // The semaphore is never closed.
            let seat = Arc::clone(&seats).acquire_owned().await;
            (listener.accept().await, seat)
        };
        // All arms are cancel safe: an accept or an acquisition that is dropped has taken nothing, nor has a
        // receive; a finished task that is not collected now is collected later.
        tokio::select! {
            _ = closed.changed() => break,
            Some(_) = connections.join_next() => {}
            (stream, seat) = taken => match stream {
                Ok((stream, _)) => {
                    accepted += 1;
                    let talk = connection::converse(stream, accepted, Arc::clone(&desk));
                    connections.spawn(async move {
                        talk.await;
                        drop(seat);
                    });
                }
                // No descriptors are left, or the client was gone already. Without a pause the first would
                // be a busy loop.
                Err(_) => desk.clock.sleep(Duration::from_millis(10)).await,
            },
        }
    }
    connections.shutdown().await;
}
