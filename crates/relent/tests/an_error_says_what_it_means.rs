//! Classification: by the error itself, by the policy's tables and rules, or by the pipeline's own word.

mod support;

use std::{io, time::Duration};

use relent::{
    Answer, Backoff, ByError, Cause, Classification, Classifier, Classify, ErrorClass, ManualClock, Neutral,
    Observed, Outcome, Pipeline, Policy, Route, RouteRule, Rulebook, Rules, Sent, StopReason, Table, Verdict,
    io_error_class,
};
use support::{Dependency, SECOND, at_once, pipeline, plain, with_attempts};

const NOWHERE: Route<'_> = Route { method: "", path: "" };

#[test]
fn io_errors_go_by_the_documents_table() {
    use io::ErrorKind as Kind;
    let failure = |cause, sent| Verdict::Failure { cause, sent, server_wait: None };
    for (kind, class, verdict) in [
        (Kind::ConnectionRefused, ErrorClass::Connect, failure(Cause::Error, Sent::No)),
        (Kind::HostUnreachable, ErrorClass::Connect, failure(Cause::Error, Sent::No)),
        (Kind::NetworkUnreachable, ErrorClass::Connect, failure(Cause::Error, Sent::No)),
        (Kind::NetworkDown, ErrorClass::Connect, failure(Cause::Error, Sent::No)),
        (Kind::ConnectionReset, ErrorClass::Reset, failure(Cause::Error, Sent::Maybe)),
        (Kind::ConnectionAborted, ErrorClass::Reset, failure(Cause::Error, Sent::Maybe)),
        (Kind::BrokenPipe, ErrorClass::Reset, failure(Cause::Error, Sent::Maybe)),
        (Kind::UnexpectedEof, ErrorClass::Reset, failure(Cause::Error, Sent::Maybe)),
        (Kind::TimedOut, ErrorClass::Timeout, failure(Cause::Timeout, Sent::Maybe)),
        (Kind::WouldBlock, ErrorClass::Timeout, failure(Cause::Timeout, Sent::Maybe)),
        (Kind::InvalidData, ErrorClass::Protocol, Verdict::Permanent),
        (Kind::PermissionDenied, ErrorClass::Other, Verdict::Permanent),
        (Kind::NotFound, ErrorClass::Other, Verdict::Permanent),
    ] {
        let error = io::Error::from(kind);
        assert_eq!(io_error_class(&error), class, "{kind:?}");
        assert_eq!(error.classify(), verdict, "{kind:?}");
    }
}

#[test]
fn a_rule_of_the_policy_counts_for_an_io_error() {
    let clock = ManualClock::new();
    let mut policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
    policy.classify.rules.errors.push((ErrorClass::Connect, Answer::No));
    policy.classify.routes.push(RouteRule {
        method: Some("GET".into()),
        rules: Rules { errors: vec![(ErrorClass::Connect, Answer::NotNow)], ..Rules::default() },
        ..RouteRule::on("/stock/*")
    });
    let users = Pipeline::on(clock.clone(), policy).unwrap();
    let refused = |_| async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) };
    assert_eq!(clock.block_on(users.run(refused)).unwrap_err().stop(), StopReason::Permanent);
    let call = users.calls().on_route("GET", "/stock/apples").run(refused);
    assert_eq!(clock.block_on(call).unwrap_err().stop(), StopReason::AttemptsExhausted);
}

#[test]
fn a_rule_of_the_policy_counts_for_a_status() {
    let clock = ManualClock::new();
    let mut policy = with_attempts(3, plain(Backoff::Constant(SECOND)));
    policy.classify.rules.statuses.push((500, 500, Answer::NotNow));
    let dependency = Dependency::new(&clock, &[at_once(500), at_once(200)]);
    let users = pipeline(&clock, policy);
    assert_eq!(clock.block_on(users.run(|a| dependency.call(a))).unwrap().status, 200);
    assert_eq!(dependency.began(), [0, 1_000]);
}

#[test]
fn a_rule_of_the_policy_counts_for_a_timeout() {
    let clock = ManualClock::new();
    let mut policy = Policy { attempt_timeout: SECOND, ..with_attempts(3, plain(Backoff::Constant(SECOND))) };
    policy.classify.rules.errors.push((ErrorClass::Timeout, Answer::No));
    let users = Pipeline::on(clock.clone(), policy).unwrap();
    let (result, report) =
        clock.block_on(users.run_with_report(|_| std::future::pending::<Result<(), io::Error>>()));
    assert_eq!((report.stop, report.attempts), (StopReason::Permanent, 1));
    assert_eq!(result.unwrap_err().to_string(), "timed out after 1 attempt: permanent");
}

/// An error type with a word of its own.
#[derive(Debug)]
struct Busy(Duration);

impl Classify for Busy {
    fn classify(&self) -> Verdict {
        Verdict::Failure { cause: Cause::Throttled, sent: Sent::RefusedBefore, server_wait: Some(self.0) }
    }
}

#[test]
fn an_errors_own_word_is_heard_whatever_the_tables_say() {
    let clock = ManualClock::new();
    let mut policy = with_attempts(2, plain(Backoff::Constant(SECOND)));
    policy.classify = Classification::new(Table::Webhook);
    let users = Pipeline::on(clock.clone(), policy).unwrap();
    let (result, report) =
        clock.block_on(users.run_with_report(|_| async { Err::<(), _>(Busy(7 * SECOND)) }));
    assert_eq!((report.stop, report.waited), (StopReason::AttemptsExhausted, 7 * SECOND));
    assert_eq!(report.cause(), Some(Cause::Throttled));
    assert_eq!(result.unwrap_err().into_inner().unwrap().0, 7 * SECOND);
}

#[test]
fn a_pipelines_own_classifier_sees_values_errors_and_timeouts() {
    let clock = ManualClock::new();
    let policy = Policy { attempt_timeout: SECOND, ..with_attempts(9, plain(Backoff::Constant(SECOND))) };
    let users =
        Pipeline::on(clock.clone(), policy).unwrap().classify_with(|outcome: Outcome<'_, &str, &str>| {
            match outcome {
                Outcome::Ok(&"busy") | Outcome::Err(&"reset") => support::NOT_NOW,
                Outcome::TimedOut => Verdict::TIMED_OUT,
                Outcome::Ok(_) => Verdict::Success,
                _ => Verdict::Permanent,
            }
        });
    let call = users.run_with_report(|attempt| async move {
        match attempt.number {
            1 => Ok("busy"),
            2 => Err("reset"),
            3 => std::future::pending().await,
            _ => Ok("done"),
        }
    });
    let (result, report) = clock.block_on(call);
    assert_eq!(result.unwrap(), "done");
    assert_eq!((report.attempts, report.stop), (4, StopReason::Succeeded));
}

#[test]
fn a_neutral_outcome_is_not_counted_but_is_an_attempt_that_was_made() {
    let clock = ManualClock::new();
    let users = Pipeline::on(clock.clone(), with_attempts(2, plain(Backoff::Constant(SECOND))))
        .unwrap()
        .classify_with(|outcome: Outcome<'_, (), u32>| match outcome {
            Outcome::Err(1..=3) => Verdict::Neutral(Neutral::OwnFault),
            _ => support::NOT_NOW,
        });
    let (result, report) =
        clock.block_on(users.run_with_report(|attempt| async move { Err::<(), _>(attempt.number) }));
    assert_eq!(result.unwrap_err().into_inner(), Some(5), "three of our own fault, and two that count");
    assert_eq!((report.attempts, report.stop), (5, StopReason::AttemptsExhausted));
}

#[test]
fn what_no_operation_returned_goes_by_the_rules() {
    let classification = Classification::new(Table::Documents);
    let rules = Rulebook { classification: &classification, route: NOWHERE };
    let verdict = |outcome: Outcome<'_, (), io::Error>| ByError.verdict(outcome, rules);
    assert_eq!(verdict(Outcome::TimedOut), Verdict::TIMED_OUT);
    assert_eq!(verdict(Outcome::Lost), Verdict::LOST);
    assert_eq!(verdict(Outcome::Panicked), Verdict::Permanent);
    assert_eq!(verdict(Outcome::Cancelled), Verdict::Neutral(Neutral::Cancelled));
    assert_eq!(verdict(Outcome::Ok(&())), Verdict::Success);
    assert_eq!(rules.verdict(Observed::Status(503), None), rules.verdict(Observed::Status(502), None));
}
