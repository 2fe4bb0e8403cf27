//! HTTP/1.1 written out by hand: as much of it as the client and the receiver need, and no more.

use std::io::{self, BufRead, ErrorKind};

/// The head of a message and its body.
pub(crate) struct Parts {
    /// The request line or the status line.
    pub(crate) first: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Reads one request or response. `None`: the connection ended before its first byte.
///
/// A message without `Content-Length` has no body; other framing is refused, since nobody here uses it.
pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Parts>> {
    let Some(first) = line(from)? else { return Ok(None) };
    let mut headers = Vec::new();
    loop {
        let header = line(from)?.ok_or(ErrorKind::UnexpectedEof)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').ok_or_else(|| invalid(&header))?;
        headers.push((name.to_string(), value.trim().to_string()));
    }
    if let Some(coding) = find(&headers, "transfer-encoding") {
        return Err(invalid(&format!("transfer-encoding: {coding}")));
    }
    let length = match find(&headers, "content-length") {
        Some(text) => text.parse().map_err(|_| invalid(text))?,
        None => 0,
    };
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Some(Parts { first, headers, body }))
}

/// The value of the first header of that name.
pub(crate) fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if !line.ends_with(b"\r\n") {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).map(Some).map_err(|_| invalid("a head that is not text"))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("not understood: {what}"))
}
