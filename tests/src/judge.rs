//! Compares the books of a run: what the sender was told, what the receiver saw, and what the server says of
//! each message. The server's counters are not asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::Value;

use crate::{
    campaign::{self, Books},
    receiver::{Answered, Arrival},
    wall,
};

/// What the books say together.
#[derive(Debug, Default)]
pub struct Judgement {
    /// Messages that the sender was told are accepted.
    pub accepted: usize,
    /// Those of them that ended delivered.
    pub delivered: usize,
    /// Those of them that were given up.
    pub dead: usize,
    /// Accepted messages of which the server knows nothing.
    pub missing: Vec<usize>,
    /// Messages that the receiver took more than once.
    pub taken_again: usize,
    /// Attempts of all of them, by their logs.
    pub attempts: usize,
    /// Attempts whose end nobody saw.
    pub unknown: usize,
    /// Kills that left at least one of them.
    pub kills_that_hit: BTreeSet<usize>,
    /// Everything that must not be, in words.
    pub faults: Vec<String>,
}

impl Judgement {
    /// Reads every accepted message over the API and judges the run.
    ///
    /// # Panics
    ///
    /// If the API does not answer.
    pub fn of(books: &Books) -> Self {
        let mut client = books.server.client();
        Self::compare(&books.accepted, &books.log, &books.kills, |id| {
            let reply = client.send("GET", &format!("/v1/messages/{id}"), None).expect("the API answers");
            match reply.status {
                404 => None,
                _ => Some(reply.json()),
            }
        })
    }

    fn compare(
        accepted: &BTreeMap<usize, String>,
        log: &[Arrival],
        kills: &[u64],
        mut read: impl FnMut(&str) -> Option<Value>,
    ) -> Self {
        let mut judgement = Self { accepted: accepted.len(), ..Self::default() };
        let ids: BTreeSet<&String> = accepted.values().collect();
        if ids.len() != accepted.len() {
            judgement.faults.push("two messages were accepted under one id".into());
        }
        let mut arrivals: BTreeMap<usize, Vec<&Arrival>> = BTreeMap::new();
        for arrival in log {
            match campaign::number_of(&arrival.path).filter(|number| accepted.contains_key(number)) {
                Some(number) => arrivals.entry(number).or_default().push(arrival),
                None => {
                    judgement.faults.push(format!("{}: nobody was told that this is accepted", arrival.path))
                }
            }
        }
        for (&number, id) in accepted {
            match read(id) {
                Some(message) => {
                    let arrivals = arrivals.remove(&number).unwrap_or_default();
                    judgement.judge(number, id, &message, &arrivals, kills);
                }
                None => judgement.missing.push(number),
            }
        }
        judgement
    }

    /// Fails unless every accepted message ended, and ended as the books say.
    ///
    /// # Panics
    ///
    /// With what is wrong.
    #[track_caller]
    pub fn assert_nothing_is_lost(&self) {
        assert!(self.missing.is_empty(), "accepted and lost: {:?}; {self}", self.missing);
        assert!(self.faults.is_empty(), "{self}:\n{}", self.faults.join("\n"));
    }

    /// Fails unless the store, counted row by row by `fsck`, holds the accepted messages and no others: a message
    /// that was stored twice under two ids is sound to the store, and known here alone.
    ///
    /// # Panics
    ///
    /// With the first count that differs.
    #[track_caller]
    pub fn assert_is_all_of(&self, counted: &Value) {
        if let Some(differs) = self.differs_from(counted) {
            panic!("{differs}; {self}");
        }
    }

    fn differs_from(&self, counted: &Value) -> Option<String> {
        let known = [
            ("accepted", self.accepted),
            ("delivered", self.delivered),
            ("dead", self.dead),
            ("attempts", self.attempts),
            ("waiting", 0),
            ("held", 0),
            ("in_flight", 0),
            ("discarded", 0),
            ("cancelled", 0),
        ];
        let (name, known) = known.into_iter().find(|(name, known)| counted[name] != *known)?;
        Some(format!("fsck counts {} {name}, and the books {known}", counted[name]))
    }

    fn judge(&mut self, number: usize, id: &str, message: &Value, arrivals: &[&Arrival], kills: &[u64]) {
        let log = message["log"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.attempts += log.len();
        for entry in log.iter().filter(|entry| entry["outcome"] == "unknown") {
            let began = wall::millis_of(entry["began_at"].as_str().unwrap_or_default());
            self.unknown += 1;
            self.kills_that_hit.extend(kills.iter().position(|kill| began <= *kill));
        }
        let mut fault = |what: String| self.faults.push(format!("message {number}, {id}: {what}"));
        let mut tried = BTreeSet::new();
        for arrival in arrivals {
            if let Err(what) = agrees(number, id, log, arrival) {
                fault(what);
            }
            if !tried.insert(arrival.attempt()) {
                fault(format!("attempt {:?} arrived twice", arrival.attempt()));
            }
        }
        let taken: Vec<_> = arrivals.iter().filter(|arrival| arrival.was_taken()).collect();
        let known = taken.iter().filter(|arrival| outcome(log, arrival) != Some("unknown")).count();
        if known > 1 {
            fault(format!("taken {} times, and only {} are unknown", taken.len(), taken.len() - known));
        }
        match message["state"].as_str() {
            Some("delivered") if taken.is_empty() => {
                fault("delivered, and the receiver never took it".into())
            }
            Some("delivered") if known == 0 => fault("delivered, and no attempt says so".into()),
            Some("dead") if known > 0 => fault("dead, and the receiver took it".into()),
            Some("dead") if !campaign::is_refused(number) && message["reason"] != "poison_crash" => {
                fault(format!("dead because of {}", message["reason"]));
            }
            Some("delivered") => self.delivered += 1,
            Some("dead") => self.dead += 1,
            _ => fault(format!("not ended: {}", message["state"])),
        }
        self.taken_again += usize::from(taken.len() > 1);
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} delivered, {} dead, {} missing, {} taken again after an unknown end, {} unknown attempts from {} kills, {} faults",
            self.delivered,
            self.dead,
            self.missing.len(),
            self.taken_again,
            self.unknown,
            self.kills_that_hit.len(),
            self.faults.len()
        )
    }
}

/// Whether what arrived is what was sent, and is written in the message's log as it was answered.
fn agrees(number: usize, id: &str, log: &[Value], arrival: &Arrival) -> Result<(), String> {
    if arrival.id() != Some(id) {
        return Err(format!("arrived as {:?}", arrival.id()));
    }
    if arrival.header("idempotency-key") != Some(&campaign::key_of(number)) {
        return Err(format!("arrived under the key {:?}", arrival.header("idempotency-key")));
    }
    if arrival.body != campaign::body_of(number).as_bytes() {
        return Err(format!("arrived with the body {}", String::from_utf8_lossy(&arrival.body)));
    }
    let logged = outcome(log, arrival)
        .ok_or_else(|| format!("attempt {:?} arrived and is not in its log", arrival.attempt()))?;
    let answered = match arrival.answer {
        Answered::Written(status) | Answered::Unwritten(status) => status.to_string(),
        Answered::Withheld => "reset".to_string(),
        Answered::Pending => "unknown".to_string(),
    };
    if logged != "unknown" && logged != answered {
        return Err(format!(
            "attempt {:?} was answered {answered} and is logged {logged}",
            arrival.attempt()
        ));
    }
    Ok(())
}

/// How the log says that an arrived attempt ended.
fn outcome<'a>(log: &'a [Value], arrival: &Arrival) -> Option<&'a str> {
    let attempt = u64::from(arrival.attempt()?);
    log.iter().find(|entry| entry["attempt"] == attempt)?["outcome"].as_str()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[test]
    fn books_that_agree_are_not_faulted() {
        let judgement = compare(&[arrival(1, 503), arrival(2, 200)], &message("delivered", &["503", "200"]));
        judgement.assert_nothing_is_lost();
        assert_eq!((judgement.delivered, judgement.taken_again, judgement.unknown), (1, 0, 0));
    }

    #[test]
    fn an_unknown_end_explains_a_second_taking_and_counts_for_its_kill() {
        let judgement =
            compare(&[arrival(1, 200), arrival(2, 200)], &message("delivered", &["unknown", "200"]));
        judgement.assert_nothing_is_lost();
        assert_eq!((judgement.taken_again, judgement.kills_that_hit), (1, BTreeSet::from([1])));
    }

    #[test]
    fn every_planted_fault_is_found() {
        let delivered = |log: &[&str]| message("delivered", log);
        let other_body = Arrival { body: b"something else".to_vec(), ..arrival(1, 200) };
        let other_path = Arrival { path: "/orders/8".into(), ..arrival(1, 200) };
        let other_key = Arrival { headers: headers("order-8", 1), ..arrival(1, 200) };
        for (log, message, fault) in [
            (vec![arrival(1, 200), arrival(2, 200)], delivered(&["200", "200"]), "taken 2 times"),
            (vec![], delivered(&["200"]), "the receiver never took it"),
            (vec![arrival(1, 503)], delivered(&["503"]), "the receiver never took it"),
            (vec![arrival(1, 200)], delivered(&["unknown"]), "no attempt says so"),
            (vec![arrival(1, 200)], message("dead", &["200"]), "dead, and the receiver took it"),
            (vec![arrival(1, 503)], message("dead", &["503"]), "dead because of"),
            (vec![arrival(1, 503)], message("waiting", &["503"]), "not ended"),
            (vec![arrival(1, 503), arrival(1, 200)], delivered(&["503", "200"]), "arrived twice"),
            (vec![arrival(1, 200), arrival(2, 503)], delivered(&["200"]), "is not in its log"),
            (vec![arrival(1, 503), arrival(2, 200)], delivered(&["500", "200"]), "is logged 500"),
            (vec![other_body], delivered(&["200"]), "with the body"),
            (vec![other_key], delivered(&["200"]), "under the key"),
            (vec![other_path, arrival(1, 200)], delivered(&["200"]), "nobody was told"),
        ] {
            let judgement = compare(&log, &message);
            let found = judgement.faults.iter().any(|found| found.contains(fault));
            assert!(found, "{fault}: {:?}", judgement.faults);
        }
        let lost = Judgement::compare(&accepted(), &[], &[], |_| None);
        assert_eq!(lost.missing, [7]);
    }

    #[test]
    fn a_store_that_holds_one_more_or_one_less_does_not_agree() {
        let judgement = compare(&[arrival(1, 503), arrival(2, 200)], &message("delivered", &["503", "200"]));
        let counted = json!({
            "accepted": 1, "delivered": 1, "dead": 0, "attempts": 2,
            "waiting": 0, "held": 0, "in_flight": 0, "discarded": 0, "cancelled": 0,
        });
        judgement.assert_is_all_of(&counted);
        for (name, count) in [("accepted", 2), ("delivered", 2), ("dead", 1), ("attempts", 1), ("waiting", 1)]
        {
            let mut other = counted.clone();
            other[name] = json!(count);
            let differs = judgement.differs_from(&other).expect(name);
            assert!(differs.starts_with(&format!("fsck counts {count} {name}")), "{differs}");
        }
    }

    fn compare(log: &[Arrival], message: &Value) -> Judgement {
        Judgement::compare(&accepted(), log, &[500, 1500], |id| (id == "id-7").then(|| message.clone()))
    }

    fn accepted() -> BTreeMap<usize, String> {
        BTreeMap::from([(7, "id-7".to_string())])
    }

    fn message(state: &str, outcomes: &[&str]) -> Value {
        let entry = |(at, outcome): (usize, &&str)| json!({ "attempt": at + 1, "began_at": "1970-01-01T00:00:01.000Z", "outcome": outcome });
        json!({ "state": state, "log": outcomes.iter().enumerate().map(entry).collect::<Vec<_>>() })
    }

    fn arrival(attempt: u32, status: u16) -> Arrival {
        Arrival {
            at: Duration::ZERO,
            unix_millis: 0,
            nth: 1,
            method: "POST".into(),
            path: "/orders/7".into(),
            headers: headers("order-7", attempt),
            body: campaign::body_of(7).into_bytes(),
            answer: Answered::Written(status),
        }
    }

    fn headers(key: &str, attempt: u32) -> Vec<(String, String)> {
        let header = |name: &str, value: &str| (name.to_string(), value.to_string());
        vec![
            header("idempotency-key", key),
            header(crate::receiver::ID_HEADER, "id-7"),
            header(crate::receiver::ATTEMPT_HEADER, &attempt.to_string()),
        ]
    }
}
