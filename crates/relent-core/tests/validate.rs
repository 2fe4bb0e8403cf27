//! Impossible policies are refused with the arithmetic, doubtful ones told with it.

mod text;

use relent_core::{Backoff, Doubt, Jitter, Policy, Severity, Warning};
use text::build;

fn doubts(text: &str) -> Vec<Warning> {
    build(text).expect(text).validate().expect(text)
}

/// Each text, and what its refusal says.
fn assert_refused(rows: &[(&str, &str)]) {
    for (text, refused) in rows {
        let message = build(text).expect_err(text);
        assert!(message.contains(refused), "{text}\n  {message}");
    }
}

/// Each text, the field of one of its warnings, and what its reason holds.
fn assert_told(rows: &[(&str, &str, &str)]) {
    for (text, field, reason) in rows {
        let told = doubts(text);
        let warning = told.iter().find(|warning| warning.field == *field && warning.reason.contains(reason));
        assert!(warning.is_some(), "{text}\n  {told:#?}");
    }
}

#[test]
fn an_impossible_time_is_refused_with_its_field_and_the_arithmetic() {
    assert_refused(&[
        ("attempt_timeout = \"0s\"", "attempt_timeout: 0s makes no sense here"),
        ("total_timeout = \"0s\"", "total_timeout: 0s"),
        ("business_deadline = \"0s\"", "business_deadline: 0s"),
        ("[retry]\nmax_wait = \"0s\"", "retry.max_wait: 0s"),
        (
            "total_timeout = \"300ms\"\n[retry]\nreserve = \"200ms\"",
            "total_timeout: 300ms leaves no room for an attempt: retry.reserve 200ms + retry.min_attempt 100ms = 300ms",
        ),
        (
            "business_deadline = \"1s\"\n[retry]\nreserve = \"2s\"",
            "business_deadline: 1s leaves no room for an attempt: retry.reserve 2s + retry.min_attempt 100ms = 2s100ms",
        ),
        ("attempt_timeout = \"50ms\"", "attempt_timeout: 50ms is shorter than retry.min_attempt 100ms"),
        (
            "total_timeout = \"none\"\n[retry]\nmax_attempts = \"unlimited\"",
            "retry.max_attempts: unlimited attempts without total_timeout and business_deadline would never stop",
        ),
    ]);
}

#[test]
fn durable_work_that_is_to_go_back_to_a_caller_is_doubted() {
    assert_told(&[(
        "business_deadline = \"3d\"",
        "on_exhausted",
        "caller, but nobody waits for work with a business_deadline of 3d",
    )]);
    let doubted = |text| doubts(text).iter().any(|doubt| doubt.doubt == Doubt::NoCaller);
    assert!(!doubted("business_deadline = \"3d\"\non_exhausted = \"dead_letter\""));
    assert!(!doubted("business_deadline = \"3d\"\non_exhausted = \"discard\""));
    assert!(!doubted("on_exhausted = \"caller\""));
}

#[test]
fn an_impossible_curve_is_refused_with_its_field_and_the_arithmetic() {
    assert_refused(&[
        // BO-11
        (
            "[retry]\nbackoff = { base = \"10s\", max = \"5s\" }",
            "retry.backoff.base: 10s is longer than retry.backoff.max 5s",
        ),
        (
            "[retry]\nthrottled_backoff = { base = \"20s\" }",
            "retry.throttled_backoff.base: 20s is longer than retry.throttled_backoff.max 10s",
        ),
        ("[retry]\nmax_wait = \"100ms\"", "retry.backoff.base: 200ms is longer than retry.max_wait 100ms"),
        // BO-05: a curve of zeros is refused where it is written.
        ("[retry]\nbackoff = { base = \"0s\" }", "retry.backoff.base: 0s"),
        ("[retry]\nbackoff = { max = \"0s\" }", "retry.backoff.max: 0s"),
        ("[retry]\nbackoff = { kind = \"constant\", wait = \"0s\" }", "retry.backoff.wait: 0s"),
        ("[retry]\nbackoff = { kind = \"steps\", waits = [] }", "retry.backoff.waits: there is none"),
        ("[retry]\nbackoff = { kind = \"steps\", waits = [\"1s\", \"0s\"] }", "retry.backoff.waits: 0s"),
        ("[retry]\nbackoff = { factor = 0.999 }", "retry.backoff.factor: 0.999 would shrink the waits"),
    ]);
}

#[test]
fn impossible_jitter_hints_and_first_waits_are_refused_with_the_arithmetic() {
    assert_refused(&[
        ("[retry]\njitter = { below = 1.001 }", "retry.jitter.below: 1.001 of the wait"),
        (
            "[retry]\njitter = \"polly_v2\"\nbackoff = { factor = 3 }",
            "retry.jitter: polly_v2 doubles its waits itself, so retry.backoff would count for nothing but",
        ),
        (
            "[retry]\njitter = \"polly_v2\"\nthrottled_backoff = { kind = \"constant\", wait = \"1s\" }",
            "retry.jitter: polly_v2 doubles its waits itself, so retry.throttled_backoff would",
        ),
        ("[retry]\nserver_wait = { limit = \"0s\" }", "retry.server_wait.limit: 0s would obey no hint"),
        ("[retry]\nserver_wait = { mode = { within = \"0s\" } }", "retry.server_wait.mode.within: 0s"),
        (
            "[retry]\njitter = \"none\"\nbackoff = { kind = \"constant\", wait = \"4900ms\" }",
            "retry.backoff: no retry could ever begin: the shortest first wait 4s900ms + retry.min_attempt 100ms \
             + retry.reserve 0s = 5s ≥ total_timeout 5s",
        ),
        ("[retry]\njitter = \"equal\"\nbackoff = { base = \"10s\" }", "the shortest first wait 5s"),
    ]);
}

#[test]
fn an_impossible_classification_is_refused_with_its_rule() {
    assert_refused(&[
        ("[classify]\nstatus = { 99 = \"no\" }", "classify.status.99-99: the statuses are 100 to 999"),
        (
            "[classify]\nstatus = { 500-1000 = \"no\" }",
            "classify.status.500-1000: the statuses are 100 to 999",
        ),
        ("[classify]\nstatus = { 503-500 = \"no\" }", "classify.status.503-500: it ends before it begins"),
        (
            "[classify]\nstatus = { 5xx = \"no\", 500-599 = \"not_now\" }",
            "classify.status.500-599: it is both ",
        ),
        ("[classify]\nerror = { tls = \"success\" }", "classify.error.tls: an attempt without an answer"),
        ("[classify]\nerror = { unknown = \"no\" }", "classify.error.unknown: nobody saw"),
        ("[classify]\nerror = { own_fault = \"no\" }", "classify.error.own_fault: a fault of our own"),
        (
            "[[classify.route]]\npath = \"/a/*/b\"\nstatus = { 404 = \"no\" }",
            "classify.route[1].path: \"/a/*/b\"",
        ),
        (
            "[[classify.route]]\npath = \"orders\"\nstatus = { 404 = \"no\" }",
            "classify.route[1].path: \"orders\"",
        ),
        ("[[classify.route]]\npath = \"/orders\"", "classify.route[1].status: a route without rules"),
        (
            "[[classify.route]]\nrepeat = \"twice\"",
            "classify.route[1].repeat: \"twice\" is not known; write one of safe, keyed, unsafe, never",
        ),
        ("[[classify.route]]\nfresh_for = \"soon\"", "classify.route[1].fresh_for: "),
        ("[[classify.route]]\nfresh_for = \"0s\"", "classify.route[1].fresh_for: 0s makes no sense here"),
        (
            "[[classify.route]]\nfresh_for = \"100ms\"",
            "classify.route[1].fresh_for: 100ms leaves no room for an attempt",
        ),
    ]);
}

#[test]
fn a_policy_that_was_built_in_code_is_held_to_the_same() {
    let mut policy = Policy::live();
    policy.retry.max_attempts = Some(0);
    assert_eq!(policy.validate().unwrap_err().field, "retry.max_attempts");
    let mut policy = Policy::live();
    policy.retry.backoff = Backoff::Steps(Vec::new());
    assert_eq!(policy.validate().unwrap_err().field, "retry.backoff.waits");
    let mut policy = Policy::live();
    policy.retry.jitter = Jitter::Proportional { below_milli: 1001, above_milli: 0 };
    assert_eq!(policy.validate().unwrap_err().field, "retry.jitter.below");
}

#[test]
fn one_attempt_needs_no_room_for_a_wait() {
    build("[retry]\nmax_attempts = 1\njitter = \"none\"\nbackoff = { base = \"10s\" }").unwrap();
    build("[retry]\njitter = \"full\"\nbackoff = { base = \"10s\" }").expect("a draw may be short enough");
    build("[retry]\nmin_attempt = \"0s\"\nreserve = \"0s\"").expect("both may be zero");
}

/// The second document's example of a setting that cannot fit.
#[test]
fn a_worst_case_that_does_not_fit_is_told_with_the_sum() {
    let told = doubts(
        "total_timeout = \"2s\"\nattempt_timeout = \"1s\"\n[retry]\nmax_attempts = 4\njitter = \"none\"\n\
         backoff = { kind = \"steps\", waits = [\"200ms\", \"400ms\", \"800ms\"] }",
    );
    let fields: Vec<&str> = told.iter().map(|warning| &*warning.field).collect();
    assert_eq!(fields, ["retry.max_attempts", "retry.jitter"]);
    assert_eq!(
        told[0].reason,
        "4 × 1 s + 0.2 + 0.4 + 0.8 s = 5.4 s > 2 s: one whole attempt and one cut to 0.8 s"
    );
}

#[test]
fn a_worst_case_that_does_not_fit_is_told_with_what_does() {
    assert_told(&[
        (
            "",
            "retry.max_attempts",
            "5 × 2 s + 0.2 + 0.4 + 0.8 + 1.6 s = 13 s > 5 s: two whole attempts and one cut to 0.4 s",
        ),
        (
            "attempt_timeout = \"500ms\"\n[retry]\nmax_attempts = 12",
            "retry.max_attempts",
            "12 × 0.5 s + 0.2 + 0.4 + 0.8 + 1.6 + 3.2 + … (11 waits) … + 10 s = 68.6 s > 5 s: \
             four whole attempts and no more",
        ),
        (
            "total_timeout = \"2s\"\n[retry]\nmax_attempts = 2",
            "retry.max_attempts",
            "2 × 2 s + 0.2 s = 4.2 s > 2 s: one whole attempt and no more",
        ),
        (
            "[retry]\nmax_attempts = 2\nreserve = \"1s\"",
            "retry.max_attempts",
            "2 × 2 s + 0.2 s = 4.2 s > 4 s (5s less retry.reserve 1s): one whole attempt and one cut to 1.8 s",
        ),
        // The longest waits, not the curve: jitter may add to it, or grow by itself.
        (
            "[retry]\nmax_attempts = 3\njitter = { below = 0.5, above = 0.5 }",
            "retry.max_attempts",
            "3 × 2 s + 0.3 + 0.6 s = 6.9 s > 5 s: two whole attempts and no more",
        ),
        (
            "[retry]\nmax_attempts = 4\njitter = \"decorrelated\"",
            "retry.max_attempts",
            "4 × 2 s + 0.6 + 1.8 + 5.4 s = 15.8 s > 5 s: two whole attempts and no more",
        ),
    ]);
}

/// Where a time-out has its retry, and every attempt has its turn if each fails at once, the deadline does what it is
/// for: relent's own default is such a policy.
#[test]
fn a_deadline_that_only_cuts_what_is_left_is_a_note_and_no_warning() {
    use Doubt::{LateAttemptsAreCut, WorstCaseDoesNotFit};
    for (text, doubt) in [
        ("", LateAttemptsAreCut),
        // The second attempt begins after 2.4 + 0.2 s.
        ("attempt_timeout = \"2400ms\"", LateAttemptsAreCut),
        ("attempt_timeout = \"2401ms\"", WorstCaseDoesNotFit),
        // The waits before the fifth attempt are 3 s, and it needs more than 100 ms.
        ("attempt_timeout = \"200ms\"\ntotal_timeout = \"3101ms\"", LateAttemptsAreCut),
        ("attempt_timeout = \"200ms\"\ntotal_timeout = \"3100ms\"", WorstCaseDoesNotFit),
    ] {
        let told: Vec<Doubt> = doubts(text).iter().map(|warning| warning.doubt).collect();
        assert_eq!(told, [doubt], "{text}");
    }
    assert_eq!(LateAttemptsAreCut.severity(), Severity::Note);
    let rest = Doubt::ALL.iter().filter(|doubt| **doubt != LateAttemptsAreCut);
    assert!(rest.clone().all(|doubt| doubt.severity() == Severity::Warning));
}

#[test]
fn what_is_never_reached_or_comes_back_together_is_told_with_the_arithmetic() {
    assert_told(&[
        (
            "attempt_timeout = \"6s\"",
            "attempt_timeout",
            "6s is never reached: total_timeout 5s ends every attempt first",
        ),
        (
            "business_deadline = \"4s\"",
            "total_timeout",
            "5s is never reached: business_deadline 4s ends first",
        ),
        (
            "total_timeout = \"none\"",
            "total_timeout",
            "there is none, and no business_deadline: an attempt that fails by a fault of our own (no local port \
             left, say) is not counted, so nothing ends a call that meets nothing else; set one",
        ),
        (
            "[retry]\nmax_losses = 0",
            "retry.max_losses",
            "0 gives up (poison_crash) on the first attempt that is lost",
        ),
        ("[retry]\njitter = \"none\"", "retry.jitter", "callers that failed together come back together"),
        ("[retry]\njitter = { below = 0, above = 0 }", "retry.jitter", "come back together"),
        (
            "[retry]\njitter = \"decorrelated\"\nbackoff = { kind = \"constant\", wait = \"1s\" }",
            "retry.backoff",
            "here both 1s: callers that failed together",
        ),
        (
            "[retry]\nmax_wait = \"5s\"",
            "retry.backoff",
            "it grows to 10s, but retry.max_wait 5s cuts every wait",
        ),
    ]);
}

#[test]
fn what_fits_is_not_doubted() {
    let fits = "attempt_timeout = \"1s\"\ntotal_timeout = \"10s\"\n[retry]\nmax_attempts = 3";
    assert_eq!(doubts(fits), []);
    assert_eq!(doubts("[retry]\nmax_attempts = 1\njitter = \"none\""), []);
    let extreme = "attempt_timeout = \"100ms\"\ntotal_timeout = \"500d\"\n[retry]\nmax_attempts = 4294967295\n\
                   backoff = { kind = \"constant\", wait = \"1ns\" }";
    assert!(doubts(extreme)[0].reason.contains("the first 1000 fit"));
}
