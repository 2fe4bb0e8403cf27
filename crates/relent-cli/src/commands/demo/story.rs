//! What the demo says, in a newcomer's words. Every number in it comes from [`Counts`].

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use relent_core::Brief;

use super::counts::Counts;
use crate::{
    commands::words,
    output::{Table, count, length, numbers, thousands, words as text},
    wire::Seconds,
};

/// Who plays.
pub(super) fn opening(orders: u32, receiver: &str, folder: &str) -> String {
    format!(
        "A shop hands {orders} to relent. The receiver has a bad day: it is overloaded, hangs up, answers too\n\
         late, and refuses some orders until somebody mends it.\n\n\
         receiver  {receiver}\n\
         server    `relent serve`, its store in {folder}\n\
         policy    at most 6 attempts of 3s within 1m; waits drawn under 500ms, doubling to 5s;\n          \
         a receiver that asks for more than 10s is not waited for\n\n",
        orders = count(orders.into(), "order"),
    )
}

/// After the sending.
pub(super) fn accepted(orders: usize, took: Duration) -> String {
    format!(
        "1. Accepted: {} in {}. Each was on disk before its id came back.\n\n",
        count(orders as u64, "order"),
        Brief(took)
    )
}

/// After every order ended once.
pub(super) fn delivered(counts: &Counts, took: Duration) -> String {
    let mut table = Table::new([text(""), numbers(""), text("")]).uncut();
    let mut row = |name: &str, number: u64, note: String| {
        table.row([name.to_owned(), thousands(number), note]);
    };
    row("first try", counts.first_try, "delivered at once".to_owned());
    let recovered =
        format!("failed at first, and were delivered within {}", count(counts.most_attempts, "attempt"));
    row("recovered", counts.recovered, if counts.recovered > 0 { recovered } else { String::new() });
    row("dead", counts.dead(), "given up with a reason, and kept".to_owned());
    let mut out = format!("2. Delivered, as far as it went, {} later:\n\n{}\n", Brief(took), table.render(3));
    out += &listed("what went wrong on the way", &counts.failed, outcome);
    out += &listed("why orders ended dead", &counts.dead, words::reason);
    let _ = writeln!(
        out,
        "   {} for {}: {:.3} each (the amplification).",
        count(counts.attempts, "attempt"),
        count(counts.orders, "order"),
        counts.amplification()
    );
    out + &recognised(counts.recognised)
}

/// After the dead letters were sent again.
pub(super) fn redriven(sent: usize, left: usize) -> String {
    let dead = match left {
        0 => "the list of dead letters is empty.".to_owned(),
        left => format!("{} on the list of dead letters.", count(left as u64, "order")),
    };
    format!("3. The receiver is mended, and {} sent again: {dead}\n\n", count(sent as u64, "dead letter"))
}

/// The table at the end.
pub(super) fn ending(counts: &Counts, sound: bool, took: Seconds) -> String {
    let mut table = Table::new([text("WHAT BECAME OF THEM"), numbers("ORDERS")]);
    let mut row = |name: &str, number: u64| table.row([name.to_owned(), thousands(number)]);
    row("delivered at the first try", counts.first_try);
    row("delivered after retries", counts.recovered);
    row("delivered after a person sent them again", counts.redriven);
    row("dead", counts.dead());
    row("lost", counts.orders - counts.delivered() - counts.dead());
    row("all", counts.orders);
    let store = if sound {
        "the store keeps all its rules"
    } else {
        "the store breaks its own rules: a fault of relent"
    };
    format!(
        "{}\n{}, {:.3} each; {store}; {} in all.\n",
        table.render(0),
        count(counts.attempts, "attempt"),
        counts.amplification(),
        length(took)
    )
}

fn listed(title: &str, counts: &BTreeMap<String, u64>, name: fn(&str) -> String) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let mut table = Table::new([numbers(""), text("")]).uncut();
    for (what, number) in counts {
        table.row([thousands(*number), name(what)]);
    }
    format!("   {title}\n{}\n", table.render(3))
}

fn outcome(name: &str) -> String {
    let words = match name {
        "429" => "the receiver said: not so often",
        "422" => "the receiver did not understand the order",
        "503" => "the receiver was overloaded or closed",
        "reset" => "the receiver hung up without an answer",
        "timeout" | "header_timeout" | "body_timeout" => "no answer within the attempt's time-out",
        _ => return words::outcome(name),
    };
    format!("{name} ({words})")
}

fn recognised(number: u64) -> String {
    match number {
        0 => "\n".to_owned(),
        number => format!(
            "   {} of an order that was done already, its answer too late: the receiver knew the key, and did not\n   \
             do it twice.\n\n",
            count(number, "repeat")
        ),
    }
}
