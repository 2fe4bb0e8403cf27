//! `relent probe`: what a client really does when its dependency fails. The suite and the card are the library's.

mod serve;
mod view;

use anyhow::Context as _;
use relent_probe::{Card, Client, Suite};

use crate::{
    args::{ProbeArgs, ProbeCommand},
    exit::{Exit, Misuse},
    output::{PageFile, plain, plain_block, print, print_json},
};

/// Carries it out: 1 where a check failed.
///
/// # Cancellation safety
///
/// Interrupted, it kills the clients that it started.
pub(crate) async fn run(args: ProbeArgs) -> anyhow::Result<Exit> {
    if let Some(ProbeCommand::Serve(serve)) = args.serve {
        return serve::run(serve).await;
    }
    let client = Client::new(args.command).map_err(|invalid| Misuse::new(invalid.to_string()))?;
    let suite = Suite {
        copies: args.copies,
        calls: args.calls,
        patience: args.patience,
        time: args.time,
        parallel: args.parallel,
    };
    let file = args.html.as_deref().map(PageFile::open).transpose()?;
    eprintln!("relent: probing `{}`, for at most {}", plain(&client.line()), relent_core::Brief(suite.time));
    // Both arms are cancel safe: the suite kills its clients when it is dropped, and a signal is only waited for.
    let observed = tokio::select! {
        observed = suite.run(&client) => observed.map_err(|invalid| Misuse::new(invalid.to_string()))?,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted.context("waiting for Ctrl-C")?;
            anyhow::bail!("interrupted; the clients that were at work are killed");
        }
    };
    let card = Card::new(&observed);
    if let Some(file) = &file {
        file.write(&card.html())?;
    }
    match args.json {
        true => print_json(&view::CardView::new(&card))?,
        false => print(&plain_block(&card.text(), 0))?,
    }
    Ok(if card.grade().failed == 0 { Exit::Done } else { Exit::Failed })
}
