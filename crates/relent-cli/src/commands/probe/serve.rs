//! `relent probe serve`: the scripted dependency for clients in any language.

use std::collections::BTreeSet;

use anyhow::Context as _;
use relent_core::Timestamp;
use relent_probe::{Arrival, Dependency, End, Limits, RequestKey, Script};

use super::view::ArrivalView;
use crate::{
    args::ProbeServeArgs,
    exit::{Exit, Misuse},
    output::{plain, print},
};

/// Serves until it is interrupted. One line for each request, when it has ended.
pub(super) async fn run(args: ProbeServeArgs) -> anyhow::Result<Exit> {
    let script = script(&args)?;
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(Misuse::new(format!(
            "--listen {}: that address is not loopback, and whoever reaches it would be served; say --allow-remote if \
             that is meant",
            args.listen
        )));
    }
    let dependency = Dependency::listen(args.listen, script, Limits::default()).with_context(|| {
        format!("cannot listen on {}; free it, or choose another with --listen", args.listen)
    })?;
    eprintln!("relent: serving {} (Ctrl-C ends it)", dependency.url("/"));
    let began = relent::Clock::now(&dependency.clock());
    // Both arms are cancel safe: what was not printed is not printed, and a signal is only waited for.
    tokio::select! {
        told = tell(&dependency, began, &args) => told?,
        interrupted = tokio::signal::ctrl_c() => interrupted.context("waiting for Ctrl-C")?,
    }
    eprintln!("relent: {} requests arrived", dependency.count());
    Ok(Exit::Done)
}

async fn tell(dependency: &Dependency, began: Timestamp, args: &ProbeServeArgs) -> anyhow::Result<()> {
    let mut told = Told::default();
    let mut changes = 0;
    loop {
        changes = dependency.changed(changes).await;
        for arrival in dependency.arrivals_after(told.all_to) {
            if arrival.end == End::Pending || !told.first_time(arrival.number) {
                continue;
            }
            match args.json {
                true => print(&format!("{}\n", serde_json::to_string(&ArrivalView::new(&arrival, began))?))?,
                false => print(&format!("{}\n", line(&arrival, began)))?,
            }
        }
    }
}

/// Which arrivals were told: all up to one, and some after it, since a later one may end sooner.
#[derive(Default)]
struct Told {
    all_to: u64,
    after: BTreeSet<u64>,
}

impl Told {
    fn first_time(&mut self, number: u64) -> bool {
        let first = number > self.all_to && self.after.insert(number);
        while self.after.remove(&(self.all_to + 1)) {
            self.all_to += 1;
        }
        first
    }
}

fn line(arrival: &Arrival, began: Timestamp) -> String {
    let method = arrival.method.as_ref().map_or("unread", http::Method::as_str);
    let took = arrival.end.at().map(|at| at.since(arrival.at)).unwrap_or_default();
    let end = match arrival.end {
        End::Answered { status, .. } => status.as_str().to_owned(),
        other => super::view::end_name(other).replace('_', " "),
    };
    plain(&format!(
        "{:>9.3} s  #{} on connection {}: {method} {}, {} bytes: {end} after {}",
        arrival.at.since(began).as_secs_f64(),
        arrival.number,
        arrival.connection,
        arrival.path,
        arrival.body.length,
        relent_core::Brief(took)
    ))
}

fn script(args: &ProbeServeArgs) -> anyhow::Result<Script> {
    let wrong = |flag: &str, why: &dyn std::fmt::Display| Misuse::new(format!("{flag}: {why}"));
    let key = key(&args.by)?;
    let mut script =
        Script::parse(&args.script).map_err(|invalid| wrong("--script", &invalid.reason))?.by(key);
    for rule in &args.on {
        let (place, acts) = rule.split_once('=').ok_or_else(|| {
            Misuse::new(format!(
                "--on \"{rule}\": write a path, `=` and acts, for example \"POST /orders/* = 503, 201\""
            ))
        })?;
        let (method, path) = place.trim().split_once(' ').unwrap_or(("", place.trim()));
        script = script.on(method, path.trim(), acts).map_err(|invalid| wrong("--on", &invalid.reason))?;
    }
    Ok(script)
}

fn key(text: &str) -> anyhow::Result<RequestKey> {
    let header = |name: &str| http::HeaderName::from_bytes(name.as_bytes()).ok().map(RequestKey::Header);
    let key = match text {
        "all" => Some(RequestKey::All),
        "path" => Some(RequestKey::Path),
        "method-path" => Some(RequestKey::MethodAndPath),
        _ => text.strip_prefix("header:").and_then(header),
    };
    key.ok_or_else(|| Misuse::new(format!("--by \"{text}\": write all, path, method-path or header:NAME")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arrival_is_told_once_whatever_the_order_of_their_ends() {
        let mut told = Told::default();
        let first: Vec<bool> = [2, 2, 1, 3, 1, 5, 4].map(|number| told.first_time(number)).to_vec();
        assert_eq!(first, [true, false, true, true, false, true, true]);
        assert_eq!((told.all_to, told.after.len()), (5, 0));
    }
}
