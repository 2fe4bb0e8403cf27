//! The settings of both documents, and every preset, build with exactly the notes and warnings that they deserve. The sums are
//! worked out by hand; the longest waits of Polly's jitter by its own formula, base ÷ 1.4 × (f(n) − f(n − 1)) with
//! f(t) = 2^t × tanh √(4t), rounded up to a thousandth of the base.

use relent_core::{Policy, PolicyText, Preset, Warning};

fn told(policy: &Policy) -> Vec<String> {
    let line = |told: &Warning| format!("{} {told}", told.severity().name());
    policy.validate().expect("it is possible").iter().map(line).collect()
}

fn told_of(text: &str) -> Vec<String> {
    let written: PolicyText = toml::from_str(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    told(&written.over(Policy::live()).expect(text))
}

/// Nothing but attempts ends such a call, and a fault of our own is no attempt.
const NOTHING_BOUNDS_IT: &str = "warning total_timeout: there is none, and no business_deadline: an attempt that fails by a \
                                 fault of our own (no local port left, say) is not counted, so nothing ends a call \
                                 that meets nothing else; set one";

const ONE_HOST_OF_TEN: &str = "warning breaker.failure_rate: 10 % is reached when 1 host of 10 fails: in a pool of 10 or \
                               fewer, one bad host shuts out the healthy ones too; 60 % leaves such failures to the \
                               retries";

#[test]
fn each_preset_is_told_what_its_source_deserves() {
    for (preset, warnings) in [
        (
            Preset::Default,
            // 2 + 0.2 + 2 + 0.4 = 4.6 s.
            vec![
                "note retry.max_attempts: 5 × 2 s + 0.2 + 0.4 + 0.8 + 1.6 s = 13 s > 5 s: two whole attempts and one cut \
                 to 0.4 s, but all five where each fails at once",
            ],
        ),
        (Preset::Durable, vec![]),
        (
            Preset::MicrosoftStandard,
            // 10 + 2.756 + 10 + 2.922 = 25.678 s. The waits lean on one another: together, not each, the longest.
            vec![
                "note retry.max_attempts: 4 × 10 s + 2.756 + 2.922 + 5.732 s = 51.41 s > 30 s: two whole attempts and one \
                 cut to 4.322 s, but all four where each fails at once",
                ONE_HOST_OF_TEN,
            ],
        ),
        (
            Preset::GrpcA6,
            // 100, 200 and 400 ms, each a fifth more. One attempt may use up the deadline.
            vec![
                "warning retry.max_attempts: 4 × 5 s + 0.12 + 0.24 + 0.48 s = 20.84 s > 5 s: one whole attempt and no more",
            ],
        ),
        (Preset::Aws2026, vec![NOTHING_BOUNDS_IT]),
        (Preset::AzureCore, vec![NOTHING_BOUNDS_IT]),
        (
            Preset::Envoy,
            vec![
                "warning retry.max_attempts: 2 × 15 s + 0.025 s = 30.025 s > 15 s: one whole attempt and no more",
            ],
        ),
    ] {
        assert_eq!(told(&preset.policy()), warnings, "{}", preset.name());
    }
}

#[test]
fn the_first_documents_settings_are_told_what_they_deserve() {
    // The loop is the default, with gRPC's budget in place of the loan.
    let with_budget = told_of("budget = { kind = \"grpc\", max_tokens = 10, token_ratio = 0.1 }");
    assert_eq!(with_budget, told(&Policy::live()));
    // The standard handler with the time-outs that it shows: 2 + 2.756 = 4.756 s, and the second attempt is a stump.
    let handler = "preset = \"microsoft-standard\"\nattempt_timeout = \"2s\"\ntotal_timeout = \"5s\"";
    assert_eq!(
        told_of(handler),
        [
            "warning retry.max_attempts: 4 × 2 s + 2.756 + 2.922 + 5.732 s = 19.41 s > 5 s: one whole attempt and one cut to \
             0.244 s",
            ONE_HOST_OF_TEN,
        ]
    );
    // The storage client's six attempts.
    assert_eq!(told_of("preset = \"azure-core\"\nretry.max_attempts = 6"), [NOTHING_BOUNDS_IT]);
    // Google's three attempts and a tenth of all requests.
    let sre = "[retry]\nmax_attempts = 3\n[budget]\nkind = \"ratio\"\nof = \"all\"\nshare = 0.1";
    assert_eq!(
        told_of(sre),
        [
            "note retry.max_attempts: 3 × 2 s + 0.2 + 0.4 s = 6.6 s > 5 s: two whole attempts and one cut to 0.4 s, but all three where each fails at once",
        ]
    );
}

#[test]
fn the_second_documents_settings_are_told_what_they_deserve() {
    // What cannot fit.
    let idea = "total_timeout = \"2s\"\nattempt_timeout = \"1s\"\n[retry]\nmax_attempts = 4\njitter = \"none\"\n\
                backoff = { kind = \"steps\", waits = [\"200ms\", \"400ms\", \"800ms\"] }";
    assert_eq!(
        told_of(idea),
        [
            "warning retry.max_attempts: 4 × 1 s + 0.2 + 0.4 + 0.8 s = 5.4 s > 2 s: one whole attempt and one cut to 0.8 s",
            "warning retry.jitter: callers that failed together come back together",
        ]
    );
    // Its standard handler: 0.6 + 0.1378 + 0.6 + 0.1461 = 1.4839 s. A breaker at 50 % of 20 calls is beyond doubt.
    let handler = "preset = \"microsoft-standard\"\ntotal_timeout = \"2s\"\nattempt_timeout = \"600ms\"\n\
                   [retry]\nmax_attempts = 3\nbackoff = { base = \"100ms\" }\n\
                   [breaker]\nwindow = \"20s\"\nmin_calls = 20\nfailure_rate = 0.5\n\
                   break_time = { kind = \"constant\", wait = \"30s\" }";
    let cut = "note retry.max_attempts: 3 × 0.6 s + 0.1378 + 0.1461 s = 2.0839 s > 2 s: two whole attempts and one cut to \
               0.5161 s, but all three where each fails at once";
    assert_eq!(told_of(handler), [cut]);
    // Its custom pipeline is the same but for what it repeats, and without the limit.
    let custom = format!(
        "{handler}\n[admission]\nconcurrency = \"none\"\n[classify]\nstatus = {{ 408 = \"not_now\", 5xx = \"not_now\" }}"
    );
    assert_eq!(told_of(&custom), [cut]);
}
