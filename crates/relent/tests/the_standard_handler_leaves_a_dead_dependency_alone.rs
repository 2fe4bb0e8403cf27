//! Sixty calls at once against a dependency that answers nothing but 503, under the standard handler of .NET: the
//! article's experiment.

mod support;

use std::{future::poll_fn, task::Poll};

use relent::{Gate, Idempotency, ManualClock, Policy, Preset, StopReason, breaker::Mode};
use support::{Dependency, at_once, pipeline};

#[test]
fn sixty_calls_end_with_the_breaker_open_after_a_hundred_requests() {
    for first_seed in 0..20 {
        let clock = ManualClock::new();
        let policy = Policy { repeat: Idempotency::Safe, ..Preset::MicrosoftStandard.policy() };
        let users = pipeline(&clock, policy);
        let dependency = Dependency::new(&clock, &[at_once(503)]);
        let mut calls: Vec<_> = (0..60)
            .map(|number| {
                let calls = users.calls().with_seed(first_seed * 1_000 + number);
                Some(Box::pin(calls.run_with_report(|a| dependency.call(a))))
            })
            .collect();
        let mut reports = Vec::new();
        clock.block_on(poll_fn(|cx| {
            for place in &mut calls {
                if let Some(call) = place
                    && let Poll::Ready((_, report)) = call.as_mut().poll(cx)
                {
                    *place = None;
                    reports.push(report);
                }
            }
            if reports.len() == 60 { Poll::Ready(()) } else { Poll::Pending }
        }));
        assert_eq!(dependency.began().len(), 100, "seed {first_seed}");
        for report in reports {
            assert_eq!(report.stop, StopReason::Refused(Gate::Breaker), "a broken circuit is not retried");
        }
        assert_eq!(users.breaker().unwrap().status().mode, Mode::Open);

        let next = clock.block_on(users.run(|a| dependency.call(a))).unwrap_err();
        assert_eq!((next.stop(), next.report().attempts), (StopReason::Refused(Gate::Breaker), 0));
        assert_eq!(dependency.began().len(), 100, "nothing was sent");
    }
}
