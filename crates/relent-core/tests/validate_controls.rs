//! Controls that could never do what they are for are refused under their own names; those that make nonsense
//! of one another are told with the arithmetic.

mod text;

use std::time::Duration;

use relent_core::{Policy, RatePolicy, Warning};
use text::build;

/// The doubts that the text adds to those about the default.
fn doubts(text: &str) -> Vec<String> {
    let known = Policy::live().validate().expect("the default is possible");
    let new = build(text).expect(text).validate().expect(text);
    new.iter().filter(|doubt| !known.contains(doubt)).map(Warning::to_string).collect()
}

#[test]
fn each_control_is_refused_under_its_place_in_the_policy() {
    for (text, refused) in [
        ("[admission.concurrency]\nlimit = 0", "admission.concurrency.limit: 0 would let nothing through"),
        ("[attempt.concurrency]\nlimit = 0", "attempt.concurrency.limit: 0 would let nothing through"),
        (
            "[admission.rate]\npermits = 0\nper = \"1s\"",
            "admission.rate.permits: 0 would let nothing through",
        ),
        ("[attempt.rate]\npermits = 5\nper = \"0s\"", "attempt.rate.per: "),
        ("[breaker]\nfailure_rate = \"none\"", "breaker: nothing could ever open it"),
        ("[breaker]\nprobes = 17", "breaker.probes: 17 is not between 1 and 16"),
        ("[breaker]\nbreak_time = { base = \"0s\" }", "breaker.break_time.base: 0s"),
        ("[budget]\nearn = 0\nstart = 0", "budget.start: nothing is earned"),
        (
            "[budget]\nper_call = 0\ncharge = 4",
            "budget.charge: a retry costs 4, but the bucket never holds more",
        ),
        (
            "[budget]\nkind = \"grpc\"\nmax_tokens = 2",
            "budget.max_tokens: a full bucket has 2, the first failure",
        ),
        (
            "[budget]\nkind = \"share\"\nshare = 0\nfloor = 0",
            "budget.share: 0, and the floor is 0: no retry could",
        ),
        (
            "[budget]\nkind = \"quota\"\ncapacity = 4",
            "budget.capacity: 4 holds none of the charges 14, 14 and 5",
        ),
    ] {
        let message = build(text).expect_err(text);
        assert!(message.starts_with(refused), "{text}\n  {message}");
    }
    let nothing = RatePolicy { permits: 0, per: Duration::from_secs(1), burst: 1 };
    let mut policy = Policy::live();
    policy.attempt.rate = Some(nothing);
    assert_eq!(
        policy.validate().unwrap_err().field,
        "attempt.rate.permits",
        "built in code, held to the same"
    );
}

#[test]
fn each_controls_own_doubts_are_told() {
    let told = doubts("[budget]\nstart = 0.5\n[breaker]\nconsecutive_failures = 1");
    assert!(told.iter().any(|doubt| doubt.starts_with("budget.start: 0.5 is less than the 1")), "{told:#?}");
    assert!(told.iter().any(|doubt| doubt.starts_with("breaker.consecutive_failures: ")), "{told:#?}");
}

#[test]
fn controls_that_make_nonsense_of_one_another_are_told_with_the_arithmetic() {
    for (fine, doubtful, told) in [
        (
            "admission.concurrency.limit = 10\nattempt.concurrency.limit = 10",
            "admission.concurrency.limit = 10\nattempt.concurrency.limit = 11",
            "attempt.concurrency.limit: 11 is more than admission.concurrency.limit 10, and a call has one attempt \
             at a time: only attempts that outlive their time-out could reach it",
        ),
        (
            "admission.rate = { permits = 10, per = \"1s\" }\nattempt.rate = { permits = 600, per = \"1m\", burst = 5 }",
            "admission.rate = { permits = 10, per = \"1s\" }\nattempt.rate = { permits = 8, per = \"1s\", burst = 5 }",
            "attempt.rate: 125ms an attempt is slower than admission.rate, 100ms a call: first attempts alone fall \
             behind",
        ),
        // The fifth attempt may begin strictly before 5 s − 100 ms.
        (
            "attempt.rate = { permits = 1, per = \"1224999999ns\" }",
            "attempt.rate = { permits = 1, per = \"1225ms\" }",
            "attempt.rate: 4 of 5 attempts wait 1.225 s each behind a burst of 1: 4 × 1.225 s = 4.9 s, and \
             total_timeout leaves 5 s; 4 begin, if no other call takes a permit",
        ),
        (
            "attempt.rate = { permits = 1, per = \"2s\", burst = 3 }",
            "attempt.rate = { permits = 1, per = \"2s\", burst = 2 }\nretry.reserve = \"1s\"",
            "attempt.rate: 3 of 5 attempts wait 2 s each behind a burst of 2: 3 × 2 s = 6 s, and total_timeout \
             leaves 4 s; 3 begin, if no other call takes a permit",
        ),
        (
            "retry.max_attempts = \"unlimited\"\nattempt.rate = { permits = 1, per = \"4899ms\" }",
            "retry.max_attempts = \"unlimited\"\nattempt.rate = { permits = 1, per = \"4900ms\" }",
            "attempt.rate: 1 of 2 attempts wait 4.9 s each behind a burst of 1: 1 × 4.9 s = 4.9 s, and \
             total_timeout leaves 5 s; 1 begin, if no other call takes a permit",
        ),
        (
            "budget = { kind = \"share\", floor = 1 }\nadmission.concurrency.limit = 4",
            "budget = { kind = \"share\", floor = 0 }\nadmission.concurrency.limit = 4",
            "budget.share: 0.2 × admission.concurrency.limit 4 = 0.8 < 1, and budget.floor is 0: there is no retry \
             unless the budget serves other pipelines too",
        ),
        (
            "breaker = { window = \"4s\" }",
            "breaker = { window = \"3999ms\" }",
            "breaker.window: 3s999ms is shorter than 2 × attempt_timeout 2s = 4s: while attempts hang it holds \
             hardly any",
        ),
        (
            "breaker = { probe_timeout = \"2s\" }",
            "breaker = { probe_timeout = \"1s\" }",
            "breaker.probe_timeout: 1s is shorter than attempt_timeout 2s: a slow probe's place goes to another \
             call while it runs, so that more than breaker.probes 3 are under way",
        ),
    ] {
        let field = told.split(": ").next().expect("a field");
        let fine = doubts(fine);
        assert!(!fine.iter().any(|doubt| doubt.starts_with(field)), "{fine:#?}");
        let doubts = doubts(doubtful);
        assert!(doubts.iter().any(|doubt| doubt == told), "{doubtful}\n{doubts:#?}");
    }
}

#[test]
fn slow_calls_that_no_attempt_can_become_are_told() {
    let slow = |longer_than| {
        doubts(&format!("breaker.slow_calls = {{ longer_than = \"{longer_than}\", rate = 0.5 }}"))
    };
    assert_eq!(slow("1999ms"), Vec::<String>::new());
    let told = "breaker.slow_calls.longer_than: 2s is not shorter than attempt_timeout 2s: an attempt is given up, and \
                counts as failed, before it is slow";
    assert_eq!(slow("2s"), [told]);
}

#[test]
fn what_does_not_apply_is_not_doubted() {
    for text in [
        // A window that no rule looks at.
        "breaker = { failure_rate = \"none\", consecutive_failures = 5, window = \"1s\" }",
        "breaker = { window = 100 }",
        "admission.concurrency.limit = 5\nbudget = { kind = \"share\", floor = 3 }",
        "attempt.rate = { permits = 1, per = \"1h\" }\nretry.max_attempts = 1",
        "attempt.concurrency.limit = 5\nadmission.rate = { permits = 1, per = \"1h\" }",
    ] {
        assert_eq!(doubts(text), Vec::<String>::new(), "{text}");
    }
}
