//! A peer on a real socket that does what a test says.

#![allow(dead_code, reason = "no test uses all of it")]

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A server on a free port of the loopback interface.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Runs `script` for every connection, with the connection's number from 1.
    pub(crate) async fn start<F, Fut>(script: F) -> Self
    where
        F: Fn(usize, Peer) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
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

    /// Answers the first request on every connection with these bytes and closes the connection.
    pub(crate) async fn closing_after(response: &'static str) -> Self {
        Self::start(move |_, mut peer| async move {
            peer.request().await;
            peer.send(response).await;
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
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

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// An address where nobody listens.
pub(crate) async fn deserted() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
    listener.local_addr().expect("a bound socket has an address")
}

/// One connection, seen from the server.
pub(crate) struct Peer {
    pub(crate) tcp: TcpStream,
    unread: Vec<u8>,
}

impl Peer {
    /// Reads one request of HTTP/1.1, head and body; `None` once the client has closed the connection.
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

    /// Reads exactly as many bytes.
    pub(crate) async fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            if self.tcp.read_buf(&mut self.unread).await.ok()? == 0 {
                return None;
            }
        }
        Some(self.unread.drain(..count).collect())
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
    if text.contains("\r\ntransfer-encoding: chunked\r\n") {
        let end = bytes[head..].windows(5).position(|window| window == b"0\r\n\r\n")?;
        return Some(head + end + 5);
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let end = head + length.map_or(0, |length| length.parse::<usize>().expect("a length"));
    (bytes.len() >= end).then_some(end)
}
