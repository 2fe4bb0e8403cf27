//! How long it waits for an answer, and what it leaves behind when it stops waiting.

use std::time::Duration;

use super::{Check, Verdict, brief, ended, silent};
use crate::{
    record::End,
    suite::{Observations, plan},
    trial::Exit,
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "gives-up-on-silence",
        demands: "An attempt that gets no answer is given up in time.",
        source: "Retry, Timeout, and Backoff: an attempt timeout bounds each physical call",
        judge: silence,
    },
    Check {
        name: "gives-up-on-a-dribble",
        demands: "A head that comes a few bytes at a time is not waited for much longer than silence.",
        source: "Retry, Timeout, and Backoff: a timeout is a budget for the call, not for a byte",
        judge: dribble,
    },
    Check {
        name: "ends-in-silence",
        demands: "A call whose attempts all get no answer ends by itself.",
        source: "Retry, Timeout, and Backoff: a total timeout bounds all attempts and delays",
        judge: ends,
    },
    Check {
        name: "closes-what-it-gives-up",
        demands: "The connection of an attempt that was given up is closed before the next attempt.",
        source: "Retry, Timeout, and Backoff: timeout is no proof of cancellation",
        judge: closes,
    },
    Check {
        name: "stops-when-told",
        demands: "Told to end (SIGTERM) while an attempt hangs, it ends and does not try again.",
        source: "Retry, Timeout, and Backoff: caller cancellation produces no retry",
        judge: stops,
    },
];

fn silence(observed: &Observations) -> Verdict {
    let Some(seen) = observed.one("hang-always") else { return silent(observed, "hang-always") };
    match plan::silence(observed) {
        Some(length) => Verdict::Passed(format!("after {}", brief(length))),
        None if seen.exit == Exit::CutOff => {
            let waited = seen.ended.since(seen.arrivals[0].at);
            Verdict::Failed(format!("it was still waiting after {}", brief(waited)))
        }
        None => Verdict::Undecided("how long it waited was not seen".to_owned()),
    }
}

fn dribble(observed: &Observations) -> Verdict {
    let (Some(seen), Some(silence)) = (observed.one("dribble"), plan::silence(observed)) else {
        return silent(observed, "dribble");
    };
    let first = &seen.arrivals[0];
    let waited = first.end.at().unwrap_or(seen.ended).since(first.at);
    let told = format!("{} of dribble, {} of silence", brief(waited), brief(silence));
    match first.end {
        _ if waited <= silence * 3 / 2 + observed.lateness * 3 => Verdict::Passed(told),
        End::ClientGone { .. } if seen.exit != Exit::CutOff => Verdict::Failed(told),
        End::Answered { .. } | End::ClientGone { .. } | End::Pending => Verdict::Failed(told),
        End::Broken { .. } | End::Unreadable { .. } => Verdict::Undecided("the connection broke".to_owned()),
    }
}

fn ends(observed: &Observations) -> Verdict {
    let Some(seen) = observed.one("hang-always") else { return silent(observed, "hang-always") };
    let took = seen.ended.since(seen.arrivals[0].at);
    let told = format!("{} after {} and {} attempts", ended(seen.exit), brief(took), seen.arrivals.len());
    match seen.exit {
        Exit::CutOff if plan::silence(observed).is_some() => Verdict::Undecided(told),
        exit => Verdict::of(exit != Exit::CutOff, told),
    }
}

fn closes(observed: &Observations) -> Verdict {
    let Some(seen) = observed.one("hang-always") else { return silent(observed, "hang-always") };
    let pairs = seen.arrivals.windows(2);
    if pairs.len() == 0 {
        let why = "one attempt was made, and the end of a process closes everything".to_owned();
        return Verdict::Undecided(why);
    }
    let slack = SEEN + observed.lateness * 3;
    let open = seen.arrivals.windows(2).filter(|pair| match pair[0].end {
        End::ClientGone { at } => at > pair[1].at.after(slack),
        _ => true,
    });
    let open = open.count();
    let all = seen.arrivals.len() - 1;
    Verdict::of(
        open == 0,
        format!("{} of {all} given up and followed by another were closed by then", all - open),
    )
}

fn stops(observed: &Observations) -> Verdict {
    let Some(seen) = observed.one("terminated") else { return silent(observed, "terminated") };
    let Some(told) = seen.told else { return silent(observed, "terminated") };
    let later = seen.arrivals.iter().filter(|arrival| arrival.at > told.after(SEEN)).count();
    match seen.exit {
        _ if later > 0 => Verdict::Failed(format!("{later} requests came after it was told")),
        Exit::CutOff => Verdict::Failed("it went on when it was told to end".to_owned()),
        exit => {
            Verdict::Passed(format!("{} {} after it was told", ended(exit), brief(seen.ended.since(told))))
        }
    }
}

/// How long it takes until the other side of a closed connection is seen.
const SEEN: Duration = Duration::from_millis(50);
