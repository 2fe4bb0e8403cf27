//! `relent cancel`, and the walk over several ids that it shares with `relent dead redrive` and `discard`.

use http::Method;
use serde::Serialize;

use super::show;
use crate::{
    args::{CancelArgs, ClientArgs},
    client::{Client, Failure},
    exit::Exit,
    output::{plain, print, print_json},
    wire::{ProblemView, StateView, WRONG_STATE},
};

/// Carries it out.
pub(crate) async fn run(args: CancelArgs) -> anyhow::Result<Exit> {
    each(&args.ids.ids, &args.ids.client, |id| (Method::DELETE, format!("/v1/messages/{id}"))).await
}

/// What became of one id.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Outcome {
    /// It was done.
    Done(StateView),
    /// The server said no.
    Refused {
        /// Of which message.
        id: String,
        /// Why.
        error: ProblemView,
    },
    /// It was on a list that was made before; somebody else was faster.
    Left {
        /// Which message.
        id: String,
        /// How it stands now.
        left: ProblemView,
    },
}

/// One message and what is asked of the server.
pub(super) struct Wish {
    pub(super) id: String,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) in_a_wrong_state: WrongState,
}

/// What it means that a message's state does not allow it.
#[derive(Clone, Copy)]
pub(super) enum WrongState {
    /// It was named, and what was asked for cannot be done.
    Refused,
    /// It was found on a list, and has left it meanwhile.
    Left,
}

/// Asks the server for each of the ids in turn.
pub(super) async fn each(
    ids: &[String],
    client: &ClientArgs,
    request: impl Fn(&str) -> (Method, String),
) -> anyhow::Result<Exit> {
    let wish = |text: &String| {
        let id = show::id(text)?.to_string();
        let (method, path) = request(&id);
        Ok(Wish { id, method, path, in_a_wrong_state: WrongState::Refused })
    };
    let wishes = ids.iter().map(wish).collect::<anyhow::Result<Vec<_>>>()?;
    all(&Client::new(client)?, client.json, wishes, |_| {}).await
}

/// Asks the server for each in turn and reports each, then all of them to `sums`. A refusal does not keep the others
/// from being asked, but the command then fails; a server that is gone or a wrong token ends it, what is done by then
/// reported.
pub(super) async fn all(
    client: &Client,
    json: bool,
    wishes: Vec<Wish>,
    sums: impl Fn(&[Outcome]),
) -> anyhow::Result<Exit> {
    let mut outcomes = Vec::with_capacity(wishes.len());
    let mut gone = None;
    for wish in wishes {
        match one(client, wish).await {
            Ok(outcome) => {
                if !json {
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
    if json {
        print_json(&outcomes)?;
    }
    sums(&outcomes);
    match gone {
        Some(error) => Err(error),
        None if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Refused { .. })) => Ok(Exit::Failed),
        None => Ok(Exit::Done),
    }
}

async fn one(client: &Client, wish: Wish) -> anyhow::Result<Outcome> {
    let Wish { id, method, path, in_a_wrong_state } = wish;
    match client.ask(method, &path).await {
        Ok(answer) => Ok(Outcome::Done(answer.read()?)),
        Err(Failure::Refused { problem }) => Ok(match in_a_wrong_state {
            WrongState::Left if problem.kind == WRONG_STATE => Outcome::Left { id, left: *problem },
            _ => Outcome::Refused { id, error: *problem },
        }),
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
            Self::Left { id, left } => format!("{id}  left as it is: {}\n", plain(&left.detail)),
            Self::Refused { id, error } => format!("{id}  refused: {}\n", plain(&error.detail)),
        }
    }
}
