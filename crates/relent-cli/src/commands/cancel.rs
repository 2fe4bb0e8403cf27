//! `relent cancel`, and the walk over several ids that it shares with `relent dead redrive` and `discard`.

use http::Method;
use serde::Serialize;

use super::show;
use crate::{
    args::{CancelArgs, IdsArgs},
    client::{Client, Failure},
    exit::Exit,
    output::{plain, print, print_json},
    wire::{ProblemView, StateView},
};

/// Carries it out.
pub(crate) async fn run(args: CancelArgs) -> anyhow::Result<Exit> {
    each(args.ids, |id| (Method::DELETE, format!("/v1/messages/{id}"))).await
}

/// What became of one id.
#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Done(StateView),
    Refused { id: String, error: ProblemView },
}

/// Asks the server for each id in turn and reports each. A refusal does not keep the others from being asked,
/// but the command then fails; a server that is gone or a wrong token ends it, what is done by then reported.
pub(super) async fn each(args: IdsArgs, request: impl Fn(&str) -> (Method, String)) -> anyhow::Result<Exit> {
    let ids = args.ids.iter().map(|text| show::id(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let client = Client::new(&args.client)?;
    let mut outcomes = Vec::with_capacity(ids.len());
    let mut gone = None;
    for id in ids {
        match one(&client, &id.to_string(), &request).await {
            Ok(outcome) => {
                if !args.client.json {
                    print(&outcome.line())?;
                }
                outcomes.push(outcome);
            }
            Err(error) => {
                gone = Some(error);
                break;
            }
        }
    }
    if args.client.json {
        print_json(&outcomes)?;
    }
    match gone {
        Some(error) => Err(error),
        None if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused { .. })) => Ok(Exit::Failed),
        None => Ok(Exit::Done),
    }
}

async fn one(
    client: &Client,
    id: &str,
    request: impl Fn(&str) -> (Method, String),
) -> anyhow::Result<Outcome> {
    let (method, path) = request(id);
    match client.ask(method, &path).await {
        Ok(answer) => Ok(Outcome::Done(answer.read()?)),
        Err(Failure::Refused { problem }) => Ok(Outcome::Refused { id: id.to_owned(), error: *problem }),
        Err(failure) => Err(failure.into()),
    }
}

impl Outcome {
    fn line(&self) -> String {
        match self {
            Self::Done(done) => match done.cycle {
                Some(cycle) => format!("{}  {}, cycle {cycle}\n", plain(&done.id), plain(&done.state)),
                None => format!("{}  {}\n", plain(&done.id), plain(&done.state)),
            },
            Self::Refused { id, error } => format!("{id}  refused: {}\n", plain(&error.detail)),
        }
    }
}
