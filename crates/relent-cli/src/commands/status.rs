//! `relent status`: counts and ages of everything.

use http::Method;

use super::words;
use crate::{
    args::StatusArgs,
    client::Client,
    exit::Exit,
    output::{Table, length, numbers, plain, print, thousands, words as text},
    wire::StatusView,
};

/// Carries it out.
pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<Exit> {
    let answer = Client::new(&args.client)?.ask(Method::GET, "/v1/status").await?;
    match args.client.json {
        true => print(&answer.line())?,
        false => print(&describe(&answer.read()?))?,
    }
    Ok(Exit::Done)
}

fn describe(status: &StatusView) -> String {
    let draining = if status.draining { ", draining" } else { "" };
    let up = length(status.uptime_s);
    let head =
        format!("relent {}, up {up}{draining}, store {}\n\n", plain(&status.version), plain(&status.store));
    head + &messages(status).render(0) + "\n" + &reasons(status) + &attempts(status)
}

fn messages(status: &StatusView) -> Table {
    let mut table = Table::new([text(""), numbers(""), text("")]);
    let mut row = |name: &str, number: u64, note: String| {
        table.row([name.to_owned(), thousands(number), note]);
    };
    let oldest = status.oldest_waiting_s.map(|age| format!("the oldest for {}", length(age)));
    row("accepted", status.accepted, String::new());
    row("  waiting", status.waiting, oldest.unwrap_or_default());
    row("  in flight", status.in_flight, String::new());
    row("  held", status.held, String::new());
    row("  delivered", status.delivered, String::new());
    row(
        "  dead",
        status.dead,
        if status.dead > 0 { "see `relent dead ls`".to_owned() } else { String::new() },
    );
    row("  discarded", status.discarded, String::new());
    row("  cancelled", status.cancelled, String::new());
    table
}

fn reasons(status: &StatusView) -> String {
    if status.dead_by_reason.is_empty() {
        return String::new();
    }
    let mut table = Table::new([text(""), numbers("")]).uncut();
    for (reason, number) in &status.dead_by_reason {
        table.row([words::reason(reason), thousands(*number)]);
    }
    format!("dead, by reason\n{}\n", table.render(2))
}

fn attempts(status: &StatusView) -> String {
    format!(
        "{} attempts, {:.3} for each accepted message\n",
        thousands(status.attempts),
        status.amplification
    )
}
