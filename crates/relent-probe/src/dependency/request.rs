//! Reading one request from a socket: its head by `httparse`, its body counted and hashed as it comes.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use sha2::{Digest as _, Sha256};
use tokio::{io::AsyncReadExt as _, net::TcpStream};

use crate::record::{Body, Whole};

/// The head of a request, and how its body is framed.
#[derive(Debug)]
pub(super) struct RequestHead {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) framing: Framing,
    pub(super) after: Then,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// What becomes of the connection after the exchange, as the client wants it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Then {
    Keep,
    Close,
}

/// Reads a head. `None` at the end of the connection before its first byte.
///
/// # Errors
///
/// What the socket says; [`io::ErrorKind::InvalidData`] where it is not HTTP/1 or larger than 64 KiB.
pub(super) async fn head(stream: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<Option<RequestHead>> {
    loop {
        if let Some((head, length)) = parse(buffer)? {
            buffer.advance(length);
            return Ok(Some(head));
        }
        if buffer.len() > LONGEST_HEAD {
            return Err(invalid("the head is longer than 64 KiB"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return if buffer.is_empty() { Ok(None) } else { Err(invalid("the head breaks off")) };
        }
    }
}

fn parse(buffer: &[u8]) -> io::Result<Option<(RequestHead, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(buffer).map_err(|error| invalid(&error.to_string()))? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) => length,
    };
    let method = Method::from_bytes(request.method.unwrap_or_default().as_bytes());
    let method = method.map_err(|error| invalid(&error.to_string()))?;
    let mut map = HeaderMap::new();
    for header in request.headers.iter() {
        let name =
            HeaderName::from_bytes(header.name.as_bytes()).map_err(|error| invalid(&error.to_string()))?;
        let value = HeaderValue::from_bytes(header.value).map_err(|error| invalid(&error.to_string()))?;
        map.append(name, value);
    }
    let framing = framing(&map)?;
    let says = |word: &str| {
        let value = map.get(header::CONNECTION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let after = match request.version {
        Some(1) if !says("close") => Then::Keep,
        _ if says("keep-alive") => Then::Keep,
        _ => Then::Close,
    };
    let path = request.path.unwrap_or_default().to_owned();
    Ok(Some((RequestHead { method, path, headers: map, framing, after }, length)))
}

fn framing(headers: &HeaderMap) -> io::Result<Framing> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if text(header::TRANSFER_ENCODING).is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked")) {
        return Ok(Framing::Chunked);
    }
    match text(header::CONTENT_LENGTH) {
        None => Ok(Framing::Length(0)),
        Some(length) => {
            length.trim().parse().map(Framing::Length).map_err(|_| invalid("the content length is no number"))
        }
    }
}

/// Reads a body to its end, of which `keep` bytes are kept. Where it breaks off, what came until then.
pub(super) async fn body(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    framing: Framing,
    keep: usize,
) -> Body {
    let mut seen = Seen { hash: Sha256::new(), length: 0, kept: BytesMut::new(), keep };
    let whole = match framing {
        Framing::Length(length) => seen.take(stream, buffer, length).await,
        Framing::Chunked => seen.chunks(stream, buffer).await,
    };
    let digits = seen.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let kept: Bytes = seen.kept.freeze();
    let whole = if whole.is_ok() { Whole::Yes } else { Whole::No };
    Body { length: seen.length, sha256: digits, kept, whole }
}

struct Seen {
    hash: Sha256,
    length: u64,
    kept: BytesMut,
    keep: usize,
}

impl Seen {
    /// Takes this many bytes.
    async fn take(&mut self, stream: &mut TcpStream, buffer: &mut BytesMut, mut left: u64) -> io::Result<()> {
        while left > 0 {
            if buffer.is_empty() {
                more(stream, buffer).await?;
            }
            let piece = buffer.split_to(buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
            left -= piece.len() as u64;
            self.length += piece.len() as u64;
            self.hash.update(&piece);
            let room = self.keep.saturating_sub(self.kept.len()).min(piece.len());
            self.kept.extend_from_slice(&piece[..room]);
        }
        Ok(())
    }

    /// Takes chunks to the last, and the trailer.
    async fn chunks(&mut self, stream: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<()> {
        loop {
            let size = loop {
                match httparse::parse_chunk_size(buffer)
                    .map_err(|_| invalid("a chunk's size is no number"))?
                {
                    httparse::Status::Complete((line, size)) => {
                        buffer.advance(line);
                        break size;
                    }
                    httparse::Status::Partial => more(stream, buffer).await?,
                }
            };
            if size == 0 {
                return trailer(stream, buffer).await;
            }
            self.take(stream, buffer, size).await?;
            while buffer.len() < 2 {
                more(stream, buffer).await?;
            }
            buffer.advance(2);
        }
    }
}

/// Reads lines to the first empty one.
async fn trailer(stream: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<()> {
    loop {
        match buffer.iter().position(|byte| *byte == b'\n') {
            None if buffer.len() > LONGEST_HEAD => return Err(invalid("the trailer is longer than 64 KiB")),
            None => more(stream, buffer).await?,
            Some(end) => {
                let line = buffer.split_to(end + 1);
                if line.trim_ascii().is_empty() {
                    return Ok(());
                }
            }
        }
    }
}

async fn more(stream: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Four times what common servers allow, so that no client is refused here that is served elsewhere.
const LONGEST_HEAD: usize = 64 << 10;
