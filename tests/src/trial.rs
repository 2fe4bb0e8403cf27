//! One server and one receiver with a script: the stage of the tests that hold the real binary to a rule.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    receiver::{Act, Arrival, Receiver},
    server::Server,
    wall,
};

/// A server that may send to the loopback, and a receiver.
pub struct Trial {
    /// The server.
    pub server: Server,
    /// The receiver.
    pub receiver: Receiver,
}

impl Trial {
    /// Starts both. `policies` is TOML beside the policies that are always there: `quick`, which hardly waits,
    /// and `patient`, which waits a minute after each failure.
    ///
    /// # Panics
    ///
    /// If the server is not ready in time.
    #[track_caller]
    pub fn start(policies: &str, script: impl Fn(&Arrival) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with("", policies, script)
    }

    /// The same with settings of the whole server, which stand before all tables.
    ///
    /// # Panics
    ///
    /// If the server is not ready in time.
    #[track_caller]
    pub fn start_with(
        settings: &str,
        policies: &str,
        script: impl Fn(&Arrival) -> Act + Send + Sync + 'static,
    ) -> Self {
        let config = format!("{settings}\n{SETTINGS}\n{policies}");
        Self { server: Server::start(&config), receiver: Receiver::start(script) }
    }

    /// Hands in a message for the receiver's `path` and returns its id. `fields` are those of the API; without a
    /// policy among them it is `quick`.
    ///
    /// # Panics
    ///
    /// If it is not accepted.
    #[track_caller]
    pub fn post(&self, path: &str, fields: Value) -> String {
        let mut message = json!({ "url": self.receiver.url(path), "policy": "quick" });
        for (name, value) in fields.as_object().expect("fields are an object") {
            message[name] = value.clone();
        }
        let mut client = self.server.client();
        let reply =
            client.send("POST", "/v1/messages", Some(message.to_string().as_bytes())).expect("an answer");
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["id"].as_str().expect("an id").to_string()
    }

    /// Everything that the server says of a message.
    ///
    /// # Panics
    ///
    /// If there is no such message.
    #[track_caller]
    pub fn message(&self, id: &str) -> Value {
        self.server.client().json(&format!("/v1/messages/{id}"))
    }

    /// The message when it is in this state.
    ///
    /// # Panics
    ///
    /// If that does not come.
    #[track_caller]
    pub fn when(&self, id: &str, state: &str) -> Value {
        self.when_it(id, state, |message| message["state"] == state)
    }

    /// The message when it waits after so many attempts.
    ///
    /// # Panics
    ///
    /// If that does not come.
    #[track_caller]
    pub fn when_waiting_after(&self, id: &str, attempts: u64) -> Value {
        self.when_it(id, "waiting", |message| {
            message["state"] == "waiting" && message["attempts"] == attempts
        })
    }

    #[track_caller]
    fn when_it(&self, id: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut client = self.server.client();
        let mut last = Value::Null;
        let found = wall::poll(PATIENCE, || {
            last = client.json(&format!("/v1/messages/{id}"));
            is_so(&last).then_some(())
        });
        assert!(found.is_some(), "not {what} within {PATIENCE:?}: {last:#}\n{}", self.server.log());
        last
    }
}

/// How each attempt of a message ended, by its log.
pub fn outcomes(message: &Value) -> Vec<String> {
    let log = message["log"].as_array().map(Vec::as_slice).unwrap_or_default();
    log.iter().map(|entry| entry["outcome"].as_str().unwrap_or("in flight").to_string()).collect()
}

/// The last wait of a message.
///
/// # Panics
///
/// If it never waited.
#[track_caller]
pub fn last_wait(message: &Value) -> &Value {
    message["waits"]
        .as_array()
        .and_then(|waits| waits.last())
        .unwrap_or_else(|| panic!("no wait: {message:#}"))
}

/// A number of seconds in JSON.
///
/// # Panics
///
/// If it is not one.
#[track_caller]
pub fn seconds(value: &Value) -> Duration {
    Duration::from_secs_f64(value.as_f64().unwrap_or_else(|| panic!("not seconds: {value}")))
}

const SETTINGS: &str = r#"
allow_target = ["127.0.0.0/8"]
log_level = "debug"

[policies.quick]
attempt_timeout = "10s"

[policies.quick.retry]
backoff = { kind = "exponential", base = "20ms", factor = 2, max = "200ms" }

[policies.patient]
attempt_timeout = "10s"

[policies.patient.retry]
jitter = "none"
backoff = { kind = "constant", wait = "60s" }
"#;
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);
