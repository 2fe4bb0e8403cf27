//! The server of the bench: a process of its own, so that what it costs is not the clients'.
//!
//! It reads no more of a request than where it ends, and answers with bytes that are there already.

use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The server's process; it ends when this is dropped.
pub(crate) struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> io::Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .arg(SERVE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
        let address = line.trim().parse().map_err(io::Error::other)?;
        Ok(Self { process, address })
    }

    /// Answers 200, always.
    pub(crate) fn steady(&self) -> String {
        format!("http://{}/steady", self.address)
    }

    /// Answers 503, 503, 200, 503, 503, 200 and so on, whoever asks.
    pub(crate) fn flaky(&self) -> String {
        format!("http://{}/flaky", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill(); // it may have ended with an error, which it has said
        let _ = self.process.wait();
    }
}

/// What the server's process does. It ends with whoever started it.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn serve() -> io::Result<()> {
    thread::spawn(|| {
        let _until_it_is_closed = io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    let flaky = Arc::new(AtomicU64::new(0));
    loop {
        let (connection, _) = listener.accept().await?;
        connection.set_nodelay(true)?;
        tokio::spawn(answer(connection, Arc::clone(&flaky)));
    }
}

/// Answers one connection until its client closes it.
async fn answer(mut connection: TcpStream, flaky: Arc<AtomicU64>) {
    let mut unread = Vec::with_capacity(4096);
    while matches!(connection.read_buf(&mut unread).await, Ok(1..)) {
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let fails = unread.starts_with(b"GET /flaky") && flaky.fetch_add(1, Ordering::Relaxed) % 3 < 2;
            let response = if fails { BUSY } else { DONE };
            if connection.write_all(response).await.is_err() {
                return;
            }
            unread.drain(..end + 4);
        }
    }
}

/// The argument that makes this program the server.
pub(crate) const SERVE: &str = "--serve";

const DONE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/plain\r\n\
    date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    content-length: 64\r\n\r\n\
    sixty-four bytes are what the server answers, and no byte more.\n";

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: text/plain\r\n\
    date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
    content-length: 5\r\n\r\n\
    busy\n";
