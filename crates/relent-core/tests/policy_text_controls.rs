//! The controls in a policy's TOML: what they mean, that they print what they mean, and what is refused.

mod text;

use std::time::Duration;

use relent_core::{
    Backoff, BreakerPolicy, BudgetPolicy, ConcurrencyPolicy, Gates, Policy, PolicyText, RatePolicy,
    SlowCalls, Window,
    budget::{GrpcPolicy, LoanPolicy, Of, QuotaPolicy, RatioPolicy, SharePolicy},
};
use text::{assert_refused, assert_unknown, over, read, refusal};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn with_budget(budget: BudgetPolicy) -> Policy {
    Policy { budget: Some(budget), ..Policy::live() }
}

const LOAN: LoanPolicy = LoanPolicy {
    earn_milli: 50,
    gain_milli: 250,
    floor_milli: 4_000,
    per_call_milli: 1,
    start_milli: 1_500,
    charge_milli: 1_000,
    throttled_milli: 2_000,
};
const QUOTA: QuotaPolicy = QuotaPolicy {
    capacity_milli: 100_500,
    transient_milli: 7_000,
    timeout_milli: 8_000,
    throttled_milli: 9_000,
    first_success_milli: 500,
};

#[test]
fn each_kind_of_budget_has_its_own_fields_in_tokens_and_shares() {
    let ratio = |of, share_milli, window, floor_per_second| {
        BudgetPolicy::Ratio(RatioPolicy { of, share_milli, window, floor_per_second })
    };
    for (text, budget) in [
        (
            "kind = \"loan\"\nearn = 0.05\ngain = 0.25\nfloor = 4\nper_call = 0.001\nstart = 1.5\ncharge = 1\n\
             throttled = 2",
            BudgetPolicy::Loan(LOAN),
        ),
        (
            "kind = \"grpc\"\nmax_tokens = 100\ntoken_ratio = 0.5",
            BudgetPolicy::Grpc(GrpcPolicy { max_milli: 100_000, ratio_milli: 500 }),
        ),
        (
            "kind = \"ratio\"\nof = \"all\"\nshare = 0.125\nwindow = \"30s\"\nfloor_per_second = 2",
            ratio(Of::All, 125, secs(30), 2),
        ),
        (
            "kind = \"share\"\nshare = 0.25\nfloor = 2",
            BudgetPolicy::Share(SharePolicy { share_milli: 250, floor: 2 }),
        ),
        (
            "kind = \"quota\"\ncapacity = 100.5\ntransient = 7\ntimeout = 8\nthrottled = 9\nfirst_success = 0.5",
            BudgetPolicy::Quota(QUOTA),
        ),
        // Left out: as in the kind's own source.
        ("kind = \"loan\"", BudgetPolicy::Loan(LoanPolicy::default())),
        ("kind = \"grpc\"", BudgetPolicy::Grpc(GrpcPolicy { max_milli: 10_000, ratio_milli: 100 })),
        ("kind = \"ratio\"", ratio(Of::Originals, 200, secs(10), 10)),
        ("kind = \"ratio\"\nof = \"all\"", ratio(Of::All, 100, secs(120), 0)),
        ("kind = \"share\"", BudgetPolicy::Share(SharePolicy { share_milli: 200, floor: 3 })),
        (
            "kind = \"quota\"\ntransient = 5",
            BudgetPolicy::Quota(QuotaPolicy { transient_milli: 5_000, ..QuotaPolicy::AWS_2026 }),
        ),
        // The kind left out: the base's.
        ("start = 2", BudgetPolicy::Loan(LoanPolicy { start_milli: 2_000, ..LoanPolicy::default() })),
    ] {
        assert_eq!(read(&format!("[budget]\n{text}")), with_budget(budget), "{text}");
    }
    for none in ["budget = \"none\"", "[budget]\nkind = \"none\""] {
        assert_eq!(read(none), Policy { budget: None, ..Policy::live() });
    }
}

/// gRPC's service config drops what is beyond the third digit; every other number here is refused so.
#[test]
fn a_token_ratio_is_read_as_grpc_reads_it() {
    let grpc = |ratio: &str| {
        let written =
            toml::from_str::<PolicyText>(&format!("[budget]\nkind = \"grpc\"\ntoken_ratio = {ratio}"));
        match written.expect(ratio).over(Policy::live()).map(|policy| policy.budget) {
            Ok(Some(BudgetPolicy::Grpc(grpc))) => Ok(grpc.ratio_milli),
            Ok(other) => panic!("{other:?}"),
            Err(invalid) => Err(invalid.field),
        }
    };
    assert_eq!((grpc("0.5466"), grpc("0.1"), grpc("1")), (Ok(546), Ok(100), Ok(1000)));
    for wrong in ["0.0009", "-0.1", "nan", "inf", "\"0.1\""] {
        assert_eq!(grpc(wrong), Err("budget.token_ratio".into()), "{wrong}");
    }
}

#[test]
fn what_a_budget_leaves_out_is_as_in_a_base_of_its_kind() {
    let quota = with_budget(BudgetPolicy::Quota(QUOTA));
    let changed = over("[budget]\ncapacity = 50", quota.clone());
    assert_eq!(changed, with_budget(BudgetPolicy::Quota(QuotaPolicy { capacity_milli: 50_000, ..QUOTA })));
    let other = over("[budget]\nkind = \"share\"", quota);
    assert_eq!(other, with_budget(BudgetPolicy::Share(SharePolicy::default())));
    let sre = with_budget(BudgetPolicy::Ratio(RatioPolicy { share_milli: 50, ..RatioPolicy::SRE }));
    let shorter = over("[budget]\nof = \"all\"\nwindow = \"60s\"", sre);
    let expected = RatioPolicy { share_milli: 50, window: secs(60), ..RatioPolicy::SRE };
    assert_eq!(shorter, with_budget(BudgetPolicy::Ratio(expected)));
}

#[test]
fn each_field_of_a_breaker_means_what_it_says() {
    let policy = read(
        r#"
        [breaker]
        failure_rate = "none"
        slow_calls = { longer_than = "900ms", rate = 0.8 }
        consecutive_failures = 7
        window = 1000
        min_calls = 50
        break_time = { kind = "constant", wait = "3s" }
        break_jitter = 0.125
        probes = 5
        probe_timeout = "4s"
        "#,
    );
    let expected = BreakerPolicy {
        failure_rate_milli: None,
        slow_calls: Some(SlowCalls { longer_than: Duration::from_millis(900), rate_milli: 800 }),
        consecutive_failures: Some(7),
        window: Window::Count(1000),
        min_calls: 50,
        break_time: Backoff::Constant(secs(3)),
        break_jitter_milli: 125,
        probes: 5,
        probe_timeout: secs(4),
    };
    assert_eq!(policy.breaker, Some(expected.clone()));

    let changed = over("[breaker]\nslow_calls = { rate = 0.9 }\nwindow = \"30s\"", policy.clone());
    let slow_calls = expected.slow_calls.map(|slow| SlowCalls { rate_milli: 900, ..slow });
    assert_eq!(
        changed.breaker,
        Some(BreakerPolicy { slow_calls, window: Window::Time(secs(30)), ..expected })
    );
    assert_eq!(over("breaker = \"none\"", policy).breaker, None);
    assert_eq!(read("[breaker]").breaker, Some(BreakerPolicy::default()));
}

#[test]
fn limits_stand_at_admission_and_at_each_attempt() {
    let policy = read(
        r#"
        [admission.concurrency]
        limit = 200
        queue = 100

        [admission.rate]
        permits = 1000
        per = "1m"
        burst = 50

        [attempt]
        concurrency = { limit = 20 }
        rate = { permits = 100, per = "1s" }
        "#,
    );
    let admission = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 200, queue: 100 }),
        rate: Some(RatePolicy { permits: 1000, per: secs(60), burst: 50 }),
    };
    let attempt = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 20, queue: 0 }),
        rate: Some(RatePolicy { permits: 100, per: secs(1), burst: 1 }),
    };
    assert_eq!((policy.admission, policy.attempt), (admission, attempt));

    let changed = over("[admission]\nrate = \"none\"\nconcurrency = { queue = 7 }", policy);
    let concurrency = Some(ConcurrencyPolicy { limit: 200, queue: 7 });
    assert_eq!((changed.admission, changed.attempt), (Gates { concurrency, rate: None }, attempt));
}

#[test]
fn the_controls_print_as_a_text_that_means_the_same_over_any_base() {
    let gates = Gates {
        concurrency: Some(ConcurrencyPolicy { limit: 9, queue: 3 }),
        rate: Some(RatePolicy { permits: 7, per: Duration::from_nanos(1_000_000_001), burst: 2 }),
    };
    let breaker = BreakerPolicy {
        slow_calls: Some(SlowCalls { longer_than: secs(1), rate_milli: 999 }),
        consecutive_failures: Some(3),
        window: Window::Count(100),
        ..BreakerPolicy::default()
    };
    let mut policies = vec![
        Policy { budget: None, breaker: Some(breaker), ..Policy::live() },
        Policy { admission: gates, attempt: gates, ..Policy::durable() },
        Policy { breaker: Some(BreakerPolicy::default()), ..Policy::live() },
    ];
    let budgets = [
        BudgetPolicy::Loan(LOAN),
        BudgetPolicy::Grpc(GrpcPolicy { max_milli: 7_000, ratio_milli: 1_001 }),
        BudgetPolicy::Ratio(RatioPolicy::SRE),
        BudgetPolicy::Ratio(RatioPolicy::FINAGLE),
        BudgetPolicy::Share(SharePolicy { share_milli: 1, floor: 9 }),
        BudgetPolicy::Quota(QUOTA),
    ];
    policies.extend(budgets.map(with_budget));
    for policy in &policies {
        let printed = toml::to_string(&PolicyText::from(policy)).expect("a policy can be printed");
        for base in &policies {
            assert_eq!(over(&printed, base.clone()), *policy, "{printed}");
        }
    }
}

#[test]
fn a_field_of_another_kind_is_refused_with_the_fields_of_this_kind() {
    for (text, message) in [
        (
            "[budget]\nearned = 1",
            "budget.earned: a budget of kind loan has no such field; it has earn, gain, floor",
        ),
        (
            "[budget]\nkind = \"grpc\"\nfloor = 3",
            "budget.floor: a budget of kind grpc has no such field; it has max_tokens, token_ratio",
        ),
        (
            "[budget]\nkind = \"none\"\nfloor = 3",
            "budget.floor: a budget of kind none has no such field; it has none",
        ),
    ] {
        assert_eq!(refusal(text).get(..message.len()), Some(message), "{text}");
    }
    assert_unknown(&[
        ("[breaker]\nthreshold = 0.5", "`threshold`", "`failure_rate`"),
        ("[breaker]\nslow_calls = { over = \"1s\" }", "`over`", "`longer_than`"),
        ("[admission]\nlimit = 5", "`limit`", "`concurrency`"),
        ("[admission.concurrency]\nmax = 5", "`max`", "`limit`"),
        ("[attempt.rate]\nrps = 5", "`rps`", "`permits`"),
    ]);
}

#[test]
fn what_cannot_be_read_is_refused_with_the_field_and_the_way_out() {
    assert_refused(&[
        ("budget = \"some\"", "budget: ", "write none, or a table"),
        ("budget = \"none\"\n[breaker]\nmin_calls = 2.5", "breaker.min_calls: ", "whole number"),
        ("[budget]\nkind = \"tokens\"", "budget.kind: ", "loan, grpc, ratio, share, quota, none"),
        ("[budget]\nkind = 5", "budget.kind: ", "loan, grpc"),
        ("[budget]\ncharge = 0.0001", "budget.charge: ", "three decimals"),
        ("[budget]\ncharge = \"1\"", "budget.charge: ", "three decimals"),
        ("[budget]\nkind = \"grpc\"\nmax_tokens = 10.5", "budget.max_tokens: ", "whole number"),
        ("[budget]\nkind = \"grpc\"\nmax_tokens = 4294968", "budget.max_tokens: ", "from 1 to 1000"),
        ("[budget]\nkind = \"ratio\"\nof = \"calls\"", "budget.of: ", "originals, all"),
        ("[budget]\nkind = \"ratio\"\nwindow = 10", "budget.window: ", "unit is missing"),
        ("[budget]\nkind = \"share\"\nfloor = -1", "budget.floor: ", "from 0"),
        ("breaker = \"off\"", "breaker: ", "write none, or a table"),
        ("[breaker]\nfailure_rate = \"half\"", "breaker.failure_rate: ", "three decimals"),
        ("[breaker]\nslow_calls = { rate = 0.5 }", "breaker.slow_calls.longer_than: ", "missing"),
        ("[breaker]\nslow_calls = { longer_than = \"1s\" }", "breaker.slow_calls.rate: ", "missing"),
        ("[breaker]\nwindow = 10.5", "breaker.window: ", "whole number of calls"),
        ("[breaker]\nwindow = \"100\"", "breaker.window: ", "unit is missing"),
        ("[breaker]\nbreak_time = { kind = \"linear\" }", "breaker.break_time.base: ", "base, max"),
        ("[admission]\nrate = \"all\"", "admission.rate: ", "write none, or a table"),
        ("[admission.concurrency]\nqueue = 5", "admission.concurrency.limit: ", "limit and queue"),
        ("[attempt.rate]\npermits = 5", "attempt.rate.per: ", "permits, per and burst"),
        ("[attempt.rate]\nper = \"1s\"", "attempt.rate.permits: ", "permits, per and burst"),
        ("[attempt.concurrency]\nlimit = \"many\"", "attempt.concurrency.limit: ", "whole number"),
    ]);
    let none = Policy { budget: None, ..Policy::live() };
    let written: PolicyText = toml::from_str("[budget]\nfloor = 5").expect("well formed");
    let message = written.over(none).expect_err("which kind?").to_string();
    assert_eq!(message, "budget.kind: it is missing; write one of loan, grpc, ratio, share, quota, none");
}
