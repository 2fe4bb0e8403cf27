//! The bars and the aims themselves, in the order of the tables.
//!
//! An aim was set by what the same machine did by hand without a clock. The windows of time and the slow calls that
//! relent's breaker knows need a reading when a call begins and one when each attempt ends: an aim in nanoseconds
//! allows 28 for each, and an aim beside a peer as much of what the peer took then.

use super::{
    Bar,
    Figure::{
        self, Allocations, Faster, HalfMore, Instructions, InstructionsBeyond, Millions, Ns, Scale, Spread,
        SpreadInstructions, Times, TimesInstructions,
    },
    Kind,
    Limit::{self, AtLeast, AtMost, Below},
};

/// All of them.
pub(crate) fn all() -> Vec<Bar> {
    [ready(), pending(), failing(), refused(), alone(), shared(), windows()].concat()
}

fn bar(what: &'static str, figure: Figure, limit: Limit) -> Bar {
    Bar { what, kind: Kind::Bar, limit, figure }
}

fn aim(what: &'static str, figure: Figure, limit: Limit) -> Bar {
    Bar { what, kind: Kind::Aim, limit, figure }
}

fn ready() -> Vec<Bar> {
    vec![
        bar("ready: allocations", Allocations("ready/relent"), AtMost(0.0)),
        bar("ready: relent ÷ by hand", Times("ready/relent", "ready/by hand"), AtMost(1.8)),
        bar(
            "ready: relent ÷ by hand, instructions",
            TimesInstructions("ready/relent", "ready/by hand"),
            AtMost(1.8),
        ),
        bar(
            "ready: by hand, instructions beyond the operation's",
            InstructionsBeyond("ready/by hand", "ready/the operation alone"),
            AtMost(290.0),
        ),
        bar(
            "ready: tower's stack ÷ relent",
            Times("ready/tower, stack of four", "ready/relent"),
            AtLeast(1.4),
        ),
        bar(
            "ready: tower-resilience's stack ÷ relent",
            Times("ready/tower-resilience, stack of four", "ready/relent"),
            AtLeast(8.0),
        ),
        aim("ready: relent, ns", Ns("ready/relent"), AtMost(101.0)),
        aim("ready: relent, instructions", Instructions("ready/relent"), AtMost(376.0)),
        aim(
            "ready: relent ÷ what is put together from parts",
            Times("ready/relent", "ready/semaphore, failsafe, backon, timeout"),
            AtMost(0.71),
        ),
    ]
}

fn pending() -> Vec<Bar> {
    vec![
        bar("pending: allocations", Allocations("pending/relent"), AtMost(0.0)),
        bar(
            "pending: relent ÷ one bare tokio timeout",
            Times("pending/relent", "pending/tokio timeout, no more"),
            AtMost(1.6),
        ),
        bar(
            "pending: relent ÷ tower's stack",
            Times("pending/relent", "pending/tower, stack of four"),
            Below(1.0),
        ),
        aim("pending: relent ÷ by hand", Times("pending/relent", "pending/by hand"), AtMost(1.1)),
        aim(
            "pending: relent ÷ two bare tokio timeouts",
            Times("pending/relent", "pending/two tokio timeouts, no more"),
            AtMost(0.72),
        ),
        aim(
            "pending: relent ÷ tower-resilience's stack",
            Times("pending/relent", "pending/tower-resilience, stack of four"),
            AtMost(0.25),
        ),
    ]
}

fn failing() -> Vec<Bar> {
    vec![
        bar("failing: allocations", Allocations("failing/relent"), AtMost(0.0)),
        bar(
            "failing: a wait of zero and the attempt after it, ns",
            HalfMore("failing/relent", "ready/relent"),
            Below(1_000.0),
        ),
        aim("failing: relent, ns", Ns("failing/relent"), AtMost(207.0)),
        aim("failing: relent ÷ by hand", Times("failing/relent", "failing/by hand"), AtMost(1.4)),
        aim(
            "failing: relent ÷ tower's stack",
            Times("failing/relent", "failing/tower, stack of four"),
            AtMost(0.56),
        ),
        aim(
            "failing: relent ÷ what is put together from parts",
            Times("failing/relent", "failing/semaphore, failsafe, backon, timeout"),
            AtMost(0.33),
        ),
    ]
}

fn refused() -> Vec<Bar> {
    vec![
        bar("open: allocations", Allocations("open/relent"), AtMost(0.0)),
        bar("open: relent ÷ by hand", Times("open/relent", "open/by hand"), AtMost(2.0)),
        aim("open: relent, ns", Ns("open/relent"), AtMost(40.0)),
        aim("open: relent ÷ recloser", Times("open/relent", "open/recloser"), AtMost(1.0)),
        aim(
            "open: relent ÷ tower-resilience's breaker",
            Times("open/relent", "open/tower-resilience breaker, no more"),
            AtMost(0.2),
        ),
        aim("full: relent, ns", Ns("full/relent"), AtMost(53.0)),
        aim(
            "full: relent ÷ tower's load shed and limit",
            Times("full/relent", "full/tower load shed and limit, no more"),
            AtMost(1.36),
        ),
        aim(
            "used up: relent's limit ÷ governor",
            Times("used-up/relent's limit, no more", "used-up/governor, no more"),
            AtMost(1.0),
        ),
        aim(
            "broke: relent's budget, ns",
            Ns("broke/relent's budget, no more, without the attempt"),
            AtMost(20.0),
        ),
        aim(
            "broke: relent's budget ÷ TpsBudget",
            Times(
                "broke/relent's budget, no more, without the attempt",
                "broke/tower TpsBudget, no more, without the attempt",
            ),
            AtMost(0.22),
        ),
    ]
}

fn alone() -> Vec<Bar> {
    vec![
        aim("retries alone, ns", Ns("retry/relent"), AtMost(61.0)),
        aim("time-out alone, ns", Ns("timeout/relent"), AtMost(64.0)),
        aim(
            "breaker alone: relent ÷ recloser",
            Times("breaker/relent, the last 100 calls", "breaker/recloser, the last 100 calls"),
            AtMost(0.6),
        ),
        aim("limit alone: relent ÷ tokio", Times("limit/relent", "limit/tokio try_acquire"), AtMost(1.0)),
        aim(
            "rate alone: relent ÷ governor",
            Times("rate/relent, reading the clock", "rate/governor"),
            AtMost(1.0),
        ),
        aim(
            "budget alone: relent ÷ TpsBudget",
            Times("budget/relent, told the time", "budget/tower TpsBudget, deposit"),
            AtMost(0.2),
        ),
    ]
}

fn shared() -> Vec<Bar> {
    const PEERS: &[&str] =
        &["shared/breaker: recloser, the last 100 calls", "shared/breaker: failsafe, default"];
    const STRIPED: &str = "shared/breaker: relent, the last 10 s, told the time";
    vec![
        bar(
            "2 threads: breaker, a window of time with its clock ÷ the faster of recloser and failsafe",
            Faster("shared/breaker: relent, the last 10 s, reading the clock once", PEERS),
            AtLeast(1.5),
        ),
        bar(
            "2 threads: breaker, a window of calls ÷ the faster of recloser and failsafe",
            Faster("shared/breaker: relent, the last 100 calls", PEERS),
            AtLeast(1.5),
        ),
        bar(
            "2 threads: breaker, failures in a row ÷ failsafe",
            Faster(
                "shared/breaker: relent, failures in a row",
                &["shared/breaker: failsafe, failures in a row"],
            ),
            AtLeast(1.5),
        ),
        bar(
            "2 threads: a whole call ÷ tower's stack",
            Faster("shared/whole call: relent", &["shared/whole call: tower, stack of four"]),
            AtLeast(1.0),
        ),
        aim("2 threads: breaker, a window of time ÷ one thread", Scale(STRIPED), AtLeast(1.9)),
        aim("2 threads: breaker, a window of time, M/s", Millions(STRIPED), AtLeast(60.0)),
        aim("2 threads: budget, M/s", Millions("shared/budget: relent, told the time"), AtLeast(60.0)),
        aim(
            "2 threads: budget ÷ TpsBudget",
            Faster("shared/budget: relent, told the time", &["shared/budget: tower TpsBudget, deposit"]),
            AtLeast(14.0),
        ),
        aim(
            "2 threads: rate ÷ governor",
            Faster("shared/rate: relent, reading the clock", &["shared/rate: governor"]),
            AtLeast(1.0),
        ),
    ]
}

fn windows() -> Vec<Bar> {
    vec![
        bar("10 to 1,000,000 calls in the window: dearest ÷ cheapest", Spread("last-calls"), AtMost(1.25)),
        bar("the same, a window of time", Spread("last-seconds"), AtMost(1.25)),
        bar("10 to 1,000,000 calls, instructions", SpreadInstructions("last-calls"), AtMost(1.02)),
        bar("the same, a window of time", SpreadInstructions("last-seconds"), AtMost(1.02)),
    ]
}
