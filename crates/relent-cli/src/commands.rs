//! One file for each command.

mod call;
mod cancel;
mod check;
mod dead;
mod demo;
mod explain;
mod fsck;
mod ls;
mod probe;
mod send;
mod serve;
mod show;
mod sim;
mod status;
mod words;

use crate::{args::Command, exit::Exit};

/// Carries a command out.
pub(crate) async fn run(command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::Serve(args) => serve::run(*args).await,
        Command::Send(args) => send::run(args).await,
        Command::Ls(args) => ls::run(args).await,
        Command::Show(args) => show::run(args).await,
        Command::Status(args) => status::run(args).await,
        Command::Cancel(args) => cancel::run(args).await,
        Command::Dead(args) => dead::run(args).await,
        Command::Call(args) => call::run(*args).await,
        Command::Explain(args) => explain::run(args).await,
        Command::Check(args) => check::run(*args).await,
        Command::Sim(args) => sim::run(args).await,
        Command::Probe(args) => probe::run(*args).await,
        Command::Fsck(args) => fsck::run(args).await,
        Command::Demo(args) => demo::run(args).await,
    }
}
