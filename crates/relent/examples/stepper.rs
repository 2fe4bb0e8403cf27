//! A loop of one's own: the operation borrows a connection and a buffer mutably, which no closure that is called
//! again and again could do. The stepper asks the gates and the policy; the loop owns the waiting.
//!
//!     cargo run -p relent --example stepper

use std::io;

use relent::{Backoff, Clock, Decision, Pipeline, Policy, RetryPolicy, StopReason, TokioClock};

/// A connection that breaks once, after half of the answer.
struct Connection {
    broken: u32,
}

impl Connection {
    async fn read_into(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        if self.broken == 0 {
            self.broken += 1;
            buffer.extend(b"half of the ans");
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        buffer.extend(b"the whole answer");
        Ok(buffer.len())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let live = Policy::live();
    let backoff = Backoff::Constant(std::time::Duration::from_millis(20));
    let policy = Policy { retry: RetryPolicy { backoff, ..live.retry }, ..live };
    let users = Pipeline::new(policy)?.named("users");

    let mut connection = Connection { broken: 0 };
    let mut buffer = Vec::new();
    let mut call = users.safe().call();
    let read = loop {
        // Asks the deadline, the switch, the limits, the budget and the breaker; an error says which refused.
        let attempt = call.admitted().await?;
        buffer.clear(); // what a broken attempt has left
        let time = attempt.remaining(TokioClock.now());
        let result = match tokio::time::timeout(time, call.scope(connection.read_into(&mut buffer))).await {
            Ok(result) => result,
            Err(_elapsed) => Err(io::ErrorKind::TimedOut.into()),
        };
        match call.conclude(&result) {
            Decision::Retry(wait) => {
                println!("attempt {}: {result:?}; waiting {wait}", attempt.number);
                TokioClock.sleep(wait.length).await;
            }
            Decision::Stop(reason) => {
                println!("attempt {}: {result:?}; {}", attempt.number, reason.name());
                break result?;
            }
        }
    };

    let report = call.report().expect("it has stopped");
    assert_eq!((report.stop, report.attempts), (StopReason::Succeeded, 2));
    assert_eq!((read, &*buffer), (16, &b"the whole answer"[..]));
    Ok(())
}
