//! What is read of other people's files, what is named because it was not, and whose a file is.

use std::time::Duration;

use relent_check::{Document, Format, Mend, Origin, Part, Question, Subject, Verdict, World, check};
use relent_core::{Backoff, BudgetPolicy, Idempotency, Jitter, Policy, ServerWaitMode, Window};

fn one(text: &str) -> Subject {
    let document = Document::parse(text, None, &Policy::live()).unwrap_or_else(|why| panic!("{text}\n{why}"));
    let [subject] = document.subjects.as_slice() else { panic!("{} subjects", document.subjects.len()) };
    subject.clone()
}

fn refused(text: &str, format: Option<Format>) -> String {
    Document::parse(text, format, &Policy::live()).expect_err(text).to_string()
}

fn unread(subject: &Subject) -> Vec<String> {
    subject.unread.iter().map(|unread| format!("{}: {}", unread.path, unread.why)).collect()
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_handler_of_dotnet_is_read_setting_by_setting() {
    let subject = one(r#"{ "Http": { "retry": {
        "maxretryattempts": "4", "backoffType": "linear", "usejitter": "True", "delay": "00:00:00.25", "MaxDelay": "00:00:02",
        "ShouldRetryAfterHeader": false },
      "CircuitBreaker": { "FailureRatio": 0.25, "MinimumThroughput": 7, "SamplingDuration": "00:01", "BreakDuration": "00:00:09" },
      "RateLimiter": { "DefaultRateLimiterOptions": { "PermitLimit": 12, "QueueLimit": 3 } },
      "AttemptTimeout": { "Timeout": "00:00:01.5" }, "TotalRequestTimeout": { "Timeout": "0.00:00:20" } } }"#);
    assert_eq!((subject.place.as_str(), subject.format), ("Http", Format::Microsoft));
    let policy = &subject.policy;
    assert_eq!(policy.retry.max_attempts, Some(5));
    assert_eq!(policy.retry.backoff, Backoff::Linear { base: ms(250), max: ms(2_000) });
    assert_eq!(policy.retry.jitter, Jitter::Proportional { below_milli: 250, above_milli: 250 });
    assert_eq!(policy.retry.server_wait.mode, ServerWaitMode::Ignore);
    assert_eq!((policy.attempt_timeout, policy.total_timeout), (ms(1_500), Some(ms(20_000))));
    let limit = policy.admission.concurrency.unwrap();
    assert_eq!((limit.limit, limit.queue), (12, 3));
    let breaker = policy.breaker.as_ref().unwrap();
    assert_eq!((breaker.failure_rate_milli, breaker.min_calls), (Some(250), 7));
    assert_eq!((breaker.window, breaker.break_time.ceiling(1)), (Window::Time(ms(60_000)), ms(9_000)));
    assert_eq!(subject.origin(Part::Attempts), &Origin::Written("Http:retry:maxretryattempts".into()));
    assert!(unread(&subject).is_empty(), "{:?}", unread(&subject));
    let defaults = one(r#"{ "Retry": { "UseJitter": true } }"#);
    assert_eq!(defaults.policy.retry, relent_core::Preset::MicrosoftStandard.policy().retry);
    assert_eq!(defaults.origin(Part::Deadline), &Origin::Default("TotalRequestTimeout:Timeout".into()));
}

#[test]
fn what_is_not_understood_is_named_with_its_path_and_leaves_its_part_untold() {
    let subject = one(r#"{ "A": { "AttemptTimeout": { "Timeout": "two seconds" },
        "Retry": { "MaxRetryAttempts": "${RETRIES}", "Colour": "blue" },
        "Hedging": { "MaxHedgedAttempts": 2 } } }"#);
    assert_eq!(
        unread(&subject),
        [
            "A:AttemptTimeout:Timeout: \"two seconds\" is not a time like \"00:00:02\"",
            "A:Retry:MaxRetryAttempts: \"${RETRIES}\" is filled in elsewhere",
            "A:Hedging: hedging is not checked: every hedge is one more attempt at the same moment",
            "A:Retry:Colour: not read",
        ]
    );
    let report = check(&subject, &World::default());
    let told =
        |name: &str| report.answers.iter().find(|answer| answer.question.name() == name).unwrap().verdict;
    assert_eq!((told("attempt_time"), told("stops_by_attempts")), (Verdict::CannotTell, Verdict::CannotTell));
    assert_eq!(report.figures.at_best, None);
}

#[test]
fn a_time_that_dotnet_takes_for_days_is_told_with_what_was_meant() {
    let subject = one(r#"{ "Retry": { "MaxRetryAttempts": 2, "Delay": "2" } }"#);
    assert_eq!(subject.policy.retry.backoff.ceiling(1), Duration::from_secs(2 * 86_400));
    let report = check(&subject, &World::default());
    let days = report.findings.iter().find(|finding| finding.name == "days_by_mistake").unwrap();
    let Mend::Set(edit) = &days.mend else { panic!("{days:?}") };
    assert_eq!(edit.line, "Retry:Delay = \"00:00:02\"");
}

#[test]
fn an_azure_client_waits_at_most_its_longest_after_the_jitter() {
    let fixed =
        one(r#"{ "Storage": { "Retry": { "Mode": "Fixed", "Delay": "00:00:03", "MaxRetries": 2 } } }"#);
    assert_eq!((fixed.format, fixed.place.as_str()), (Format::Azure, "Storage:Retry"));
    assert_eq!(fixed.policy.retry.backoff, Backoff::Constant(ms(3_000)));
    assert!(fixed.habits.cuts_after_jitter);
    let names: Vec<&str> =
        check(&fixed, &World::default()).findings.iter().map(|finding| finding.name).collect();
    assert_eq!(
        names,
        ["backoff_does_not_grow", "jitter_lost_at_cap"],
        "half of its draws are the delay itself"
    );
    let bus = one(
        r#"{ "extensions": { "eventHubs": { "clientRetryOptions": { "mode": "exponential", "tryTimeout": "00:00:30",
        "delay": "00:00:01", "maximumDelay": "00:00:40", "maximumRetries": 4 } } } }"#,
    );
    assert_eq!((bus.policy.retry.max_attempts, bus.policy.attempt_timeout), (Some(5), ms(30_000)));
    let curve = Backoff::Exponential { base: ms(1_000), factor_milli: 2000, max: ms(40_000) };
    assert_eq!(bus.policy.retry.backoff, curve);
}

#[test]
fn a_service_config_has_a_retry_for_each_method_and_one_budget() {
    let text = r#"{ "retryThrottling": { "maxTokens": 20, "tokenRatio": 0.5466 },
      "methodConfig": [
        { "name": [{ "service": "a.B", "method": "C" }, { "service": "d.E" }], "timeout": "1.5s", "retryPolicy": {
            "maxAttempts": 9, "initialBackoff": "0.05s", "maxBackoff": "2s", "backoffMultiplier": 1.5,
            "retryableStatusCodes": [14, "RESOURCE_EXHAUSTED"] } },
        { "name": [{}], "hedgingPolicy": { "maxAttempts": 3, "hedgingDelay": "0.1s" } },
        { "name": [{ "service": "plain" }] } ] }"#;
    let document = Document::parse(text, None, &Policy::live()).unwrap();
    let [retried, hedged] = document.subjects.as_slice() else { panic!("{:?}", document.subjects.len()) };
    assert_eq!((retried.place.as_str(), hedged.place.as_str()), ("a.B/C, d.E", "every method"));
    // RT-25: a configured limit is silently reduced there, and not here.
    assert_eq!(retried.policy.retry.max_attempts, Some(5));
    assert_eq!(unread(retried), ["methodConfig[0].retryPolicy.maxAttempts: clients treat 9 as 5"]);
    let curve = Backoff::Exponential { base: ms(50), factor_milli: 1500, max: ms(2_000) };
    assert_eq!((&retried.policy.retry.backoff, retried.policy.total_timeout), (&curve, Some(ms(1_500))));
    assert_eq!(retried.repeats, ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]);
    let Some(BudgetPolicy::Grpc(budget)) = retried.policy.budget else {
        panic!("{:?}", retried.policy.budget)
    };
    assert_eq!((budget.max_milli, budget.ratio_milli), (20_000, 546));
    assert!(unread(hedged)[0].contains("hedging is not checked"), "{:?}", unread(hedged));
    let odd = text.replace("14,", "\"GONE\",");
    let odd = Document::parse(&odd, None, &Policy::live()).unwrap();
    assert!(unread(&odd.subjects[0]).join(" ").contains("\"GONE\" is no status of gRPC"));
}

#[test]
fn profiles_of_aws_are_read_one_by_one_and_an_environment_as_one() {
    let text = "[default]\nregion=eu-west-1\nretry_mode = adaptive\n[profile old]\nretry_mode = legacy\nmax_attempts = 7\n[profile plain]\nregion = x\n";
    let document = Document::parse(text, None, &Policy::live()).unwrap();
    let [adaptive, legacy] = document.subjects.as_slice() else { panic!("{}", document.subjects.len()) };
    assert_eq!((adaptive.place.as_str(), legacy.place.as_str()), ("[default]", "[profile old]"));
    assert_eq!((adaptive.policy.retry.max_attempts, legacy.policy.retry.max_attempts), (Some(3), Some(7)));
    assert!(adaptive.policy.budget.is_some() && legacy.policy.budget.is_none());
    let older = one("AWS_MAX_ATTEMPTS=4\nAWS_NEW_RETRIES_2026=false\n");
    assert_eq!(older.policy.retry.max_attempts, Some(4));
    assert_eq!(older.policy.retry.backoff.ceiling(1), ms(1_000), "the standard mode before 2026");
    let unknown = one("[default]\nretry_mode = eager\n");
    assert!(unread(&unknown)[0].contains("\"eager\" is not one of standard, adaptive, legacy"));
}

#[test]
fn a_route_of_envoy_is_joined_with_its_cluster() {
    let text = "\
virtual_hosts:
- routes:
  - match: { path: /a, headers: [ { name: ':method', exact_match: GET } ] }
    route:
      cluster: stock
      timeout: 0s
      retryPolicy:
        retryOn: 5xx,retriable-status-codes
        numRetries: 3
        retriableStatusCodes: [409]
        retryBackOff: { baseInterval: 0.1s, maxInterval: 0.5s }
        retryPriority: { name: previous }
clusters:
- name: other
- name: stock
  circuitBreakers: { thresholds: [ { retryBudget: { budgetPercent: { value: 12.5 } } } ] }
  outlier_detection: { consecutive_5xx: 5 }
";
    let subject = one(text);
    assert_eq!(subject.place, "virtual_hosts[0].routes[0].route");
    let policy = &subject.policy;
    assert_eq!((policy.retry.max_attempts, policy.total_timeout), (Some(4), None), "0s bounds nothing");
    let waits: Vec<Duration> = (1..=4).map(|n| policy.retry.backoff.ceiling(n)).collect();
    assert_eq!(waits, [ms(100), ms(300), ms(500), ms(500)]);
    let Some(BudgetPolicy::Share(share)) = policy.budget else { panic!("{:?}", policy.budget) };
    assert_eq!((share.share_milli, share.floor), (125, 3));
    assert!(
        matches!(subject.origin(Part::Repeat), Origin::Written(path) if path.contains("match.headers[0]"))
    );
    let named = unread(&subject).join("\n");
    assert!(named.contains("outlier_detection") && named.contains("retryPriority.name: not read"), "{named}");
    let names: Vec<&str> =
        check(&subject, &World::default()).findings.iter().map(|finding| finding.name).collect();
    assert_eq!(names, ["ignores_hints", "no_deadline"]);
    let other = text.replace("cluster: stock", "cluster: elsewhere");
    assert!(!one(&other).knows(Part::Budget), "the budget stands in another file");
}

#[test]
fn an_instance_of_resilience4j_is_joined_with_what_has_its_name() {
    let subject = one("\
resilience4j:
  retry:
    configs:
      default: { maxAttempts: 9, waitDuration: 100ms }
      shared: { maxAttempts: 4, waitDuration: 1s, enableExponentialBackoff: true, exponentialMaxWaitDuration: PT5S }
    instances:
      stock: { baseConfig: shared, maxAttempts: 2 }
  timelimiter: { instances: { stock: { timeoutDuration: 700 } } }
  circuitbreaker: { configs: { default: { slidingWindowType: TIME_BASED, slidingWindowSize: 10 } }, instances: { stock: {} } }
  bulkhead: { instances: { stock: { maxConcurrentCalls: 8 } } }
");
    let policy = &subject.policy;
    assert_eq!((policy.retry.max_attempts, policy.attempt_timeout), (Some(2), ms(700)));
    let curve = Backoff::Exponential { base: ms(1_000), factor_milli: 1500, max: ms(5_000) };
    assert_eq!(policy.retry.backoff, curve);
    let breaker = policy.breaker.as_ref().unwrap();
    assert_eq!((breaker.window, breaker.failure_rate_milli), (Window::Time(ms(10_000)), Some(500)));
    assert_eq!(policy.attempt.concurrency.unwrap().limit, 8);
    let elsewhere = one(
        "resilience4j.retry.instances.x: {}\nresilience4j:\n  retry:\n    instances:\n      y: { maxAttempts: '${N:3}' }\n",
    );
    assert!(
        unread(&elsewhere)[0].contains("resilience4j.retry.instances.y.maxAttempts"),
        "{:?}",
        unread(&elsewhere)
    );
}

#[test]
fn a_servers_configuration_is_checked_policy_by_policy_and_says_what_delivery_does_not_ask() {
    let text = "[policies.\"a.b\"]\nalert = \"x\"\n[policies.c]\nrepeat = \"unsafe\"\n";
    let document = Document::parse(text, None, &Policy::live()).unwrap();
    let places: Vec<&str> = document.subjects.iter().map(|subject| subject.place.as_str()).collect();
    assert_eq!(places, ["policies.a.b", "policies.c"]);
    assert_eq!(document.subjects[1].policy.repeat, Idempotency::Unsafe);
    let found = check(&document.subjects[1], &World::default()).findings;
    let Mend::Set(edit) = &found[0].mend else { panic!("{found:?}") };
    assert_eq!(edit.line, "policies.c.alert = \"the people on call\"");
    let mended = document.with(edit).unwrap();
    assert!(check(&mended.subjects[1], &World::default()).findings.is_empty());

    // What is written and not in force is named and answers nothing.
    let text = "[policies.a]\nalert = \"x\"\nbreaker = {}\n[policies.a.budget]\nkind = \"loan\"\n";
    let document = Document::parse(text, None, &Policy::live()).unwrap();
    let report = check(&document.subjects[0], &World::default());
    let paths: Vec<&str> = report.unread.iter().map(|unread| unread.path.as_str()).collect();
    assert_eq!(paths, ["policies.a.budget", "policies.a.breaker"]);
    let told = |question| {
        let answer = report.answers.iter().find(|answer| answer.question == question).unwrap();
        (answer.verdict, answer.says.clone())
    };
    let (verdict, says) = told(Question::StopsByBudget);
    assert!(verdict == Verdict::No && says.contains("delivery asks no budget yet"), "{says}");
    let (verdict, says) = told(Question::ConcurrencyAndBreaker);
    assert!(verdict == Verdict::No && says.contains("delivery.per_destination"), "{says}");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.limits.iter().any(|limit| limit.name == "no_budget"), "{:?}", report.limits);
}

#[test]
fn a_route_of_istio_is_retried_twice_where_nothing_is_said() {
    let service = |http: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec:\n  http:\n  - route:\n    - destination: {{ host: \
             stock }}\n{http}"
        )
    };
    let bare = one(&service(""));
    assert_eq!((bare.format, bare.place.as_str()), (Format::Istio, "spec.http[0]"));
    assert_eq!((bare.policy.retry.max_attempts, bare.policy.total_timeout), (Some(3), None));
    assert_eq!(bare.origin(Part::Attempts), &Origin::Default("spec.http[0].retries.attempts".into()));
    assert!(
        bare.repeats.contains(&"503".to_owned()) && !bare.knows(Part::Budget) && !bare.knows(Part::Repeat)
    );

    let found = check(&bare, &World::default()).findings;
    let Some(Mend::Set(edit)) = found.first().map(|finding| &finding.mend) else { panic!("{found:?}") };
    assert_eq!((found[0].name, edit.line.as_str()), ("no_deadline", "spec.http[0].timeout: \"30s\""));
    assert!(!found[0].why.contains("business_deadline"), "{}", found[0].why);

    let none = one(&service("    retries: { attempts: 0 }\n"));
    assert_eq!(none.policy.retry.max_attempts, Some(1), "none is none");

    let said = one(&service(
        "    timeout: 2s\n    retries: { attempts: 3, perTryTimeout: 500ms, backoff: 100ms, retryOn: \"connect-failure,refused-stream\", colour: blue }\n",
    ));
    let policy = &said.policy;
    assert_eq!((policy.retry.max_attempts, policy.total_timeout), (Some(4), Some(ms(2_000))));
    assert_eq!((policy.attempt_timeout, policy.retry.backoff.ceiling(2)), (ms(500), ms(300)));
    assert!(said.knows(Part::Repeat), "what never reached a host is safe");
    assert_eq!(unread(&said), ["spec.http[0].retries.colour: not read"]);

    let redirect = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec:\n  http:\n  - redirect: { uri: / }\n";
    assert!(refused(redirect, None).contains("no retry that is known"));
}

#[test]
fn a_route_of_istio_is_joined_with_the_rule_for_its_host() {
    let text = include_str!("sound/inventory.istio.yaml");
    let subject = one(text);
    assert_eq!(subject.place, "[0].spec.http[0]");
    let path = "[1].spec.trafficPolicy.connectionPool.http.maxRetries";
    assert_eq!(subject.origin(Part::Budget), &Origin::Written(path.into()));
    let Some(BudgetPolicy::Share(share)) = subject.policy.budget else {
        panic!("{:?}", subject.policy.budget)
    };
    assert_eq!((share.share_milli, share.floor), (0, 3));
    // `kubectl get -o yaml` puts several into a list.
    let body = text.split("---").map(|document| {
        let mut lines = document.lines().filter(|line| !line.is_empty());
        let first = lines.next().map(|line| format!("- {line}\n")).unwrap_or_default();
        first + &lines.map(|line| format!("  {line}\n")).collect::<String>()
    });
    let list = format!("kind: List\nitems:\n{}", body.collect::<String>());
    assert_eq!(one(&list).place, "items[0].spec.http[0]");
}

#[test]
fn properties_say_what_yaml_says() {
    let properties = one(include_str!("sound/inventory.application.properties"));
    let yaml = one(include_str!("sound/inventory.resilience4j.yml"));
    assert_eq!((properties.policy, properties.repeats), (yaml.policy, yaml.repeats));
    assert!(properties.unread.is_empty(), "{:?}", properties.unread);

    // Numbers alone look like TOML.
    let numbers = one("resilience4j.retry.instances.a.max-attempts=2\n");
    assert_eq!((numbers.format, numbers.policy.retry.max_attempts), (Format::Resilience4j, Some(2)));
    let wrong = one("resilience4j.retry.instances.a.maxAttempts=${TRIES}\n");
    assert_eq!(
        unread(&wrong),
        ["resilience4j.retry.instances.a.maxAttempts: \"${TRIES}\" is filled in elsewhere"]
    );
    let found = check(&numbers, &World::default()).findings;
    let no_budget = found.iter().find(|finding| finding.name == "no_budget").expect("there is none");
    let Mend::Set(edit) = &no_budget.mend else { panic!("{no_budget:?}") };
    assert_eq!(edit.line.lines().count(), 3, "{}", edit.line);
    assert!(
        edit.line.contains("resilience4j.circuitbreaker.instances.a.failureRateThreshold=60"),
        "{}",
        edit.line
    );
}

#[test]
fn what_cannot_be_read_says_where_and_why() {
    for (text, format, told) in [
        ("", None, "it is empty"),
        ("\u{feff} \n", Some(Format::Grpc), "it is empty"),
        ("[retry]\nmax_attempts = nan\n", None, "retry.max_attempts is not a number"),
        ("a = [1, -inf]\n", None, "a[1] is not a number"),
        ("{ \"A\": [{ \"Retry\": 1, \"Retry\": 2 }] }", None, "A:0:Retry is there twice"),
        ("a: 1\na: 2\n", None, "duplicate"),
        ("[retry]\nmax_attempts = 3\njitter = full\n", None, "not TOML"),
        ("[policies.a.retry]\nmax_attempts = 3\njitter = full\n", None, "not TOML"),
        ("{ \"a\": 1 }", None, "no retry that is known stands in it"),
        ("{ \"a\": }", None, "not JSON"),
        ("retries = 3\n", None, "unknown field `retries`"),
        ("\n[retry]\nmax_attempts = 0\n", None, "retry.max_attempts: 0 is not a number of attempts"),
        ("[retry]\njitter = \"some\"\n", None, "retry.jitter: \"some\" is not known"),
        ("[policies.x.retry]\njitter = \"some\"\n", None, "policies.x.retry.jitter: \"some\" is not known"),
        ("a = = 1\n", None, "not TOML"),
        ("a: [b\n", None, "not YAML"),
        ("retry_mode standard\n", Some(Format::Aws), "line 1: \"retry_mode standard\" is no setting"),
    ] {
        let said = refused(text, format);
        assert!(said.contains(told), "{text:?}: {said}");
    }
    assert!(refused("\nretries = 3\n", None).contains("line 2"), "a policy's error has its line");
}

#[test]
fn every_format_can_be_named_and_every_reader_survives_any_tree() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(*format));
    }
    let odd = [
        "{ \"methodConfig\": 1 }",
        "{ \"methodConfig\": [ { \"retryPolicy\": [] } ] }",
        "{ \"retry_policy\": { \"retry_on\": {} } }",
        "{ \"Retry\": { \"MaxRetries\": {}, \"Mode\": [] } }",
        "{ \"Retry\": { \"UseJitter\": null, \"MaxRetryAttempts\": -1 }, \"AttemptTimeout\": { \"Timeout\": {} } }",
        "resilience4j: { retry: { instances: { a: 1, b: [], c: ~ } } }",
        "resilience4j: 5",
        "- 1\n- 2",
    ];
    for text in odd {
        if let Ok(document) = Document::parse(text, None, &Policy::live()) {
            document.subjects.iter().for_each(|subject| drop(check(subject, &World::default()).to_string()));
        }
    }
}

/// A client that cannot be told to do better by a setting is no reason to be silent when somebody asks.
#[test]
fn what_is_asked_is_answered_even_where_no_setting_helps() {
    let handler = one(r#"{ "Retry": { "MaxRetryAttempts": 2, "Delay": "00:00:00.1" } }"#);
    let asked = World { layers: Some(3), ..World::default() };
    let found = check(&handler, &asked).findings;
    let layers = found.iter().find(|finding| finding.name == "layers_multiply").expect("it was asked");
    assert!(layers.why.contains("27 calls") && matches!(layers.mend, Mend::Do(_)), "{layers:?}");
}

/// A number that is filled in elsewhere is some number: it retries, and how often is not told.
#[test]
fn what_cannot_be_read_is_neither_the_default_nor_nothing() {
    let with = |attempts: &str, timeout: &str| {
        one(&format!(
            r#"{{ "methodConfig": [{{ "name": [{{}}], "timeout": "{timeout}", "retryPolicy": {{ "maxAttempts": "{attempts}",
            "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] }} }}] }}"#
        ))
    };
    let filled_in = check(&with("${ATTEMPTS:-3}", "5s"), &World::default());
    let says = |report: &relent_check::Report, question: Question| {
        report.answers.iter().find(|answer| answer.question == question).unwrap().says.clone()
    };
    assert!(says(&filled_in, Question::BacksOff).starts_with("from 100ms"));
    assert_eq!((filled_in.figures.one_call, filled_in.figures.outage.attempts_milli), (None, None));
    assert_eq!(filled_in.figures.outage.words, "all its attempts for each call, as long as it lasts");
    let budget = filled_in.findings.iter().find(|finding| finding.name == "no_budget").unwrap();
    assert!(budget.why.contains("every call makes all its attempts"), "{}", budget.why);

    let timeless = with("4", "${TIMEOUT}");
    assert!(timeless.is_unreadable(Part::Deadline) && timeless.is_unreadable(Part::AttemptTimeout));
    let scalar = one(r#"{ "methodConfig": [{ "name": [{}], "retryPolicy": 5 }] }"#);
    assert!(scalar.is_unreadable(Part::Attempts) && scalar.retries());

    let handler =
        one(r#"{ "Retry": { "MaxRetryAttempts": 3 }, "TotalRequestTimeout": { "Timeout": "%T%" } }"#);
    let handler = check(&handler, &World::default());
    assert_eq!((handler.figures.limit, handler.figures.timing_out), (None, None));
    assert_eq!(
        (handler.figures.at_best, handler.figures.at_worst, handler.figures.longest),
        (None, None, None)
    );
    let names: Vec<&str> = handler.findings.iter().map(|finding| finding.name).collect();
    assert_eq!(names, ["breaker_trips_on_one_host"], "the default of 30s is not what counts");

    let route = r#"{ "routes": [{ "route": { "cluster": "c", "timeout": "{{ .t }}", "retry_policy": { "retry_on": "5xx" } } }] }"#;
    let route = check(&one(route), &World::default());
    assert_eq!((route.figures.limit.clone(), route.figures.longest), (None, None));
    assert_eq!(says(&route, Question::AttemptTime), "what is written there cannot be read");

    let mode = one("[default]\nretry_mode = ${MODE}\nmax_attempts = 5\n");
    assert_eq!(
        check(&mode, &World::default()).figures.outage.words,
        "not told: what bounds it cannot be read"
    );
}

/// A TXT record holds a list of choices, and each a config.
#[test]
fn a_service_config_is_found_in_a_record_of_dns() {
    let record = r#"grpc_config=[{ "clientLanguage": ["GO"], "percentage": 100, "serviceConfig": { "methodConfig": [{
        "name": [{ "service": "stock" }], "retryPolicy": { "maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s",
        "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"] } }] } }]"#;
    let document = Document::parse(record, None, &Policy::live()).unwrap();
    let [subject] = document.subjects.as_slice() else { panic!("{} subjects", document.subjects.len()) };
    assert_eq!((subject.place.as_str(), subject.policy.retry.max_attempts), ("stock", Some(4)));
    let report = check(subject, &World::default());
    let budget = report.findings.iter().find(|finding| finding.name == "no_budget").unwrap();
    assert_eq!(budget.field, "[0].serviceConfig.retryThrottling");
    let Mend::Set(edit) = &budget.mend else { panic!("{budget:?}") };
    let mended = document.with(edit).unwrap();
    assert!(mended.subjects[0].policy.budget.is_some(), "{}", edit.line);
}
