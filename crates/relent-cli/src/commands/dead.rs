//! `relent dead`: the dead letters, as a list to be worked off.

mod common;

use http::Method;

use super::{cancel::each, ls::list, show::show};
use crate::{
    args::{DeadArgs, DeadCommand, LettersArgs},
    exit::Exit,
};
use common::Deed;

/// Carries it out.
pub(crate) async fn run(args: DeadArgs) -> anyhow::Result<Exit> {
    match args.command {
        DeadCommand::Ls { common, page, client } => {
            list(&client, &common::path(&common), &page, common::sums).await
        }
        DeadCommand::Show(args) => show(args, "/v1/dead").await,
        DeadCommand::Redrive(args) => letters(args, &REDRIVE).await,
        DeadCommand::Discard(args) => letters(args, &DISCARD).await,
    }
}

/// Those with these ids, or those that have something in common.
async fn letters(args: LettersArgs, deed: &Deed) -> anyhow::Result<Exit> {
    match args.ids.is_empty() {
        true => common::run(&args, deed).await,
        false => each(&args.ids, &args.client, |id| (deed.method.clone(), (deed.path)(id))).await,
    }
}

const REDRIVE: Deed = Deed {
    method: Method::POST,
    path: |id| format!("/v1/dead/{id}/redrive"),
    wish: "send again",
    question: "send them again?",
    done: "sent again",
};

const DISCARD: Deed = Deed {
    method: Method::DELETE,
    path: |id| format!("/v1/dead/{id}"),
    wish: "discard",
    question: "discard them?",
    done: "discarded",
};
