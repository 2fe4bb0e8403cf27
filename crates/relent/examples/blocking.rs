//! Blocking calls on threads, with no runtime. Nothing can end a call that blocks, so it is given its time: the
//! attempt's, as the time-out of its socket.
//!
//!     cargo run -p relent --example blocking

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use relent::{Attempt, Pipeline, Policy};

/// Asks for the stock of apples, in as much time as the attempt has.
fn ask(stock: SocketAddr, attempt: Attempt) -> io::Result<String> {
    let mut connection = TcpStream::connect_timeout(&stock, attempt.allowed())?;
    connection.set_read_timeout(Some(attempt.allowed()))?;
    connection.write_all(b"apples\n")?;
    let mut answer = [0; 2];
    connection.read_exact(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Hangs up on its first caller and answers the second.
fn serve(listener: &TcpListener) -> io::Result<()> {
    drop(listener.accept()?);
    let (mut connection, _) = listener.accept()?;
    connection.write_all(b"17")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || serve(&listener));

    let inventory = Pipeline::new(Policy::live())?.named("inventory");
    let (answer, report) = inventory.safe().run_blocking_with_report(|attempt| ask(address, attempt));

    println!("{} apples after {} attempts", answer?, report.attempts);
    assert_eq!(report.attempts, 2, "a connection that breaks says \"not now\"");
    server.join().expect("the server does not panic")?;
    Ok(())
}
