//! `/v1/dead`: what was given up.

use std::sync::Arc;

use axum::{Json, extract::State, response::IntoResponse as _};
use relent::Clock as _;
use relent_deliver::RedriveError;
use relent_ledger::{Discard, MessageId, Settled, State as Stands, Stretch};
use tracing::info;

use super::{
    Answer,
    extract::{Id, Parameters},
    message, no_such_message, now_is, settled,
};
use crate::{
    server::{
        app::App,
        problem::{Kind, Problem},
    },
    wire::MessageView,
};

/// `GET /v1/dead`.
pub(super) async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Answer {
    message::page(&app, parameters.dead_page()?).await
}

/// `GET /v1/dead/{id}`.
pub(super) async fn show(State(app): State<Arc<App>>, Id(id): Id, parameters: Parameters) -> Answer {
    let message = app.ledger.message(id, parameters.stretch()?).await.map_err(|error| app.failed(error))?;
    let message = message.ok_or_else(|| no_such_message(id))?;
    match message.summary.state {
        Stands::Dead => Ok(Json(MessageView::from(message)).into_response()),
        state => {
            let detail = format!("message {id} is {}, not dead; it is at /v1/messages/{id}", state.name());
            Err(Problem::new(Kind::NotFound, detail).with_id(id))
        }
    }
}

/// `POST /v1/dead/{id}/redrive`: sends it again, in a new cycle.
pub(super) async fn redrive(State(app): State<Arc<App>>, Id(id): Id, parameters: Parameters) -> Answer {
    let seen_cycle = parameters.seen_cycle()?;
    if app.draining.has_begun() {
        return Err(Problem::draining());
    }
    let ledger = app.ledger.as_ref();
    match relent_deliver::redrive(ledger, &app.policies, id, seen_cycle, app.clock.now()).await {
        Ok(Settled::Done) => {
            app.driver.wake();
            info!(target: "relent::message", %id, "dead letter redriven");
            let message = ledger.message(id, Stretch::NONE).await.map_err(|error| app.failed(error))?;
            Ok(now_is(id, Stands::Waiting, message.map(|message| message.summary.cycle)))
        }
        Ok(other) => still_dead(id, other, Stands::Waiting),
        Err(RedriveError::Ledger(error)) => Err(app.failed(error)),
        Err(RedriveError::Policy(unknown)) => {
            let detail =
                format!("{unknown}; put the message's policy back into the settings, then redrive it");
            Err(Problem::invalid("policy", detail).with_id(id))
        }
        Err(other) => Err(Problem::new(Kind::Internal, other.to_string()).with_id(id)),
    }
}

/// `DELETE /v1/dead/{id}`: takes it off the list.
pub(super) async fn discard(State(app): State<Arc<App>>, Id(id): Id, parameters: Parameters) -> Answer {
    let discard = Discard { at: app.clock.now(), seen_cycle: parameters.seen_cycle()? };
    let what = app.ledger.discard(id, discard).await.map_err(|error| app.failed(error))?;
    let answer = still_dead(id, what, Stands::Discarded)?;
    info!(target: "relent::message", %id, "dead letter discarded");
    Ok(answer)
}

/// As [`settled`], and a letter that is dead and was refused all the same is in another cycle than the caller saw.
fn still_dead(id: MessageId, what: Settled, done: Stands) -> Answer {
    match what {
        Settled::Refused(Stands::Dead) => {
            let detail = "the message was sent again since you saw it, and is dead anew; look at it first";
            Err(Problem::new(Kind::WrongState, detail).with_id(id))
        }
        what => settled(id, what, done),
    }
}
