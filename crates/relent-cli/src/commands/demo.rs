//! `relent demo`: relent at work on a bad day, in under a minute and with nothing to set up.
//!
//! Only the receiver is made for the show. The server is this binary's own `serve` as a child, the orders go
//! through the API, and what is said of them is counted from the API's answers; the receiver's log
//! (`--receiver-log`) tells the same story from the other side.

mod counts;
mod orders;
mod progress;
mod receiver;
mod server;
mod story;
mod temper;

use std::path::Path;

use anyhow::{Context as _, bail};
use relent::{Clock as _, TokioClock};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use self::{
    counts::Counts,
    progress::{Outlet, Progress},
    receiver::Receiver,
    server::Server,
};
use crate::{args::DemoArgs, client::Client, exit::Exit, output::print_json, wire::Seconds};

/// Carries it out. However it ends, the server is ended and its folder is gone, unless it was to be kept.
pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<Exit> {
    let folder = tempfile::Builder::new()
        .prefix("relent-demo-")
        .disable_cleanup(args.keep)
        .tempdir()
        .context("a temporary folder cannot be made")?;
    // Cancel safe: a story that is dropped ends its server, its connections and its tasks.
    let ended = tokio::select! {
        ended = play(&args, folder.path()) => ended,
        interrupted = interrupted() => interrupted.and_then(|()| bail!("interrupted; the server is ended")),
    };
    match args.keep {
        true => eprintln!("the folder is kept: relent fsck --data {}", folder.path().join("data").display()),
        false => folder.close().context("the temporary folder cannot be removed")?,
    }
    ended
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    seed: u64,
    /// When every order had ended once.
    before: Counts,
    amplification_before: f64,
    /// How many dead letters were sent again.
    sent_again: usize,
    /// When those had ended too.
    after: Counts,
    amplification: f64,
    /// What is left on the list of dead letters.
    dead_left: usize,
    /// Whether the store keeps its own rules.
    sound: bool,
    took_s: Seconds,
}

async fn play(args: &DemoArgs, folder: &Path) -> anyhow::Result<Exit> {
    let outlet = if args.json { Outlet::Stderr } else { Outlet::Stdout };
    let began = TokioClock.now();
    let receiver = Receiver::open(args.seed, args.receiver_log.as_deref())
        .await
        .context("the receiver cannot open its port or its log")?;
    let mut server = Server::start(folder)?;
    let client = server.ready().await?;
    outlet.tell(&story::opening(args.orders, &receiver.url(), &folder.display().to_string()))?;

    let stage = Stage { client, receiver, outlet, progress: Progress::new() };
    let ids = stage.send(args.orders).await?;
    let before = stage.first_round(&ids).await?;
    let (sent_again, dead_left) = stage.second_round().await?;
    let after = Counts::of(&orders::read(&stage.client, &ids).await?);
    let sound = audit(&server).await?;
    drop(server);
    stage.receiver.close().await.context("the receiver's log is not whole")?;

    let report = Report {
        seed: args.seed,
        amplification_before: before.amplification(),
        amplification: after.amplification(),
        before,
        sent_again,
        after,
        dead_left,
        sound,
        took_s: Seconds(TokioClock.now().since(began)),
    };
    outlet.tell(&story::ending(&report.after, report.sound, report.took_s))?;
    if args.json {
        print_json(&report)?;
    }
    let whole = report.after.delivered() == report.after.orders && dead_left == 0 && sound;
    Ok(if whole { Exit::Done } else { Exit::Failed })
}

/// What the acts play on.
struct Stage {
    client: Client,
    receiver: Receiver,
    outlet: Outlet,
    progress: Progress,
}

impl Stage {
    async fn send(&self, orders: u32) -> anyhow::Result<Vec<String>> {
        let began = TokioClock.now();
        let ids = orders::send(&self.client, &self.receiver.url(), orders).await?;
        self.outlet.tell(&story::accepted(ids.len(), TokioClock.now().since(began)))?;
        Ok(ids)
    }

    /// Until every order ended: delivered or dead.
    async fn first_round(&self, ids: &[String]) -> anyhow::Result<Counts> {
        let began = TokioClock.now();
        orders::settled(&self.client, &self.progress).await?;
        let took = TokioClock.now().since(began);
        let counts = Counts::of(&orders::read(&self.client, ids).await?);
        self.outlet.tell(&story::delivered(&counts, took))?;
        Ok(counts)
    }

    /// Mends the receiver and sends the dead letters again: how many were sent, and how many are dead still.
    async fn second_round(&self) -> anyhow::Result<(usize, usize)> {
        self.receiver.mend();
        let dead = orders::dead(&self.client).await?;
        let sent = orders::redrive(&self.client, dead).await?.len();
        orders::settled(&self.client, &self.progress).await?;
        let left = orders::dead(&self.client).await?.len();
        self.outlet.tell(&story::redriven(sent, left))?;
        Ok((sent, left))
    }
}

/// Whether the store keeps its own rules, read beside the running server.
async fn audit(server: &Server) -> anyhow::Result<bool> {
    let data = server.data.clone();
    let audit = tokio::task::spawn_blocking(move || relent_ledger_sqlite::audit_file(&data)).await??;
    Ok(audit.is_sound())
}

/// Returns when somebody wants the demo to end.
async fn interrupted() -> anyhow::Result<()> {
    let listen = |kind| signal(kind).context("signals cannot be heard");
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut hangup = listen(SignalKind::hangup())?;
    // Cancel safe: a signal that is not taken here is not needed any more.
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}
