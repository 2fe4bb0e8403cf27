//! The paths of the API and what each answers.

mod dead;
mod extract;
mod health;
mod message;

use std::sync::Arc;

use axum::{
    Router,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{Method, Uri};
use relent_ledger::{MessageId, Settled, State};

use super::{
    app::App,
    problem::{Kind, Problem},
};
use crate::wire::StateView;

/// What a handler answers.
type Answer = Result<Response, Problem>;

/// Every path. Who may ask is `gate`'s to say, before this.
pub(super) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/v1/messages", post(message::submit).get(message::list))
        .route("/v1/messages/{id}", get(message::show).delete(message::cancel))
        .route("/v1/dead", get(dead::list))
        .route("/v1/dead/{id}", get(dead::show).delete(dead::discard))
        .route("/v1/dead/{id}/redrive", post(dead::redrive))
        .route("/v1/status", get(health::status))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .with_state(app)
}

async fn no_such_path(uri: Uri) -> Problem {
    Problem::new(Kind::NotFound, format!("there is nothing at {}", uri.path()))
}

async fn no_such_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        Kind::MethodNotAllowed,
        format!("{} does not answer {method}; the header Allow says what it does", uri.path()),
    )
}

fn no_such_message(id: MessageId) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no message {id}")).with_id(id)
}

/// What became of a person's wish, where `done` is the state that it leads to.
fn settled(id: MessageId, settled: Settled, done: State) -> Answer {
    match settled {
        Settled::Done => Ok(now_is(id, done, None)),
        Settled::NotFound => Err(no_such_message(id)),
        Settled::Refused(state) => Err(wrong_state(id, state)),
    }
}

fn wrong_state(id: MessageId, state: State) -> Problem {
    Problem::new(Kind::WrongState, format!("the message is {}, which does not allow this", state.name()))
        .with_id(id)
}

fn now_is(id: MessageId, state: State, cycle: Option<u32>) -> Response {
    axum::Json(StateView { id: id.to_string(), state: state.name().into(), cycle }).into_response()
}
