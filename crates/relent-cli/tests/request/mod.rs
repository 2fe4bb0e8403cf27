//! A request as a receiver reads it from its socket.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    net::TcpStream,
};

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// `POST /path HTTP/1.1`.
    pub(crate) line: String,
    /// Lines in lower case.
    pub(crate) headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

/// Reads one. A sender that hangs up before it is an error: no request came.
pub(crate) fn read(stream: &TcpStream) -> io::Result<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut text = String::new();
        reader.read_line(&mut text).map(|_| text.trim_end().to_owned())
    };
    let first = line()?;
    if first.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut headers = Vec::new();
    loop {
        match line()? {
            end if end.is_empty() => break,
            header => headers.push(header.to_ascii_lowercase()),
        }
    }
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Request { line: first, headers, body })
}
