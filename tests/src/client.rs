//! A lean client of the API on one keep-alive connection: cheap enough to generate load beside the server.

use std::{
    io::{self, BufReader, ErrorKind, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

use crate::wire;

/// One connection, opened when first needed and anew after a failure.
pub struct Client {
    at: SocketAddr,
    token: String,
    stream: Option<BufReader<TcpStream>>,
    out: Vec<u8>,
}

/// What the server answered.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(at: SocketAddr, token: &str) -> Self {
        Self { at, token: token.to_string(), stream: None, out: Vec::new() }
    }

    /// Sends one request and reads its answer. Nothing is sent twice: after a failure the caller decides.
    ///
    /// # Errors
    ///
    /// The connection's, or `InvalidData` for what is not HTTP. The connection is given up.
    pub fn send(&mut self, method: &str, path: &str, body: Option<&[u8]>) -> io::Result<Reply> {
        self.send_with(method, path, &[], body)
    }

    /// The same with headers beside the usual ones.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> io::Result<Reply> {
        let sent = self.exchange(method, path, headers, body);
        if sent.is_err() {
            self.stream = None;
        }
        sent
    }

    /// Reads one resource.
    ///
    /// # Panics
    ///
    /// If it is not there, or not JSON.
    #[track_caller]
    pub fn json(&mut self, path: &str) -> Value {
        let reply = self.send("GET", path, None).unwrap_or_else(|error| panic!("GET {path}: {error}"));
        assert_eq!(reply.status, 200, "GET {path}: {}", reply.text());
        reply.json()
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> io::Result<Reply> {
        self.out.clear();
        write!(
            self.out,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n",
            self.at, self.token
        )?;
        for (name, value) in headers {
            write!(self.out, "{name}: {value}\r\n")?;
        }
        if let Some(body) = body {
            write!(self.out, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())?;
        }
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(body.unwrap_or_default());
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(connect(self.at)?),
        };
        stream.get_mut().write_all(&self.out)?;
        let parts = wire::read(stream)?.ok_or(ErrorKind::UnexpectedEof)?;
        let status = parts.first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, parts.first.clone()))?;
        if wire::find(&parts.headers, "connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.stream = None;
        }
        Ok(Reply { status, headers: parts.headers, body: parts.body })
    }
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        wire::find(&self.headers, name)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }
}

fn connect(at: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(BufReader::new(stream))
}

/// Longer than any answer takes; a server that hangs fails the test instead of stopping it.
const PATIENCE: Duration = Duration::from_secs(20);
