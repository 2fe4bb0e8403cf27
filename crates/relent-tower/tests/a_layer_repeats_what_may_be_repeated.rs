//! The layer over a service in memory, under a clock that stands still: what is repeated, how often, and what the
//! caller gets.

#[path = "support/inner.rs"]
mod inner;
#[path = "support/policy.rs"]
mod policy;

use std::{io, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use relent::{
    Answer, Backoff, Gate, Idempotency, ManualClock, Pipeline, Policy, Retries, RouteRule, Rules, StopReason,
};
use relent_tower::{CallTerms, Error, PipelineLayer, Wire, report};
use tower::{Service, ServiceExt, layer::Layer};

use self::{
    inner::{Act, Inner, answer, saying},
    policy::{SECOND, policy},
};

fn layer(clock: &ManualClock, policy: Policy) -> PipelineLayer<ManualClock> {
    let pipeline = Pipeline::on(clock.clone(), policy).expect("a possible policy").named("stock");
    PipelineLayer::new(pipeline).expect("a patient policy").with_wall_clock(clock.clone())
}

fn request(method: Method, path: &str) -> Request<Full<Bytes>> {
    let builder = Request::builder().method(method).uri(format!("http://stock.example{path}"));
    builder.body(Full::from("hello world")).expect("a request")
}

/// Sends one request under this policy.
fn send(
    clock: &ManualClock,
    layer: &PipelineLayer<ManualClock>,
    inner: &Inner,
    request: Request<Full<Bytes>>,
) -> Result<Response<Full<Bytes>>, Error> {
    clock.block_on(layer.layer(inner.clone()).oneshot(request))
}

fn stopped<B>(response: &Response<B>) -> (u16, Option<(u32, StopReason)>) {
    (response.status().as_u16(), report(response).map(|report| (report.attempts, report.stop)))
}

#[test]
fn a_first_success_passes_through_without_a_word() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!((stopped(&response), inner.count()), ((200, None), 1));

    let all = layer(&clock, policy()).with_wire(Wire::new().reporting_all());
    let response = send(&clock, &all, &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (200, Some((1, StopReason::Succeeded))));
    assert_eq!(report(&response).unwrap().dependency.as_deref(), Some("stock"));
}

#[test]
fn what_says_not_now_is_asked_again_and_the_answer_tells_how_often() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503), Act::Fail(io::ErrorKind::ConnectionReset), answer(200)]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (200, Some((3, StopReason::Succeeded))));
    assert_eq!(inner.times(), [0, 1000, 2000]);
}

#[test]
fn when_retries_end_the_caller_gets_the_last_response_whole() {
    // RT-17
    let clock = ManualClock::new();
    let busy = |body| Act::Answer { status: 503, headers: vec![], body, after: Duration::ZERO };
    let inner = Inner::new(&clock, [busy("busy1"), busy("busy2"), busy("busy3"), busy("busy4")]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (503, Some((4, StopReason::AttemptsExhausted))));
    assert_eq!(clock.block_on(response.into_body().collect()).unwrap().to_bytes(), "busy4");

    let nope = Act::Answer { status: 404, headers: vec![], body: "nope", after: Duration::ZERO };
    let inner = Inner::new(&clock, [nope]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (404, Some((1, StopReason::Permanent))));
    assert_eq!(clock.block_on(response.into_body().collect()).unwrap().to_bytes(), "nope");
}

#[test]
fn attempts_are_exactly_as_many_as_the_policy_says() {
    // RT-19
    for (max, answer) in
        [(4, answer(503)), (1, answer(503)), (3, Act::Fail(io::ErrorKind::ConnectionRefused))]
    {
        let clock = ManualClock::new();
        let mut policy = policy();
        policy.retry.max_attempts = Some(max);
        let inner = Inner::new(&clock, [answer]);
        let _ = send(&clock, &layer(&clock, policy), &inner, request(Method::GET, "/"));
        assert_eq!(inner.count(), max as usize);
    }
}

#[test]
fn every_method_is_repeated_or_not_as_the_rfc_says() {
    let clock = ManualClock::new();
    for (method, sends, reason) in [
        (Method::GET, 4, StopReason::AttemptsExhausted),
        (Method::HEAD, 4, StopReason::AttemptsExhausted),
        (Method::OPTIONS, 4, StopReason::AttemptsExhausted),
        (Method::TRACE, 4, StopReason::AttemptsExhausted),
        (Method::PUT, 4, StopReason::AttemptsExhausted),
        (Method::DELETE, 4, StopReason::AttemptsExhausted),
        (Method::POST, 1, StopReason::Ambiguous),
        (Method::PATCH, 1, StopReason::Ambiguous),
    ] {
        // RT-13: a status alone says nothing about what was done, 429 and 503 included.
        for status in [429, 503] {
            let inner = Inner::new(&clock, [answer(status)]);
            let response =
                send(&clock, &layer(&clock, policy()), &inner, request(method.clone(), "/")).unwrap();
            assert_eq!(stopped(&response), (status, Some((sends, reason))), "{method}");
            assert_eq!(inner.count(), sends as usize);
        }
    }
}

#[test]
fn what_was_not_sent_is_repeated_whatever_it_does() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [Act::Fail(io::ErrorKind::ConnectionRefused), answer(201)]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::POST, "/")).unwrap();
    assert_eq!(stopped(&response), (201, Some((2, StopReason::Succeeded))));

    let inner = Inner::new(&clock, [Act::Fail(io::ErrorKind::ConnectionReset), answer(201)]);
    let error = send(&clock, &layer(&clock, policy()), &inner, request(Method::POST, "/")).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::Ambiguous, 1));
    assert_eq!(
        error.inner().unwrap().get_ref().downcast_ref::<io::Error>().unwrap().kind(),
        io::ErrorKind::ConnectionReset
    );
}

#[test]
fn a_key_makes_a_command_safe_and_is_the_same_on_every_attempt() {
    // ID-19, RT-13
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503), answer(503), answer(201)]);
    let keyed = |mut request: Request<_>| {
        request.extensions_mut().insert(CallTerms::new().keyed());
        request
    };
    let layer = layer(&clock, policy());
    let response = send(&clock, &layer, &inner, keyed(request(Method::POST, "/"))).unwrap();
    assert_eq!(stopped(&response), (201, Some((3, StopReason::Succeeded))));
    let keys = inner.values("idempotency-key");
    assert_eq!(keys.len(), 3);
    assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(inner.values("x-relent-attempt"), ["1", "2", "3"].map(|number| Some(number.to_owned())));

    let other = Inner::new(&clock, [answer(201)]);
    send(&clock, &layer, &other, keyed(request(Method::POST, "/"))).unwrap();
    assert_ne!(other.values("idempotency-key")[0], keys[0], "another call, another key");
}

#[test]
fn a_key_that_the_caller_gave_is_kept() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503), answer(201)]);
    let mut order = request(Method::POST, "/");
    order.headers_mut().insert("idempotency-key", "order-17".parse().unwrap());
    let response = send(&clock, &layer(&clock, policy()), &inner, order).unwrap();
    assert_eq!(stopped(&response), (201, Some((2, StopReason::Succeeded))));
    assert_eq!(inner.values("idempotency-key"), [Some("order-17".to_owned()), Some("order-17".to_owned())]);
}

#[test]
fn an_empty_key_makes_no_command_safe() {
    let clock = ManualClock::new();
    for empty in ["", " ", "\"\""] {
        let inner = Inner::new(&clock, [answer(503), answer(201)]);
        let mut order = request(Method::POST, "/");
        order.headers_mut().insert("idempotency-key", empty.parse().unwrap());
        let response = send(&clock, &layer(&clock, policy()), &inner, order).unwrap();
        assert_eq!(stopped(&response), (503, Some((1, StopReason::Ambiguous))), "{empty:?}");

        let inner = Inner::new(&clock, [answer(503), answer(201)]);
        let mut order = request(Method::POST, "/");
        order.headers_mut().insert("idempotency-key", empty.parse().unwrap());
        order.extensions_mut().insert(CallTerms::new().keyed());
        send(&clock, &layer(&clock, policy()), &inner, order).unwrap();
        let keys = inner.values("idempotency-key");
        assert!(
            keys.len() == 2 && keys[0] == keys[1] && keys[0].as_ref().is_some_and(|key| key.len() > 30),
            "{keys:?}"
        );
    }
}

#[test]
fn a_policy_or_a_route_says_which_commands_carry_a_key() {
    let clock = ManualClock::new();
    let keyed = Policy { repeat: Idempotency::Keyed, ..policy() };
    let mut by_route = policy();
    by_route.classify.routes =
        vec![RouteRule { repeat: Some(Idempotency::Keyed), ..RouteRule::on("/payments*") }];
    for policy in [keyed, by_route] {
        let inner = Inner::new(&clock, [answer(503), answer(201)]);
        let response =
            send(&clock, &layer(&clock, policy.clone()), &inner, request(Method::POST, "/payments")).unwrap();
        assert_eq!(stopped(&response), (201, Some((2, StopReason::Succeeded))));
        assert!(inner.values("idempotency-key")[1].is_some());
        let inner = Inner::new(&clock, [answer(503), answer(200)]);
        send(&clock, &layer(&clock, policy), &inner, request(Method::GET, "/payments/1")).unwrap();
        assert_eq!(inner.values("idempotency-key"), [None, None], "what needs no key is not given one");
    }
}

#[test]
fn a_route_may_know_better_than_the_method() {
    let clock = ManualClock::new();
    let mut policy = policy();
    let rule = |path: &str, repeat| RouteRule { repeat: Some(repeat), ..RouteRule::on(path) };
    policy.classify.routes = vec![
        rule("/search", Idempotency::Safe),
        rule("/report", Idempotency::Never),
        rule("/counter", Idempotency::Unsafe),
    ];
    for (method, path, sends, reason) in [
        (Method::POST, "/search", 4, StopReason::AttemptsExhausted),
        (Method::GET, "/report", 1, StopReason::AttemptsExhausted),
        (Method::GET, "/counter", 1, StopReason::Ambiguous),
        (Method::GET, "/other", 4, StopReason::AttemptsExhausted),
    ] {
        let inner = Inner::new(&clock, [answer(503)]);
        let response = send(&clock, &layer(&clock, policy.clone()), &inner, request(method, path)).unwrap();
        assert_eq!(stopped(&response), (503, Some((sends, reason))), "{path}");
    }
    let inner = Inner::new(&clock, [answer(503)]);
    let mut report_of = request(Method::GET, "/report");
    report_of.extensions_mut().insert(CallTerms::new().safe());
    send(&clock, &layer(&clock, policy), &inner, report_of).unwrap();
    assert_eq!(inner.count(), 1, "what a route forbids stands");
}

/// The contract's exceptions that the documents name, as a policy has them.
#[test]
fn an_apis_contract_is_written_into_its_routes() {
    let clock = ManualClock::new();
    let mut policy = policy();
    let rule = |method: &str, path: &str, status, answer| RouteRule {
        method: Some(method.into()),
        rules: Rules { statuses: vec![(status, status, answer)], ..Rules::default() },
        ..RouteRule::on(path)
    };
    policy.classify.routes = vec![
        // The gateway answers 401 while it fetches new keys; whoever signs each attempt anew gets through.
        rule("GET", "/account/*", 401, Answer::NotNow),
        // Read right after it was written, from a store that needs a moment.
        rule("GET", "/orders/*", 404, Answer::NotNow),
        // The first attempt is still being carried out.
        rule("POST", "/payments", 409, Answer::NotNow),
    ];
    for (method, path, status) in
        [(Method::GET, "/account/7", 401), (Method::GET, "/orders/17", 404), (Method::POST, "/payments", 409)]
    {
        let inner = Inner::new(&clock, [answer(status), answer(200)]);
        let mut by_contract = request(method.clone(), path);
        by_contract.headers_mut().insert("idempotency-key", "k".parse().unwrap());
        let response = send(&clock, &layer(&clock, policy.clone()), &inner, by_contract).unwrap();
        assert_eq!(stopped(&response), (200, Some((2, StopReason::Succeeded))), "{path}");

        let inner = Inner::new(&clock, [answer(status)]);
        let response =
            send(&clock, &layer(&clock, policy.clone()), &inner, request(method, "/elsewhere")).unwrap();
        assert_eq!(stopped(&response), (status, Some((1, StopReason::Permanent))), "{status} elsewhere");
    }
}

#[test]
fn a_servers_own_advice_comes_before_the_table_and_after_the_policys_rules() {
    let clock = ManualClock::new();
    let advises = |status, word| saying(status, &[("stripe-should-retry", word)]);
    for (first, sends) in [(advises(409, "true"), 2), (advises(503, "false"), 1), (advises(200, "true"), 1)] {
        let inner = Inner::new(&clock, [first, answer(200)]);
        send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
        assert_eq!(inner.count(), sends);
    }
    let mut ruled = policy();
    ruled.classify.rules.statuses = vec![(409, 409, Answer::No), (503, 503, Answer::NotNow)];
    for (first, sends) in [(advises(409, "true"), 1), (advises(503, "false"), 2)] {
        let inner = Inner::new(&clock, [first, answer(200)]);
        send(&clock, &layer(&clock, ruled.clone()), &inner, request(Method::GET, "/")).unwrap();
        assert_eq!(inner.count(), sends);
    }
    // It says nothing about what was done.
    let inner = Inner::new(&clock, [advises(409, "true"), answer(200)]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::POST, "/")).unwrap();
    assert_eq!(stopped(&response), (409, Some((1, StopReason::Ambiguous))));
}

#[test]
fn a_hint_is_a_floor_and_one_over_the_limit_stops_with_its_response() {
    // RA-08, RA-10, RA-12
    let clock = ManualClock::new();
    let asks = |seconds| saying(429, &[("retry-after", seconds)]);
    let inner = Inner::new(&clock, [asks("7"), answer(200)]);
    send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(inner.times(), [0, 7000]);

    for huge in ["61", "86400", "9999999999", "99999999999999999999999999"] {
        let clock = ManualClock::new();
        let inner = Inner::new(&clock, [asks(huge), answer(200)]);
        let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
        assert_eq!(stopped(&response), (429, Some((1, StopReason::ServerWaitTooLong))), "{huge}");
        assert_eq!(clock.sleepers(), 0);
        assert_eq!(inner.times(), [0], "and no time is lost");
    }
    let clock = ManualClock::new();
    let short = Policy { total_timeout: Some(5 * SECOND), ..policy() };
    let inner = Inner::new(&clock, [asks("30"), answer(200)]);
    let response = send(&clock, &layer(&clock, short), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (429, Some((1, StopReason::TotalTimeout))));
}

#[test]
fn a_redirect_is_given_back_untouched() {
    // RA-14
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [saying(303, &[("location", "/op/1"), ("retry-after", "2")])]);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (303, Some((1, StopReason::Permanent))));
    assert_eq!(response.headers()["location"], "/op/1");
    assert_eq!(inner.times(), [0]);
}

#[test]
fn the_time_left_goes_out_anew_with_every_attempt() {
    // TO-10
    use relent_tower::http::deadline::TimeLeft;
    for (wait, expected) in [(0, ["100", "100", "50"]), (20, ["100", "100", "10"])] {
        let clock = ManualClock::new();
        let mut policy = Policy {
            attempt_timeout: Duration::from_millis(100),
            total_timeout: Some(Duration::from_millis(250)),
            ..policy()
        };
        policy.retry.min_attempt = Duration::from_millis(1);
        policy.retry.backoff = Backoff::Constant(Duration::from_millis(20));
        if wait == 0 {
            policy.retry.server_wait.mode = relent::ServerWaitMode::Replace;
        }
        let hangs = [Act::Hang];
        let zero = Act::Answer {
            status: 503,
            headers: vec![("retry-after", "0")],
            body: "",
            after: Duration::from_millis(100) - Duration::from_nanos(1),
        };
        let inner = match wait {
            0 => Inner::new(&clock, [zero]),
            _ => Inner::new(&clock, hangs),
        };
        let layer = layer(&clock, policy)
            .with_wire(Wire::new().passing_time_left(TimeLeft::REQUEST_TIMEOUT_MS, Duration::ZERO));
        let _ = send(&clock, &layer, &inner, request(Method::GET, "/"));
        let sent = inner.values("x-request-timeout-ms");
        assert_eq!(sent, expected.map(|millis| Some(millis.to_owned())), "{wait} ms between attempts");
    }
}

#[test]
fn a_margin_is_kept_back_and_a_header_that_is_there_bounds_the_call() {
    use relent_tower::http::deadline::TimeLeft;
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503)]);
    let layer = layer(&clock, policy())
        .with_wire(Wire::new().passing_time_left(TimeLeft::GRPC, Duration::from_millis(50)));
    let mut bounded = request(Method::GET, "/");
    TimeLeft::GRPC.write_to(bounded.headers_mut(), Duration::from_millis(1500));
    let response = send(&clock, &layer, &inner, bounded).unwrap();
    assert_eq!(stopped(&response), (503, Some((2, StopReason::UpstreamDeadline))));
    assert_eq!(inner.values("grpc-timeout"), [Some("1450000u".to_owned()), Some("450000u".to_owned())]);
}

#[test]
fn an_attempts_number_can_be_left_out() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    send(
        &clock,
        &layer(&clock, policy()).with_wire(Wire::new().without_attempt_header()),
        &inner,
        request(Method::GET, "/"),
    )
    .unwrap();
    assert_eq!(inner.values("x-relent-attempt"), [None]);
}

#[test]
fn a_caller_may_set_a_deadline_of_its_own() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503)]);
    let mut bounded = request(Method::GET, "/");
    let at = relent::Timestamp::from_millis(2_500);
    bounded.extensions_mut().insert(CallTerms::new().with_deadline(at));
    let response = send(&clock, &layer(&clock, policy()), &inner, bounded).unwrap();
    assert_eq!(stopped(&response), (503, Some((3, StopReason::UpstreamDeadline))));
}

#[test]
fn an_answer_that_is_stale_is_not_waited_for() {
    let clock = ManualClock::new();
    let mut policy = policy();
    policy.classify.routes = vec![RouteRule { fresh_for: Some(2 * SECOND), ..RouteRule::on("/price") }];
    let inner = Inner::new(&clock, [answer(503)]);
    let response = send(&clock, &layer(&clock, policy), &inner, request(Method::GET, "/price")).unwrap();
    assert_eq!(stopped(&response), (503, Some((2, StopReason::TotalTimeout))), "at 0 s and at 1 s");
}

#[test]
fn a_service_that_fails_to_get_ready_fails_an_attempt() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]).failing_to_get_ready(2);
    let response = send(&clock, &layer(&clock, policy()), &inner, request(Method::POST, "/")).unwrap();
    assert_eq!(stopped(&response), (200, Some((3, StopReason::Succeeded))));

    let inner = Inner::new(&clock, [answer(200)]).failing_to_get_ready(9);
    let error = send(&clock, &layer(&clock, policy()), &inner, request(Method::POST, "/")).unwrap_err();
    assert_eq!((error.stop(), error.report().attempts), (StopReason::AttemptsExhausted, 4));
    assert_eq!(inner.count(), 0);
}

#[test]
fn who_knows_an_error_may_name_it() {
    let clock = ManualClock::new();
    let inner = || Inner::new(&clock, [Act::Fail(io::ErrorKind::AddrInUse), answer(200)]);
    let unknown = inner();
    let error = send(&clock, &layer(&clock, policy()), &unknown, request(Method::POST, "/")).unwrap_err();
    assert_eq!((error.stop(), unknown.count()), (StopReason::Permanent, 1));
    let named = inner();
    let layer = layer(&clock, policy()).naming_failures(|error| {
        let error = error.downcast_ref::<io::Error>()?;
        (error.kind() == io::ErrorKind::AddrInUse).then_some(relent::ErrorClass::NotSent)
    });
    send(&clock, &layer, &named, request(Method::POST, "/")).unwrap();
    assert_eq!(named.count(), 2);
}

#[test]
fn a_gate_that_refuses_a_retry_leaves_the_caller_its_response() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(503)]);
    let layer = layer(&clock, policy());
    layer.pipeline().retries(Retries::Off);
    let response = send(&clock, &layer, &inner, request(Method::GET, "/")).unwrap();
    assert_eq!(stopped(&response), (503, Some((1, StopReason::Refused(Gate::Switch)))));
    assert!(report(&response).unwrap().refusal().is_some());
}

#[test]
fn a_policy_that_wants_hours_is_pointed_to_the_durable_server() {
    let pipeline = Pipeline::on(ManualClock::new(), Policy::durable()).unwrap();
    let refused = PipelineLayer::new(pipeline).unwrap_err();
    assert_eq!(refused.field, "business_deadline");
    assert!(refused.reason.contains("relent serve") && refused.reason.contains("3d"), "{refused}");
}

#[test]
fn one_service_serves_one_request_after_another() {
    let clock = ManualClock::new();
    let inner = Inner::new(&clock, [answer(200)]);
    let mut service = layer(&clock, policy()).layer(inner.clone());
    clock.block_on(async {
        for _ in 0..3 {
            let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await.unwrap();
            let response = ready.call(request(Method::GET, "/")).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
        }
    });
    assert_eq!(inner.count(), 3);
}
