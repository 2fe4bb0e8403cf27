//! Each fault that a store can have is found, under its own rule.

use relent_core::{Observed, Settlement, StopReason};
use relent_ledger::{AttemptEnd, Finish, Ledger, Rule, Truncated, suite::block_on};
use relent_ledger_sqlite::audit_file;

use crate::common::{Store, at, claim, id, message};

/// A store with a message in each place: 1 dead, 2 delivered, 3 in flight, 4 and 5 waiting.
fn furnished() -> Store {
    let store = Store::new();
    let ledger = &store.ledger;
    block_on(async {
        for number in 1..=3 {
            let _ = ledger.accept(message(number)).await.unwrap();
        }
        let tickets = claim(ledger, at(1)).await;
        let settlements = [Settlement::DeadLetter { reason: StopReason::Permanent }, Settlement::Ack];
        for ticket in &tickets {
            assert_eq!(ledger.begin_attempt(ticket, at(1)).await.unwrap(), 1);
        }
        for (ticket, settlement) in tickets.iter().zip(settlements) {
            let end = AttemptEnd {
                number: 1,
                took: Default::default(),
                observed: Observed::Status(500),
                detail: String::new(),
                response: Default::default(),
                truncated: Truncated::No,
            };
            let finish = Finish { at: at(2), attempt: Some(end), settlement, history: Default::default() };
            ledger.finish(ticket, finish).await.unwrap();
        }
        for number in 4..=5 {
            let later = relent_ledger::NewMessage { not_before: Some(at(9)), ..message(number) };
            let _ = ledger.accept(later).await.unwrap();
        }
    });
    store
}

/// The rules that the check finds broken after `plant`; the same beside the server and by the server.
fn broken_by(plant: &str) -> Vec<Rule> {
    let store = furnished();
    assert_eq!(audit_file(store.folder.path()).unwrap().findings, [], "sound before");
    store.beside().execute_batch(&format!("PRAGMA foreign_keys = OFF; {plant}")).unwrap();
    let audit = block_on(store.ledger.audit()).unwrap();
    assert_eq!(audit_file(store.folder.path()).unwrap(), audit);
    let mut rules: Vec<Rule> = audit.findings.iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn a_missing_row_is_found() {
    let rules = broken_by(
        "DELETE FROM message WHERE seq = 4; DELETE FROM content WHERE seq = 4; DELETE FROM wait WHERE seq = 4; DELETE FROM idempotency WHERE seq = 4",
    );
    assert_eq!(rules, [Rule::Sum, Rule::Counts]);
}

#[test]
fn a_message_that_vanished_from_among_its_records_is_found() {
    let rules = broken_by("DELETE FROM message WHERE seq = 2");
    assert_eq!(rules, [Rule::Sum, Rule::Counts, Rule::Content, Rule::Attempts, Rule::Keys]);
}

#[test]
fn an_orphan_attempt_is_found() {
    let rules = broken_by("INSERT INTO attempt (seq, number, cycle, began_at) VALUES (77, 1, 0, 1)");
    assert_eq!(rules, [Rule::Counts, Rule::Attempts]);
}

#[test]
fn a_gap_in_the_attempts_is_found() {
    assert_eq!(broken_by("UPDATE attempt SET number = 2 WHERE seq = 1"), [Rule::Attempts]);
    assert_eq!(broken_by("UPDATE message SET attempts = 2 WHERE seq = 1"), [Rule::Attempts]);
    assert_eq!(broken_by("UPDATE message SET open_attempt = 1 WHERE seq = 1"), [Rule::Attempts]);
    assert_eq!(broken_by("UPDATE attempt SET cycle = 5 WHERE seq = 1"), [Rule::Attempts]);
}

#[test]
fn a_duplicate_id_is_found() {
    let plant =
        "DROP INDEX message_id; UPDATE message SET id = (SELECT id FROM message WHERE seq = 4) WHERE seq = 5";
    let rules = broken_by(plant);
    assert!(rules.contains(&Rule::UniqueIds), "{rules:?}");
}

#[test]
fn a_wrong_count_is_found() {
    for count in ["attempts", "state:waiting", "state:dead", "dead:permanent"] {
        let rules = broken_by(&format!("UPDATE tally SET value = value + 1 WHERE name = '{count}'"));
        assert!(rules.contains(&Rule::Counts), "{count}: {rules:?}");
    }
    assert_eq!(broken_by("UPDATE tally SET value = value + 1 WHERE name = 'accepted'"), [Rule::Sum]);
    assert_eq!(broken_by("UPDATE tally SET value = -value WHERE name = 'attempts'"), [Rule::Counts]);
}

#[test]
fn content_without_its_message_a_message_without_its_content_and_changed_content_are_found() {
    assert_eq!(broken_by("DELETE FROM content WHERE seq = 4"), [Rule::Content, Rule::Keys]);
    let orphan = "INSERT INTO content SELECT 77, NULL, fingerprint, policy, repeat, method, url, headers, labels, sum, body FROM content WHERE seq = 1";
    assert_eq!(broken_by(orphan), [Rule::Content]);
    assert_eq!(broken_by("UPDATE content SET body = x'00' WHERE seq = 4"), [Rule::Content]);
    assert_eq!(broken_by("UPDATE message SET history = x'00' WHERE seq = 4"), [Rule::Content]);
    assert_eq!(broken_by("UPDATE message SET destination = 77 WHERE seq = 4"), [Rule::Content]);
}

#[test]
fn an_orphan_wait_and_a_message_that_is_never_due_are_found() {
    assert_eq!(broken_by("UPDATE wait SET seq = 77 WHERE seq = 4"), [Rule::Waits]);
    assert_eq!(broken_by("UPDATE message SET due_at = NULL WHERE seq = 4"), [Rule::Waits]);
    assert_eq!(broken_by("UPDATE message SET due_at = 1 WHERE seq = 2"), [Rule::Waits]);
}

#[test]
fn a_key_without_its_message_and_a_message_without_its_key_are_found() {
    assert_eq!(broken_by("UPDATE idempotency SET seq = 77 WHERE seq = 1"), [Rule::Keys]);
    assert_eq!(broken_by("UPDATE idempotency SET key = 'another' WHERE seq = 1"), [Rule::Keys]);
    assert_eq!(broken_by("UPDATE idempotency SET fingerprint = x'00' WHERE seq = 1"), [Rule::Keys]);
    assert_eq!(broken_by("DELETE FROM idempotency WHERE seq = 1"), [Rule::Keys]);
}

#[test]
fn an_end_that_is_not_whole_is_found() {
    let rules = broken_by("UPDATE message SET reason = NULL WHERE seq = 1");
    assert_eq!(rules, [Rule::Counts, Rule::Ends]);
    assert_eq!(broken_by("UPDATE message SET ended_at = NULL WHERE seq = 2"), [Rule::Ends]);
    assert_eq!(broken_by("UPDATE message SET ended_at = 1 WHERE seq = 4"), [Rule::Ends]);
    assert_eq!(broken_by("UPDATE message SET epoch = 0 WHERE seq = 3"), [Rule::Ends]);
    let rules = broken_by("UPDATE message SET state = 'lost' WHERE seq = 4");
    assert!(rules.contains(&Rule::Ends), "{rules:?}");
}

/// No index is trusted: one that has lost its entries is found, and hides nothing.
#[test]
fn an_index_that_lost_its_entries_is_found() {
    let plant = "PRAGMA writable_schema = ON; \
        UPDATE sqlite_schema SET sql = replace(sql, '''waiting''', '''nothing''') WHERE name = 'message_due'; \
        PRAGMA writable_schema = RESET; REINDEX message_due; \
        PRAGMA writable_schema = ON; \
        UPDATE sqlite_schema SET sql = replace(sql, '''nothing''', '''waiting''') WHERE name = 'message_due'; \
        PRAGMA writable_schema = RESET";
    assert_eq!(broken_by(plant), [Rule::Integrity]);
}

#[test]
fn a_number_out_of_its_range_is_found() {
    for epoch in [-1, i64::MIN, i64::MAX] {
        assert_eq!(broken_by(&format!("UPDATE message SET epoch = {epoch} WHERE seq = 4")), [Rule::Ends]);
    }
    for number in [-1, 1_i64 << 32] {
        for column in ["cycle", "attempts"] {
            let plant = format!("UPDATE message SET {column} = {number} WHERE seq = 4");
            assert_eq!(broken_by(&plant), [Rule::Attempts], "{plant}");
        }
        let plant = format!("UPDATE attempt SET cycle = {number} WHERE seq = 1");
        assert_eq!(broken_by(&plant), [Rule::Attempts], "{plant}");
        let plant = format!("UPDATE wait SET after_attempt = {number} WHERE seq = 4");
        assert_eq!(broken_by(&plant), [Rule::Waits], "{plant}");
    }
}

#[test]
fn a_word_that_nobody_knows_is_found() {
    for (table, column, rule) in [
        ("message", "last_observed", Rule::Attempts),
        ("attempt", "observed", Rule::Attempts),
        ("wait", "origin", Rule::Waits),
    ] {
        for word in ["'nonsense'", "''", "CAST(x'ff' AS TEXT)"] {
            let plant = format!("UPDATE {table} SET {column} = {word} WHERE seq IN (1, 4)");
            assert_eq!(broken_by(&plant), [rule], "{plant}");
        }
    }
    for (table, column) in [("message", "last_detail"), ("attempt", "detail")] {
        let plant = format!("UPDATE {table} SET {column} = CAST(x'ff' AS TEXT) WHERE seq = 1");
        assert_eq!(broken_by(&plant), [Rule::Attempts], "{plant}");
    }
}

#[test]
fn a_missing_index_is_found() {
    for index in [
        "message_id",
        "message_due",
        "message_due_by_destination",
        "message_state",
        "message_open",
        "message_dead",
    ] {
        assert_eq!(broken_by(&format!("DROP INDEX {index}")), [Rule::Integrity], "{index}");
    }
}

#[test]
fn a_finding_names_its_message() {
    let store = furnished();
    store.beside().execute("UPDATE content SET body = x'00' WHERE seq = 4", []).unwrap();
    let findings = audit_file(store.folder.path()).unwrap().findings;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].id, Some(id(4)));
    assert!(findings[0].to_string().starts_with(&format!("content: {}: ", id(4))), "{}", findings[0]);
}
