//! One run of the main promise: messages go in while the server is killed again and again, and the sender and
//! the receiver each keep their own books. [`judge`](crate::judge) compares the books afterwards.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    chance::Chance,
    client::Client,
    power::Disk,
    receiver::{Act, Answer, Arrival, Receiver},
    server::Server,
    wall,
};

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Determines the receiver's failures, its delays and the moments of the kills.
    pub seed: u64,
    /// How many messages.
    pub messages: usize,
    /// How many kills.
    pub kills: usize,
    /// What a kill takes with it.
    pub fault: Fault,
    /// How the store syncs.
    pub synchronous: Synchronous,
}

/// What a kill takes with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The process.
    Process,
    /// The process, and all that was written since the last sync.
    Power,
}

/// `store.synchronous` of the settings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Synchronous {
    /// Every commit is synced.
    Full,
    /// None is.
    Off,
}

/// The books after a run.
pub struct Books {
    /// What the sender was told: the number of each message, and the id it was accepted under.
    pub accepted: BTreeMap<usize, String>,
    /// What the receiver saw.
    pub log: Vec<Arrival>,
    /// When the server was killed, in milliseconds since the Unix epoch.
    pub kills: Vec<u64>,
    /// The server, idle.
    pub server: Server,
}

impl Campaign {
    /// Runs it: about the time that the receiver needs, and some seconds for the restarts.
    ///
    /// # Panics
    ///
    /// If the server does not come back, work does not end, or after a power cut that should have done no harm
    /// `fsck` finds any.
    pub fn run(self) -> Books {
        let mut chance = Chance::new(self.seed);
        let receiver = flaky_receiver(chance.bits());
        let (disk, mut server) = self.serve();
        let desk = Desk::new(&server);
        let (accepted, kills) = thread::scope(|scope| {
            let closing = Closing(&desk);
            let senders: Vec<_> = (0..SENDERS)
                .map(|first| {
                    let (desk, receiver) = (&desk, &receiver);
                    scope.spawn(move || send(desk, receiver, (first..self.messages).step_by(SENDERS)))
                })
                .collect();
            let kills = (1..=self.kills).map(|kill| {
                desk.allow(self.messages * kill / (self.kills + 1));
                self.wait_for_a_random_moment(&receiver, &mut chance);
                let killed = self.interrupt(&mut server, disk.as_ref());
                desk.move_to(&server);
                killed
            });
            let kills = kills.collect();
            desk.allow(self.messages);
            let told = senders.into_iter().map(|sender| sender.join().expect("a sender panicked"));
            let accepted = told.flatten().collect();
            drop(closing);
            (accepted, kills)
        });
        server.wait_until_idle(IDLE_WITHIN);
        Books { accepted, log: receiver.log(), kills, server }
    }

    fn serve(&self) -> (Option<Disk>, Server) {
        let server = Server::prepare(&config(self.synchronous));
        let (disk, mut server) = match self.fault {
            Fault::Process => (None, server),
            Fault::Power => {
                let (disk, server) = Disk::under(server);
                (Some(disk), server)
            }
        };
        server.restart();
        (disk, server)
    }

    /// The moments are counted in deliveries, not in time, so that on a slow machine too a kill finds work under
    /// way: each is somewhere before the work allowed so far can be done.
    fn wait_for_a_random_moment(&self, receiver: &Receiver, chance: &mut Chance) {
        let new = u64::try_from(self.messages / (self.kills + 1)).unwrap_or(u64::MAX);
        let deliveries = chance.within(1, new * 8 / 10);
        let at = receiver.count() + usize::try_from(deliveries).unwrap_or(usize::MAX);
        wall::eventually("deliveries between two kills", IDLE_WITHIN, || {
            (receiver.count() >= at).then_some(())
        });
        wall::sleep(Duration::from_micros(chance.within(0, 20_000)));
    }

    /// Kills the server and starts it again; when it was killed, in milliseconds since the Unix epoch.
    fn interrupt(&self, server: &mut Server, disk: Option<&Disk>) -> u64 {
        server.kill();
        let now = wall::unix_millis();
        if let Some(disk) = disk {
            disk.lose_power(server);
            if self.synchronous == Synchronous::Full {
                assert!(disk.synced() > 0, "nothing was ever synced: the shim is not under the server");
                server.assert_sound();
            }
        }
        server.restart();
        now
    }
}

/// What the senders share: how far they may go, and where the server is now.
struct Desk {
    allowed: AtomicUsize,
    at: Mutex<(SocketAddr, String)>,
    closed: AtomicBool,
}

/// Sends the senders home when it is dropped: when the run fails, they need not wait for a server that is gone.
struct Closing<'a>(&'a Desk);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }
}

impl Desk {
    fn new(server: &Server) -> Self {
        Self {
            allowed: AtomicUsize::new(0),
            at: Mutex::new(server.endpoint()),
            closed: AtomicBool::new(false),
        }
    }

    fn allow(&self, messages: usize) {
        self.allowed.store(messages, Ordering::SeqCst);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn move_to(&self, server: &Server) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = server.endpoint();
    }

    fn client(&self) -> Client {
        let (at, token) = self.at.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Client::new(at, &token)
    }
}

/// Sends its messages one after the other, each under its own key until it is told an id.
fn send(desk: &Desk, to: &Receiver, numbers: impl Iterator<Item = usize>) -> Vec<(usize, String)> {
    let mut client = desk.client();
    let mut accepted = Vec::new();
    for number in numbers {
        while number >= desk.allowed.load(Ordering::SeqCst) && !desk.is_closed() {
            wall::sleep(Duration::from_millis(2));
        }
        let message = json!({
            "url": to.url(&path_of(number)), "key": key_of(number), "body": body_of(number), "policy": "quick",
        });
        let message = message.to_string();
        let told = wall::eventually("an acceptance", IDLE_WITHIN, || {
            if desk.is_closed() {
                return Some(None);
            }
            match client.send("POST", "/v1/messages", Some(message.as_bytes())) {
                Ok(reply) if matches!(reply.status, 200 | 201) => {
                    Some(Some(reply.json()["id"].as_str().expect("an id").to_string()))
                }
                Ok(reply) if reply.status == 503 => None,
                Ok(reply) => panic!("{}: {}", reply.status, reply.text()),
                // Whether it was accepted is not known: the same again, under the same key.
                Err(_) => {
                    client = desk.client();
                    None
                }
            }
        });
        let Some(id) = told else { break };
        accepted.push((number, id));
    }
    accepted
}

/// A receiver that works 5 to 60 ms on each delivery and fails 30 % of them, in every way that says "not now";
/// one message in a hundred it never takes.
fn flaky_receiver(seed: u64) -> Receiver {
    Receiver::start(move |arrival| {
        let number = number_of(&arrival.path).unwrap_or(usize::MAX);
        let mixed = seed ^ (number as u64) << 20 ^ arrival.nth as u64;
        let mut chance = Chance::new(Chance::new(mixed).bits());
        let after = Duration::from_millis(chance.within(5, 60));
        let status = match chance.within(1, 100) {
            _ if is_refused(number) => 422,
            1..=8 => 503,
            9..=14 => 500,
            15..=19 => 429,
            20..=24 => 408,
            25..=30 => {
                wall::sleep(after);
                return Act::Hangup;
            }
            _ => 200,
        };
        Act::Answer(Answer { status, headers: Vec::new(), body: b"noted".to_vec(), after })
    })
}

/// Whether the receiver never takes a message.
pub(crate) fn is_refused(number: usize) -> bool {
    number % 100 == 99
}

/// The path of a message at the receiver.
pub(crate) fn path_of(number: usize) -> String {
    format!("/orders/{number}")
}

/// The message of a path.
pub(crate) fn number_of(path: &str) -> Option<usize> {
    path.strip_prefix("/orders/")?.parse().ok()
}

/// The key of a message.
pub(crate) fn key_of(number: usize) -> String {
    format!("order-{number}")
}

/// The body of a message.
pub(crate) fn body_of(number: usize) -> String {
    format!("order {number}, three of them")
}

fn config(synchronous: Synchronous) -> String {
    let synchronous = match synchronous {
        Synchronous::Full => "full",
        Synchronous::Off => "off",
    };
    format!(
        r#"
allow_target = ["127.0.0.0/8"]
log_level = "warn"

[store]
synchronous = "{synchronous}"

[policies.quick]
attempt_timeout = "5s"
business_deadline = "10m"

[policies.quick.retry]
max_wait = "500ms"
backoff = {{ kind = "exponential", base = "20ms", factor = 2.0, max = "500ms" }}
"#
    )
}

const SENDERS: usize = 8;
/// Work that ends in two seconds where nothing else runs.
const IDLE_WITHIN: Duration = Duration::from_secs(90);
