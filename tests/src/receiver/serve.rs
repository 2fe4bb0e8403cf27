//! The receiver's threads: one that accepts, and one for each connection.

use std::{
    io::{self, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, atomic::Ordering},
    thread::{self, JoinHandle},
};

use super::{Act, Answer, Answered, Shared};
use crate::{wall, wire};

/// Accepts until the receiver ends, then ends every connection and waits for its thread.
pub(super) fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    for name in 0.. {
        let accepted = listener.accept();
        if shared.ended.load(Ordering::SeqCst) {
            break;
        }
        let Ok((stream, _)) = accepted else { continue };
        let Ok(copy) = stream.try_clone() else { continue };
        shared.open().insert(name, copy);
        shared.connections.fetch_add(1, Ordering::SeqCst);
        let shared = Arc::clone(shared);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread::spawn(move || {
            // A sender that was killed leaves its connection in the middle of a request: that is what this
            // receiver is for, and the log says what it knew by then.
            drop(connection(&stream, &shared));
            shared.open().remove(&name);
        }));
    }
    for stream in shared.open().values() {
        drop(stream.shutdown(Shutdown::Both));
    }
    for thread in threads {
        thread.join().expect("the script does not panic");
    }
}

fn connection(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut from = BufReader::new(stream);
    while let Some(parts) = wire::read(&mut from)? {
        let place = shared.arrived(parts)?;
        let arrival = shared.log().entries[place].clone();
        shared.busy.fetch_add(1, Ordering::SeqCst);
        let act = (shared.script)(&arrival);
        let goes_on = perform(act, stream, shared, place);
        shared.busy.fetch_sub(1, Ordering::SeqCst);
        if !goes_on? {
            break;
        }
    }
    Ok(())
}

/// Does what the script says; whether the connection goes on.
fn perform(act: Act, mut stream: &TcpStream, shared: &Shared, place: usize) -> io::Result<bool> {
    match act {
        Act::Answer(answer) => {
            if !answer.after.is_zero() {
                wall::sleep(answer.after);
            }
            // The work is done from here on, whether or not the sender will hear of it.
            shared.answered(place, Answered::Unwritten(answer.status));
            stream.write_all(&bytes(&answer))?;
            shared.answered(place, Answered::Written(answer.status));
            Ok(true)
        }
        Act::Silence => {
            shared.answered(place, Answered::Withheld);
            stream.read_to_end(&mut Vec::new())?;
            Ok(false)
        }
        Act::Hangup => {
            shared.answered(place, Answered::Withheld);
            stream.shutdown(Shutdown::Both)?;
            Ok(false)
        }
    }
}

fn bytes(answer: &Answer) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} -\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&answer.body);
    bytes
}
