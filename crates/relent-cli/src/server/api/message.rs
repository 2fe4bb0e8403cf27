//! `/v1/messages`.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    response::IntoResponse as _,
};
use http::{HeaderName, HeaderValue, StatusCode, header};
use relent::Clock as _;
use relent_deliver::{Submission, prepare};
use relent_ledger::{Accepted, ListQuery, MessageId, State as Stands, Stretch};
use tracing::info;

use super::{
    Answer,
    extract::{Id, Parameters},
    no_such_message, settled,
};
use crate::{
    server::{
        app::App,
        intake,
        problem::{Kind, Problem},
    },
    wire::{MessageView, PageView, StateView, SummaryView},
};

/// `POST /v1/messages`: answers once the message is on disk.
///
/// # Cancellation safety
///
/// A client that goes away may have its message accepted all the same; with a key it may ask again.
pub(super) async fn submit(State(app): State<Arc<App>>, request: Request) -> Answer {
    if app.draining.has_begun() {
        return Err(Problem::draining());
    }
    let (parts, body) = request.into_parts();
    intake::expect_utf8(&parts.headers)?;
    let bytes = intake::read(body, &parts.headers, intake::envelope(app.limits.body), &app.clock).await?;
    let submission = intake::submission(intake::parse(&bytes)?, &parts.headers)?;
    let message = match prepare(&submission, &app.policies, &app.limits, app.clock.now()) {
        Ok(message) => message,
        Err(why) => return not_again(&app, &submission, why.into()).await,
    };
    let id = message.id;
    match app.ledger.accept(message).await.map_err(|error| app.failed(error))? {
        Accepted::New => {
            app.driver.wake();
            let location = HeaderValue::try_from(format!("/v1/messages/{id}")).map_err(internal)?;
            Ok((StatusCode::CREATED, [(header::LOCATION, location)], view(id, Stands::Waiting))
                .into_response())
        }
        Accepted::Replayed(first) => replayed(&app, first).await,
        Accepted::Conflict(first) => Err(conflict(first)),
    }
}

/// The answer to what cannot be accepted now. A sender whose `201` was lost repeats itself, perhaps after the
/// deadline or under other settings: what was accepted before is told as such all the same.
async fn not_again(app: &App, submission: &Submission, why: Problem) -> Answer {
    let Some(key) = &submission.key else { return Err(why) };
    let known = app.ledger.replay(key, submission.fingerprint()).await;
    match known.map_err(|error| app.failed(error))? {
        Some(Accepted::Replayed(first)) => replayed(app, first).await,
        Some(Accepted::Conflict(first)) => Err(conflict(first)),
        Some(Accepted::New) | None => Err(why),
    }
}

fn conflict(first: MessageId) -> Problem {
    let detail = format!("the key belongs to message {first}, whose content is another; use a new key");
    Problem::new(Kind::KeyConflict, detail).with_field("key").with_id(first)
}

/// The answer to what was accepted before: that message as it stands now.
async fn replayed(app: &App, first: MessageId) -> Answer {
    app.watch.metrics.replayed();
    let message = app.ledger.message(first, Stretch::NONE).await.map_err(|error| app.failed(error))?;
    let state = message.map_or(Stands::Waiting, |message| message.summary.state);
    Ok((StatusCode::OK, [(REPLAYED, "true")], view(first, state)).into_response())
}

/// `GET /v1/messages`.
pub(super) async fn list(State(app): State<Arc<App>>, parameters: Parameters) -> Answer {
    page(&app, parameters.page()?).await
}

/// `GET /v1/messages/{id}`.
pub(super) async fn show(State(app): State<Arc<App>>, Id(id): Id, parameters: Parameters) -> Answer {
    let message = app.ledger.message(id, parameters.stretch()?).await.map_err(|error| app.failed(error))?;
    Ok(Json(MessageView::from(message.ok_or_else(|| no_such_message(id))?)).into_response())
}

/// `DELETE /v1/messages/{id}`: stops what still waits.
pub(super) async fn cancel(State(app): State<Arc<App>>, Id(id): Id) -> Answer {
    let what = app.ledger.cancel(id, app.clock.now()).await.map_err(|error| app.failed(error))?;
    let answer = settled(id, what, Stands::Cancelled)?;
    info!(target: "relent::message", %id, state = Stands::Cancelled.name(), "message ended");
    Ok(answer)
}

/// A page of a list.
pub(super) async fn page(app: &App, query: ListQuery) -> Answer {
    let page = app.ledger.list(query).await.map_err(|error| app.failed(error))?;
    let next = page.next.map(|cursor| cursor.0.to_string());
    Ok(Json(PageView { items: page.items.into_iter().map(SummaryView::from).collect(), next })
        .into_response())
}

fn view(id: MessageId, state: Stands) -> Json<StateView> {
    Json(StateView { id: id.to_string(), state: state.name().into(), cycle: None })
}

fn internal(error: impl std::fmt::Display) -> Problem {
    Problem::new(Kind::Internal, error.to_string())
}

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
