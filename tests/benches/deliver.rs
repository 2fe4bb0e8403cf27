//! How many messages a second go all the way: accepted, sent, answered, settled, with the receiver on the same
//! machine. Prints and judges nothing: what limits it is the sync of the disk and the receiver.
//!
//! `cargo xtask bench deliver`.

use std::{env, thread, time::Duration};

use relent_tests::{
    chance::Chance,
    receiver::{Act, Receiver},
    server,
    server::Server,
    wall,
};
use serde_json::json;

fn main() {
    // `cargo test --benches` runs it too, in a profile that would say nothing.
    if !env::args().any(|argument| argument == "--bench") {
        println!("deliver: skipped, run it with `cargo xtask bench deliver`");
        return;
    }
    for failing in [0, 30] {
        deliver(failing);
    }
}

fn deliver(failing: u64) {
    let receiver = Receiver::start(move |arrival| {
        let mixed = arrival.path.bytes().fold(arrival.nth as u64, |sum, byte| sum * 31 + u64::from(byte));
        let fails = Chance::new(mixed).within(1, 100) <= failing;
        Act::status(if fails { 503 } else { 200 })
    });
    let mut server = Server::start(CONFIG);
    let begin = wall::now();
    thread::scope(|scope| {
        for first in 0..SENDERS {
            let (server, receiver) = (&server, &receiver);
            scope.spawn(move || {
                let mut client = server.client();
                for number in (first..MESSAGES).step_by(SENDERS) {
                    let url = receiver.url(&format!("/orders/{number}"));
                    let body = json!({ "url": url, "policy": "quick", "body": "three apples, two pears" });
                    let reply = client.send("POST", "/v1/messages", Some(body.to_string().as_bytes()));
                    assert_eq!(reply.expect("an answer").status, 201);
                }
            });
        }
    });
    let accepted = begin.elapsed();
    let status = server.wait_until_idle(Duration::from_secs(120));
    let took = begin.elapsed();
    assert_eq!(server::count(&status, "delivered"), MESSAGES as u64, "{status:#}");
    let taken = receiver.log().iter().filter(|arrival| arrival.was_taken()).count();
    assert_eq!(taken, MESSAGES, "the receiver's own log disagrees");
    println!(
        "{failing:>2} % failing: {:>6.0} deliveries a second; {MESSAGES} messages, {} attempts, accepted within {accepted:.1?}, all within {took:.1?}",
        MESSAGES as f64 / took.as_secs_f64(),
        receiver.count(),
    );
    server.kill();
    server.assert_sound();
}

const CONFIG: &str = r#"
allow_target = ["127.0.0.0/8"]
log_level = "warn"

[policies.quick.retry]
backoff = { kind = "exponential", base = "20ms", factor = 2, max = "500ms" }
"#;
const MESSAGES: usize = 10_000;
const SENDERS: usize = 16;
