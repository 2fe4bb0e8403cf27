//! Thousands of clients that fail at the same instant: when each of them tries again.
//!
//! Each client is a process of its own, as far as the others can tell: a pipeline and a layer of its own. They share
//! only the time and the instant at which all of them are told no.

#[path = "support/inner.rs"]
mod inner;

use std::{
    future::{Future, pending},
    mem::take,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Wake, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use relent::{Backoff, ManualClock, Pipeline, Policy, Timestamp};
use relent_tower::{CallTerms, PipelineLayer};
use tower::{ServiceExt, layer::Layer};

use self::inner::{Inner, answer, saying};

/// The second in which everybody fails, which is also the time of day: Sun, 06 Nov 1994 08:49:07 GMT.
const OUTAGE: Timestamp = Timestamp::from_secs(784_111_747);

#[test]
fn clients_that_were_told_nothing_spread_over_the_whole_of_their_first_backoff() {
    // Full jitter below the policy's base: from at once to 200 ms later.
    spread(Seeds::Given, Policy::live(), &[], ms(0)..ms(200));
}

#[test]
fn clients_that_were_told_the_same_number_of_seconds_spread_above_it() {
    // The hint, and half of it above: 10 s to 15 s.
    spread(Seeds::Given, patient(), &[("retry-after", "10")], ms(10_000)..ms(15_000));
    spread(Seeds::Given, patient(), &[("retry-after-ms", "1500")], ms(1500)..ms(2250));
    // A hint that is shorter than our own backoff: the backoff's ceiling above it.
    let slow = with_base(patient(), ms(8000));
    spread(Seeds::Given, slow, &[("retry-after", "1")], ms(1000)..ms(9000));
}

#[test]
fn clients_that_were_told_the_same_date_spread_above_it() {
    spread(
        Seeds::Given,
        patient(),
        &[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")],
        ms(60_000)..ms(90_000),
    );
}

#[test]
fn clients_draw_apart_by_themselves() {
    // With the seeds that pipelines draw: a bin holds 100 on average, and over 200 with a probability below (e/4)^100
    // (Chernoff), which is 2 in 10^17.
    spread(Seeds::Own, Policy::live(), &[], ms(0)..ms(200));
    spread(Seeds::Own, patient(), &[("retry-after", "10")], ms(10_000)..ms(15_000));
}

#[test]
#[should_panic(expected = "over twice the mean")]
fn clients_that_share_their_chance_would_be_noticed() {
    spread(Seeds::OneForAll, Policy::live(), &[], ms(0)..ms(200));
}

/// Where the clients' chance comes from.
#[derive(Clone, Copy)]
enum Seeds {
    /// The client's number.
    Given,
    /// Whatever its pipeline draws.
    Own,
    OneForAll,
}

/// Lets all clients fail together under this policy, told this by the server, and looks at when each sends its second
/// attempt: all within the range, close to both its ends, and in no fiftieth of it over twice as many as on average.
fn spread(
    seeds: Seeds,
    policy: Policy,
    told: &[(&'static str, &'static str)],
    range: std::ops::Range<Duration>,
) {
    let instants = second_attempts(seeds, &policy, told);
    assert_eq!(instants.len(), CLIENTS);
    let width = (range.end - range.start) / BINS;
    let mut bins = [0; BINS as usize];
    for instant in &instants {
        assert!(*instant >= range.start && *instant <= range.end, "{instant:?} is not within {range:?}");
        let bin = (*instant - range.start).as_nanos() / width.as_nanos();
        bins[usize::try_from(bin).unwrap().min(bins.len() - 1)] += 1;
    }
    let most = bins.iter().max().unwrap() * bins.len();
    assert!(most <= 2 * CLIENTS, "a bin holds over twice the mean: {bins:?}");
    assert!(
        bins.iter().all(|clients| *clients > 0),
        "the range is not as wide as it is said to be: {bins:?}"
    );
}

/// How long after the outage each client's second attempt is sent.
fn second_attempts(seeds: Seeds, policy: &Policy, told: &[(&'static str, &'static str)]) -> Vec<Duration> {
    let clock = ManualClock::starting_at(OUTAGE);
    let client = |number| {
        let inner = Inner::new(&clock, [saying(503, told), answer(200)]);
        let pipeline = Pipeline::on(clock.clone(), policy.clone()).expect("a possible policy").named("stock");
        let layer = PipelineLayer::new(pipeline).expect("a patient policy").with_wall_clock(clock.clone());
        let mut request = Request::new(Full::<Bytes>::default());
        match seeds {
            Seeds::Own => {}
            Seeds::Given => drop(request.extensions_mut().insert(CallTerms::new().with_seed(number))),
            Seeds::OneForAll => drop(request.extensions_mut().insert(CallTerms::new().with_seed(0))),
        }
        (inner.clone(), layer.layer(inner).oneshot(request))
    };
    let (servers, calls): (Vec<_>, Vec<_>) = (0..CLIENTS as u64).map(client).unzip();
    let calls = calls.into_iter().map(|call| {
        Box::pin(async { assert_eq!(call.await.expect("an answer").status(), 200) })
            as Pin<Box<dyn Future<Output = ()>>>
    });
    run_exactly(&clock, calls.collect());
    let second = |server: &Inner| {
        let seen = server.seen();
        assert_eq!((seen.len(), seen[0].at), (2, OUTAGE), "they fail together");
        seen[1].at.since(OUTAGE)
    };
    servers.iter().map(second).collect()
}

/// Polls each future when it is woken, and stops the clock at every instant at which somebody wakes.
fn run_exactly(clock: &ManualClock, mut futures: Vec<Pin<Box<dyn Future<Output = ()>>>>) {
    let woken = Arc::new(Mutex::new((0..futures.len()).collect::<Vec<_>>()));
    let wakers: Vec<_> = (0..futures.len())
        .map(|number| Waker::from(Arc::new(Bell { number, woken: Arc::clone(&woken) })))
        .collect();
    loop {
        let now = take(&mut *woken.lock().unwrap());
        for number in &now {
            let mut cx = Context::from_waker(&wakers[*number]);
            if futures[*number].as_mut().poll(&mut cx).is_ready() {
                futures[*number] = Box::pin(pending());
            }
        }
        if now.is_empty() && clock.advance_to_next().is_none() {
            return;
        }
    }
}

struct Bell {
    number: usize,
    woken: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.number);
    }
}

/// As the default, for whoever has two minutes.
fn patient() -> Policy {
    let mut policy = Policy { total_timeout: Some(ms(120_000)), ..Policy::live() };
    policy.retry.server_wait.limit = ms(60_000);
    policy
}

fn with_base(mut policy: Policy, length: Duration) -> Policy {
    policy.retry.backoff = Backoff::Constant(length);
    policy
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const CLIENTS: usize = 5000;
const BINS: u32 = 50;
