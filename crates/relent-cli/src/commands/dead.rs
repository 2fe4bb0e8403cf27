//! `relent dead`: the dead letters, as a list to be worked off.

use http::Method;

use super::{cancel::each, ls::list, show::show};
use crate::{
    args::{DeadArgs, DeadCommand},
    exit::Exit,
};

/// Carries it out.
pub(crate) async fn run(args: DeadArgs) -> anyhow::Result<Exit> {
    match args.command {
        DeadCommand::Ls { page, client } => list(&client, "/v1/dead?", &page).await,
        DeadCommand::Show(args) => show(args, "/v1/dead").await,
        DeadCommand::Redrive(ids) => each(ids, |id| (Method::POST, format!("/v1/dead/{id}/redrive"))).await,
        DeadCommand::Discard(ids) => each(ids, |id| (Method::DELETE, format!("/v1/dead/{id}"))).await,
    }
}
