//! Whole conversations over real sockets: each row of the second document's decision matrix, and its own sequence
//! of a 503, a time-out and a 200. Each shows how many attempts there were, under which key, how they were
//! answered, and why there was no other.

#[path = "support/conversation.rs"]
mod conversation;
#[path = "support/server.rs"]
mod server;

use std::time::Duration;

use relent::{
    BreakerPolicy, ConcurrencyPolicy, Gate, Gates, Idempotency, Pipeline, Policy, RouteRule, Sent,
    StopReason, Verdict, WaitOrigin,
};
use relent_tower::{CallTerms, PipelineLayer};
use tower::ServiceExt;

use self::{
    conversation::{Conversation, Received, Reply, status},
    server::{Server, deserted},
};

const SECOND: Duration = Duration::from_secs(1);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The default policy, whose budget would soon stop a first call that fails.
fn policy() -> Policy {
    Policy { budget: None, ..Policy::live() }
}

fn keys(received: &[Received]) -> Vec<Option<&str>> {
    received.iter().map(|request| request.key.as_deref()).collect()
}

#[tokio::test]
async fn a_503_a_timeout_and_a_200_take_three_attempts_with_jitter_below_the_deadline() {
    let script = [status(503), Reply::Hold, Reply::Status(200, vec![], "done")];
    let conversation = Conversation::new(policy(), script).await;
    let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((ended.attempts, ended.status, ended.reason), (3, Some(200), StopReason::Succeeded));
    assert_eq!(ended.body, "done");
    let received = conversation.received();
    assert_eq!(
        received.iter().map(|request| request.attempt).collect::<Vec<_>>(),
        [Some(1), Some(2), Some(3)]
    );
    assert_eq!(keys(&received), [None; 3], "what needs no key has none");
    let [first, second] = ended.waits[..] else { panic!("{:?}", ended.waits) };
    assert!(first.length <= ms(200) && second.length <= ms(400), "{first} {second}");
    assert_eq!((first.ceiling, second.ceiling), (ms(200), ms(400)));
    assert_eq!(ended.took, first.length + 2 * SECOND + second.length);
    assert!(ended.took < 5 * SECOND);
}

#[tokio::test]
async fn connection_reset_during_deployment() {
    // Usually: a small bounded retry with jitter.
    let conversation = Conversation::new(policy(), [Reply::Reset, status(200)]).await;
    let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((ended.attempts, ended.status, ended.reason), (2, Some(200), StopReason::Succeeded));
    assert!(ended.waits[0].length <= ms(200) && ended.waits[0].origin == WaitOrigin::Backoff);
    assert_eq!((keys(&conversation.received()), conversation.server.accepted()), (vec![None; 2], 2));

    // Bounded: a deployment that does not end is not waited for.
    let conversation = Conversation::new(policy(), [Reply::Reset]).await;
    let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((ended.status, conversation.received().len()), (None, ended.attempts as usize));
    assert!(ended.attempts <= 5 && ended.took < 5 * SECOND, "{ended:?}");
}

#[tokio::test]
async fn status_429_with_retry_after() {
    // Context-dependent: honoured only within the remaining deadline.
    let asks = |seconds| Reply::Status(429, vec![("Retry-After", seconds)], "slowly");
    let conversation = Conversation::new(policy(), [asks("1"), status(200)]).await;
    let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((ended.attempts, ended.status, ended.reason), (2, Some(200), StopReason::Succeeded));
    let wait = ended.waits[0];
    assert_eq!((wait.origin, wait.asked, wait.floor), (WaitOrigin::Server, Some(SECOND), SECOND));
    assert!(wait.length >= SECOND && wait.length <= ms(1500), "and jitter above it: {wait}");
    assert_eq!(keys(&conversation.received()), [None; 2]);

    for (seconds, reason) in [("30", StopReason::TotalTimeout), ("86400", StopReason::ServerWaitTooLong)] {
        let conversation = Conversation::new(policy(), [asks(seconds), status(200)]).await;
        let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
        assert_eq!((ended.attempts, ended.status, ended.reason), (1, Some(429), reason));
        assert_eq!((ended.body.as_str(), ended.took), ("slowly", Duration::ZERO), "at once, with the answer");
        assert_eq!(keys(&conversation.received()), [None]);
    }
}

#[tokio::test]
async fn status_503_from_an_overloaded_dependency() {
    // Limited: backoff, a concurrency limit and a breaker.
    let limit = ConcurrencyPolicy { limit: 1, queue: 0 };
    let mut policy = Policy { attempt: Gates { concurrency: Some(limit), rate: None }, ..policy() };
    policy.breaker = Some(BreakerPolicy { consecutive_failures: Some(3), ..BreakerPolicy::default() });
    let conversation = Conversation::new(policy, [status(503)]).await;
    let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((ended.attempts, ended.status), (3, Some(503)));
    assert_eq!(ended.reason, StopReason::Refused(Gate::Breaker), "the third failure opens the breaker");
    assert!(ended.waits.iter().all(|wait| wait.length <= wait.ceiling && !wait.ceiling.is_zero()));

    let next = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((next.attempts, next.reason), (0, StopReason::Refused(Gate::Breaker)));
    assert_eq!(keys(&conversation.received()), [None; 3], "and nothing more is sent");
}

#[tokio::test]
async fn status_401_or_403() {
    // No: identity or authorisation is to be repaired.
    for code in [401, 403] {
        let conversation = Conversation::new(policy(), [Reply::Status(code, vec![], "who are you?")]).await;
        let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
        assert_eq!((ended.attempts, ended.status, ended.reason), (1, Some(code), StopReason::Permanent));
        assert_eq!((ended.body.as_str(), keys(&conversation.received())), ("who are you?", vec![None]));
    }
}

#[tokio::test]
async fn business_409_or_422() {
    // Usually no: the outcome is the caller's to handle.
    for code in [409, 422] {
        let conversation = Conversation::new(policy(), [Reply::Status(code, vec![], "sold out")]).await;
        let keyed = conversation.request("POST", "/reservations");
        let (mut head, body) = keyed.into_parts();
        head.extensions.insert(CallTerms::new().keyed());
        let ended = conversation.send(http::Request::from_parts(head, body)).await;
        assert_eq!((ended.attempts, ended.status, ended.reason), (1, Some(code), StopReason::Permanent));
        assert_eq!((ended.body.as_str(), conversation.received().len()), ("sold out", 1));
        assert!(conversation.received()[0].key.is_some());
    }
}

#[tokio::test]
async fn caller_cancellation() {
    // No: work stops, and it counts as nobody's failure.
    let mut patient = policy();
    patient.attempt_timeout = 4 * SECOND;
    let conversation = Conversation::new(patient, [status(200)]).await;
    let unanswered = Server::start(|_, mut peer| async move {
        peer.request().await;
        peer.until_closed().await;
    })
    .await;
    let request =
        http::Request::get(unanswered.url()).body(http_body_util::Full::default()).expect("a request");
    let call = tokio::spawn(conversation.service.clone().oneshot(request));
    conversation.clock.until_asleep(1).await;
    while unanswered.accepted() == 0 {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.expect_err("it is gone").is_cancelled());
    assert_eq!(conversation.told(), [StopReason::Cancelled]);
    conversation.clock.advance(60 * SECOND);
    while unanswered.open() > 0 {
        tokio::task::yield_now().await; // its connection goes with it
    }
    assert_eq!((unanswered.accepted(), conversation.clock.sleepers()), (1, 0));
}

#[tokio::test]
async fn idempotent_read() {
    // Maybe: its cost, its staleness and the deadline decide.
    let conversation = Conversation::new(policy(), [status(503), status(200)]).await;
    let ended = conversation.send(conversation.request("GET", "/stock/apples")).await;
    assert_eq!((ended.attempts, ended.status, ended.reason), (2, Some(200), StopReason::Succeeded));
    assert_eq!(keys(&conversation.received()), [None; 2]);

    let mut costly = policy();
    costly.classify.routes =
        vec![RouteRule { repeat: Some(Idempotency::Never), ..RouteRule::on("/reports/*") }];
    let conversation = Conversation::new(costly, [status(503), status(200)]).await;
    let ended = conversation.send(conversation.request("GET", "/reports/year")).await;
    assert_eq!((ended.attempts, ended.status, ended.reason), (1, Some(503), StopReason::AttemptsExhausted));
    assert_eq!(keys(&conversation.received()), [None]);

    let mut fleeting = Policy { attempt_timeout: 3 * SECOND, ..policy() };
    fleeting.classify.routes = vec![RouteRule { fresh_for: Some(2 * SECOND), ..RouteRule::on("/prices/*") }];
    fleeting.admission.concurrency = Some(ConcurrencyPolicy { limit: 1, queue: 1 });
    let conversation = Conversation::new(fleeting, [Reply::Hold, status(200)]).await;
    // Both are asked at once. The first is given up when it is stale; by then so is the second, which waits for it.
    let (first, second) =
        (conversation.request("GET", "/prices/apples"), conversation.request("GET", "/prices/pears"));
    let first = tokio::spawn(conversation.service.clone().oneshot(first));
    tokio::task::yield_now().await;
    let second = conversation.service.clone().oneshot(second).await.expect_err("it is stale");
    assert_eq!((second.stop(), second.report().attempts), (StopReason::TotalTimeout, 0));
    let first = first.await.expect("it ends").expect_err("it is stale");
    assert_eq!((first.stop(), first.report().attempts), (StopReason::TotalTimeout, 1));
    assert_eq!(conversation.received().len(), 1);
}

#[tokio::test]
async fn command_with_enforced_idempotency_key() {
    // Maybe: the same key on every attempt, and the answer that belongs to it.
    let script =
        [Reply::Hold, status(503), Reply::Status(201, vec![("Idempotency-Replayed", "true")], "order 17")];
    let conversation = Conversation::new(policy(), script).await;
    let mut order = conversation.request("POST", "/orders");
    order.extensions_mut().insert(CallTerms::new().keyed());
    let ended = conversation.send(order).await;
    assert_eq!((ended.attempts, ended.status, ended.reason), (3, Some(201), StopReason::Succeeded));
    let received = conversation.received();
    let keys = keys(&received);
    assert!(keys[0].is_some_and(|key| key.len() == 36) && keys == [keys[0]; 3], "{keys:?}");
    assert!(
        received
            .iter()
            .all(|request| request.line == "POST /orders HTTP/1.1" && request.body == "hello world")
    );
}

#[tokio::test]
async fn command_without_idempotency_support() {
    // Usually no: the ambiguity is the caller's to know.
    for (reply, code) in
        [(status(503), Some(503)), (status(429), Some(429)), (Reply::Hold, None), (Reply::Reset, None)]
    {
        let conversation = Conversation::new(policy(), [reply, status(201)]).await;
        let request = conversation.request("POST", "/orders");
        let ended = conversation.send(request).await;
        assert_eq!((ended.attempts, ended.status, ended.reason), (1, code, StopReason::Ambiguous));
        assert_eq!(keys(&conversation.received()), [None]);
    }
    // What was never sent is another matter.
    let conversation = Conversation::new(policy(), [status(201)]).await;
    let nobody = deserted().await;
    let request = http::Request::post(format!("http://{nobody}/orders"));
    let request = request.body(http_body_util::Full::from("hello world")).expect("a request");
    let error = conversation.service.clone().oneshot(request).await.expect_err("nobody is there");
    assert!(error.report().attempts > 1 && error.stop() != StopReason::Ambiguous, "{error}");
    let sent = error.report().last_verdict.map(|verdict| match verdict {
        Verdict::Failure { sent, .. } => sent,
        other => panic!("{other:?}"),
    });
    assert_eq!(sent, Some(Sent::No));
}

#[tokio::test]
async fn long_running_business_workflow() {
    // Not with HTTP retries: a call that wants hours is pointed to the durable server.
    let hours = Policy { total_timeout: Some(3 * 3600 * SECOND), ..policy() };
    for policy in [Policy::durable(), hours] {
        let refused =
            PipelineLayer::new(Pipeline::new(policy).expect("possible")).expect_err("not as a call");
        assert!(
            refused.reason.contains("relent serve") && refused.reason.contains("/v1/messages"),
            "{refused}"
        );
    }
}
