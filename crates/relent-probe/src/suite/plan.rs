//! The trials, in phases. A script is all that a trial is; none of them knows the client.

use std::time::Duration;

use relent::{Invalid, format_duration};

use super::Observations;
use crate::{
    client::Ask,
    hint::WaitForm,
    record::{Arrival, End},
    trial::{Exit, Interruption, Trial},
};

/// What a client can be asked for, seen on a dependency without a fault.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abilities {
    /// What most trials ask for.
    pub(crate) main: Main,
    /// It sends a POST when it is asked to, without a key when it is given none.
    pub(crate) post_bare: Can,
    /// It sends the key that it is given, or one of its own.
    pub(crate) post_keyed: Can,
    /// It sends the body that it is given with the method that it is given.
    pub(crate) put: Can,
    /// It makes as many calls as it is told.
    pub(crate) calls: Can,
}

/// What most trials ask for: what is safest to repeat of what the client can do.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Main {
    /// A method that may be repeated by its definition.
    #[default]
    Safe,
    /// A POST with a key.
    Keyed,
    /// A POST that nobody may repeat.
    Bare,
}

/// Whether a client can do something.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Can {
    Yes,
    #[default]
    No,
}

impl From<bool> for Can {
    fn from(can: bool) -> Self {
        if can { Self::Yes } else { Self::No }
    }
}

impl Abilities {
    /// What the first trials showed.
    ///
    /// # Errors
    ///
    /// Where the client never asked for anything.
    pub(super) fn of(observed: &Observations) -> Result<Self, Invalid> {
        let first = |name: &str| observed.one(name).and_then(|seen| seen.arrivals.first());
        let Some(get) = first("get") else {
            let Some(seen) = observed.copies("get").first() else {
                let why = format!("the time was up before `{}` was run; give it more", observed.line);
                return Err(Invalid::new("time", why));
            };
            let ended = crate::check::ended(seen.exit);
            let said = Some(seen.stderr.as_str()).filter(|stderr| !stderr.is_empty());
            let said = said.map(|stderr| format!("; it wrote: {stderr}")).unwrap_or_default();
            let why = format!(
                "`{}` never asked for the URL it was given, and {ended}; write {{url}} where it belongs, or let the \
                 program read RELENT_PROBE_URL{said}",
                observed.line
            );
            return Err(Invalid::new("command", why));
        };
        let is = |arrival: Option<&Arrival>, method: &str| arrival.is_some_and(|one| named(one) == method);
        let (bare, keyed, put) = (first("post"), first("post-keyed"), first("put"));
        let post_keyed = is(keyed, "POST") && keyed.and_then(key).is_some();
        let main = match named(get) {
            "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE" => Main::Safe,
            _ if post_keyed => Main::Keyed,
            _ => Main::Bare,
        };
        let sent = |arrival: &&Arrival| arrival.body.length > 0;
        Ok(Self {
            main,
            post_bare: (is(bare, "POST") && bare.and_then(key).is_none()).into(),
            post_keyed: post_keyed.into(),
            put: (is(put, "PUT") && put.filter(sent).is_some()).into(),
            calls: (observed.attempts("calls") == Some(SEVERAL)).into(),
        })
    }
}

/// The idempotency key of a request.
pub(crate) fn key(arrival: &Arrival) -> Option<&str> {
    arrival.header("idempotency-key").filter(|key| !key.is_empty())
}

pub(crate) fn named(arrival: &Arrival) -> &str {
    arrival.method.as_ref().map(http::Method::as_str).unwrap_or_default()
}

/// What the client can be asked for at all.
pub(super) fn acquaintance() -> Vec<Trial> {
    let calls = Ask { calls: u32::try_from(SEVERAL).unwrap_or(1), ..get() };
    vec![
        trial("get", "200", get()),
        trial("post", "200", post("")),
        trial("post-keyed", "200", post(KEY)),
        trial("put", "200", Ask { method: "PUT", ..post(KEY) }),
        trial("calls", "200", calls),
    ]
}

/// One failure, then an answer: which failures are repeated.
pub(super) fn singles(observed: &Observations) -> Vec<Trial> {
    let abilities = &observed.abilities;
    let main = || abilities.ask();
    let mut trials: Vec<Trial> = STATUSES.iter().map(|(name, status)| once(name, status, main())).collect();
    trials.extend(FAULTS.iter().map(|(name, fault)| once(name, fault, main())));
    trials.push(trial("half-always", "200 half body 4096", main()));
    if abilities.post_bare == Can::Yes {
        let faults = [("post-503", "503"), ("post-reset", "reset"), ("post-hang", "hang")];
        trials.extend(faults.map(|(name, fault)| once(name, fault, post(""))));
    }
    if abilities.post_keyed == Can::Yes {
        let faults = [("keyed-503", "503"), ("keyed-reset", "reset"), ("keyed-hang", "hang")];
        trials.extend(faults.map(|(name, fault)| once(name, fault, post(KEY))));
    }
    if abilities.put == Can::Yes {
        let put = || Ask { method: "PUT", ..post(KEY) };
        trials.extend(
            [("put-503", "503"), ("put-reset", "reset")].map(|(name, fault)| once(name, fault, put())),
        );
    }
    trials.push(trial("hang-always", "hang", main()));
    trials.push(Trial { interruption: Interruption::Terminated, ..trial("terminated", "hang", main()) });
    trials
}

/// Calls that all fail, from many copies and from one process.
pub(super) fn outage(observed: &Observations) -> Vec<Trial> {
    let main = || observed.abilities.ask();
    let repeated = |name: &&(&str, &str)| observed.attempts(name.0).is_some_and(|attempts| attempts > 1);
    // What is measured is how it retries: with whatever it does retry.
    let fault = OUTAGES.iter().find(repeated).unwrap_or(&OUTAGES[0]).1;
    let mut trials = vec![Trial { copies: observed.suite.copies.max(1), ..trial(OUTAGE, fault, main()) }];
    if observed.abilities.calls == Can::Yes {
        let ask = Ask { calls: observed.suite.calls, ..main() };
        trials.push(trial("calls-outage", fault, ask));
    }
    trials
}

/// Waits that are asked for, longer than any the client would make by itself.
pub(super) fn hints(observed: &Observations) -> Vec<Trial> {
    let main = || observed.abilities.ask();
    let mut trials = Vec::new();
    let longest = observed.waits(OUTAGE).iter().filter_map(|waits| waits.first().copied()).max();
    if let Some(longest) = longest {
        let asked =
            format!("{}s", longest.as_millis() / 1000 + 1 + u128::from(longest.subsec_millis() > 700));
        let hinted = |name, status: &str, form: WaitForm| {
            trial(name, &format!("{status} asks {asked} as {}, 200", form.name()), main())
        };
        let crowd = observed.suite.copies.clamp(1, CROWD);
        trials.push(Trial { copies: crowd, ..hinted("asked-503", "503", WaitForm::Seconds) });
        trials.push(hinted("asked-429", "429", WaitForm::Seconds));
        trials.push(hinted("asked-date", "503", WaitForm::Date));
        trials.extend(OTHER_FORMS.map(|(name, form)| hinted(name, "503", form)));
        trials.push(trial("asked-long", "503 asks 1h, 200", main()));
        trials.push(trial("should-not", "503 should-retry no, 200", main()));
    }
    if let Some(silence) = silence(observed) {
        let slow = format_duration(silence.saturating_mul(DRIBBLE));
        trials.push(trial("dribble", &format!("200 slow {slow}"), main()));
    }
    trials
}

/// How long the client waits for an answer that does not come.
pub(crate) fn silence(observed: &Observations) -> Option<Duration> {
    let seen =
        observed.one("hang-always").filter(|seen| seen.exit != Exit::CutOff || seen.arrivals.len() > 1)?;
    let first = seen.arrivals.first()?;
    match first.end {
        End::ClientGone { at } => Some(at.since(first.at)),
        _ => None,
    }
}

impl Abilities {
    /// What most trials ask for.
    fn ask(&self) -> Ask {
        match self.main {
            Main::Safe => get(),
            Main::Keyed => post(KEY),
            Main::Bare => post(""),
        }
    }
}

fn trial(name: &'static str, script: &str, ask: Ask) -> Trial {
    Trial { name, script: script.to_owned(), ask, copies: 1, interruption: Interruption::None }
}

fn once(name: &'static str, fault: &str, ask: Ask) -> Trial {
    trial(name, &format!("{fault}, 200"), ask)
}

fn get() -> Ask {
    Ask { method: "GET", key: String::new(), body: String::new(), calls: 1 }
}

fn post(key: &str) -> Ask {
    let body = format!("{{\"order\":17,\"note\":\"{}\"}}", "relent ".repeat(400));
    Ask { method: "POST", key: key.to_owned(), body, calls: 1 }
}

/// Statuses, each once and then an answer.
pub(crate) const STATUSES: [(&str, &str); 13] = [
    ("once-400", "400"),
    ("once-401", "401"),
    ("once-403", "403"),
    ("once-404", "404"),
    ("once-408", "408"),
    ("once-409", "409"),
    ("once-422", "422"),
    ("once-429", "429"),
    ("once-500", "500"),
    ("once-501", "501"),
    ("once-502", "502"),
    ("once-503", "503"),
    ("once-504", "504"),
];

/// Ways of not answering, each once and then an answer.
pub(crate) const FAULTS: [(&str, &str); 5] = [
    ("once-reset", "reset"),
    ("once-reset-unread", "reset-unread"),
    ("once-close", "close"),
    ("once-half", "200 half body 4096"),
    ("once-hang", "hang"),
];

/// The names of the other forms of asking, which are reported and not graded.
pub(crate) const OTHER_FORMS: [(&str, WaitForm); 8] = [
    ("asked-rfc850", WaitForm::Rfc850),
    ("asked-asctime", WaitForm::Asctime),
    ("asked-retry-after-ms", WaitForm::RetryAfterMs),
    ("asked-x-ms-retry-after-ms", WaitForm::XMsRetryAfterMs),
    ("asked-x-amz-retry-after", WaitForm::XAmzRetryAfter),
    ("asked-ratelimit", WaitForm::RateLimit),
    ("asked-ratelimit-reset", WaitForm::RateLimitReset),
    ("asked-x-ratelimit-reset", WaitForm::XRateLimitReset),
];

/// What fails in the outage: the first that the client repeats.
const OUTAGES: [(&str, &str); 5] = [
    ("once-503", "503"),
    ("once-429", "429"),
    ("once-502", "502"),
    ("once-reset", "reset"),
    ("once-500", "500"),
];

/// The trial in which every copy meets nothing but failures.
pub(crate) const OUTAGE: &str = "outage";
/// The key that the client is given.
pub(crate) const KEY: &str = "5f0c6d1e-probe";
/// A head dribbles over ten times the silence that the client bears, a piece each half of it.
pub(crate) const DRIBBLE: u32 = 10;
const CROWD: u32 = 12;
/// How many calls show that a client can make several.
const SEVERAL: usize = 3;
