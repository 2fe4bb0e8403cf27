//! One connection: requests are read, the script is asked, and what it says is done to the socket.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use http::header;
use relent::{Clock as _, Timestamp};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::{
    Desk,
    request::{self, RequestHead, Then},
};
use crate::{
    act::{Act, Answer, Extent, has_body},
    hint,
    record::{Arrival, Body, End},
    script::{Greeting, Head},
};

/// Serves a connection to its end.
pub(super) async fn converse(stream: TcpStream, number: u64, desk: Arc<Desk>) {
    let _ = stream.set_nodelay(true); // a measurement must not wait for Nagle; where it fails it is only later
    let mut talk = Talk { stream, number, desk, buffer: BytesMut::new(), requests: 0 };
    while let Then::Keep = talk.exchange().await {}
}

struct Talk {
    stream: TcpStream,
    number: u64,
    desk: Arc<Desk>,
    buffer: BytesMut,
    requests: u64,
}

impl Talk {
    /// Reads one request and does with it what the script says.
    async fn exchange(&mut self) -> Then {
        let fresh = self.requests == 0;
        if !fresh && !self.has_more().await {
            return Then::Close;
        }
        if self.desk.play.greet() == Greeting::Reset {
            let at = self.now();
            self.requests += 1;
            self.desk.log.note(Arrival { end: End::Broken { at }, ..self.blank(at) });
            self.reset();
            return Then::Close;
        }
        if fresh && !self.has_more().await {
            return Then::Close; // a connection on which nothing was asked is no arrival
        }
        let at = self.now();
        self.requests += 1;
        match request::head(&mut self.stream, &mut self.buffer).await {
            Ok(Some(head)) => self.answer(head, at).await,
            Ok(None) => Then::Close,
            Err(error) => {
                let seen = self.now();
                let end = match error.kind() {
                    io::ErrorKind::InvalidData => End::Unreadable { at: seen },
                    _ => End::ClientGone { at: seen },
                };
                self.desk.log.note(Arrival { end, ..self.blank(at) });
                Then::Close
            }
        }
    }

    async fn answer(&mut self, head: RequestHead, at: Timestamp) -> Then {
        let RequestHead { method, path, headers, framing, after } = head;
        let desk = Arc::clone(&self.desk);
        let play = || desk.play.act(&Head { method: &method, path: &path, headers: &headers });
        let mut act = play();
        let expects = headers.get(header::EXPECT).is_some();
        let (path, headers) = (path.clone(), headers.clone());
        let arrival = Arrival { method: Some(method.clone()), path, headers, ..self.blank(at) };
        let arrival = self.desk.log.note(arrival);
        if act == Act::ResetUnread {
            return self.broken(arrival, Broken::Reset).await;
        }
        if expects && self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.is_err() {
            return self.gone(arrival);
        }
        let keep = self.desk.limits.body;
        let body = request::body(&mut self.stream, &mut self.buffer, framing, keep).await;
        let (whole, read_at) = (body.whole, self.now());
        self.desk.log.amend(arrival, |arrival| {
            arrival.body = body;
            arrival.read_at = Some(read_at);
        });
        if whole == crate::record::Whole::No {
            return self.gone(arrival);
        }
        while let Act::Held(gate) = act {
            // Both arms are cancel safe: a gate is only waited for, and what was read stands in the buffer.
            tokio::select! {
                () = gate.opened() => act = play(),
                () = leaves(&self.stream, &mut self.buffer) => return self.gone(arrival),
            }
        }
        match act {
            Act::Held(_) => unreachable!("it was held until it was not"),
            Act::Answer(answer) => self.write(arrival, &answer, method == http::Method::HEAD, after).await,
            Act::Hang => {
                leaves(&self.stream, &mut self.buffer).await;
                self.gone(arrival)
            }
            Act::Reset | Act::ResetUnread => self.broken(arrival, Broken::Reset).await,
            Act::Close => self.broken(arrival, Broken::Closed).await,
        }
    }

    async fn write(&mut self, arrival: u64, answer: &Answer, headless: bool, after: Then) -> Then {
        let clock = self.desk.clock;
        if !answer.after.is_zero() && self.leaves_within(answer.after).await {
            return self.gone(arrival);
        }
        let head = head_text(answer, after, clock.now());
        let body: &[u8] = match answer.extent {
            _ if headless || !has_body(answer.status) => &[],
            Extent::Whole => &answer.body,
            Extent::Half => &answer.body[..answer.body.len() / 2],
        };
        let written = if answer.head_takes.is_zero() {
            // In one piece, so that what is measured is the client and not its reader's second wake-up.
            self.stream.write_all(&[head.as_bytes(), body].concat()).await.is_ok()
        } else {
            self.dribble(head.as_bytes(), answer.head_takes).await
                && self.stream.write_all(body).await.is_ok()
        };
        if !written {
            return self.gone(arrival);
        }
        let end = End::Answered { status: answer.status, at: clock.now() };
        self.desk.log.amend(arrival, |arrival| arrival.end = end);
        match (answer.extent, after) {
            (Extent::Whole, Then::Keep) => Then::Keep,
            _ => {
                let _ = self.stream.shutdown().await; // where it fails the client was faster
                Then::Close
            }
        }
    }

    /// Writes in pieces over a time. False where the client went away.
    async fn dribble(&mut self, bytes: &[u8], over: Duration) -> bool {
        let size = bytes.len().div_ceil(PIECES).max(1);
        let pause = over / u32::try_from(bytes.len().div_ceil(size)).unwrap_or(1);
        for piece in bytes.chunks(size) {
            if self.leaves_within(pause).await || self.stream.write_all(piece).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn broken(&mut self, arrival: u64, how: Broken) -> Then {
        match how {
            Broken::Reset => self.reset(),
            Broken::Closed => drop(self.stream.shutdown().await), // where it fails the client was faster
        }
        let at = self.now();
        self.desk.log.amend(arrival, |arrival| arrival.end = End::Broken { at });
        Then::Close
    }

    fn gone(&self, arrival: u64) -> Then {
        let at = self.now();
        self.desk.log.amend(arrival, |arrival| arrival.end = End::ClientGone { at });
        Then::Close
    }

    /// From now on the closing of this socket is a reset.
    fn reset(&self) {
        // Where the option cannot be set the client has closed already and sees nothing of it.
        let _ = self.stream.set_zero_linger();
    }

    /// Waits for the first byte of a request. False at the end of the connection.
    async fn has_more(&mut self) -> bool {
        !self.buffer.is_empty() || matches!(self.stream.peek(&mut [0]).await, Ok(1..))
    }

    /// Waits, and tells whether the client went away meanwhile.
    async fn leaves_within(&mut self, length: Duration) -> bool {
        // Both arms are cancel safe: a sleep does nothing but wait, and what was read stands in the buffer.
        tokio::select! {
            () = self.desk.clock.sleep(length) => false,
            () = leaves(&self.stream, &mut self.buffer) => true,
        }
    }

    fn now(&self) -> Timestamp {
        self.desk.clock.now()
    }

    fn blank(&self, at: Timestamp) -> Arrival {
        Arrival {
            number: 0,
            at,
            read_at: None,
            connection: self.number,
            on_connection: self.requests,
            method: None,
            path: String::new(),
            headers: http::HeaderMap::new(),
            body: Body::default(),
            end: End::Pending,
        }
    }
}

/// A way of not answering.
#[derive(Clone, Copy)]
enum Broken {
    Reset,
    Closed,
}

/// Waits until the client goes away. What it sends meanwhile is the beginning of its next request and is kept; a
/// client that goes on sending without an answer is one that went away.
async fn leaves(stream: &TcpStream, buffer: &mut BytesMut) {
    loop {
        if stream.readable().await.is_err() || buffer.len() > MOST_AHEAD {
            return;
        }
        match stream.try_read_buf(buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

fn head_text(answer: &Answer, after: Then, now: Timestamp) -> String {
    use std::fmt::Write as _;
    let reason = answer.status.canonical_reason().unwrap_or("Scripted");
    let mut text =
        format!("HTTP/1.1 {} {reason}\r\ndate: {}\r\n", answer.status.as_str(), hint::date(now.as_secs()));
    if has_body(answer.status) {
        let _ = write!(text, "content-length: {}\r\n", answer.body.len());
    }
    if after == Then::Close || answer.extent == Extent::Half {
        text += "connection: close\r\n";
    }
    let hints = answer.hints.iter().flat_map(|hint| hint.headers(now));
    for (name, value) in answer.headers.iter().cloned().chain(hints) {
        let _ = write!(text, "{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
    }
    text + "\r\n"
}

/// Into how many pieces a slow head is cut.
const PIECES: usize = 20;
/// How much of a next request is read while this one waits.
const MOST_AHEAD: usize = 1 << 20;
