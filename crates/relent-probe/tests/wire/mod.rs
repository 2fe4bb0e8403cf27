//! A client that does only what the test says, byte by byte.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use relent_probe::Dependency;

pub(crate) fn dial(dependency: &Dependency) -> TcpStream {
    let stream = TcpStream::connect(dependency.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sends a request that closes its connection, and reads all that comes.
pub(crate) fn ask(dependency: &Dependency, path: &str) -> io::Result<String> {
    let mut stream = dial(dependency);
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Reads one answer whose body has a length, and leaves the connection open.
pub(crate) fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    text + &String::from_utf8(body).unwrap()
}

/// Waits until `done` is true of what has arrived.
pub(crate) fn until(dependency: &Dependency, done: impl FnMut(&[relent_probe::Arrival]) -> bool) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let waited = async { tokio::time::timeout(Duration::from_secs(30), dependency.until(done)).await };
    runtime.block_on(waited).expect("after 30 s it still has not happened");
}
