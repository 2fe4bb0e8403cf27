//! Whether it lives, whether it is ready, and what it counts.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Json, extract::State, response::IntoResponse as _};
use http::header;
use relent::Clock as _;
use relent_ledger::{State as Stands, Tally};

use super::Answer;
use crate::{
    server::{
        app::App,
        metrics::amplification,
        problem::{Kind, Problem},
    },
    wire::{At, Seconds, StatusView},
};

/// `GET /healthz`: the process answers.
pub(super) async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: a message would be accepted. A store that can be read and has no room is not ready.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Answer {
    if app.draining.has_begun() {
        return Err(Problem::draining());
    }
    // Both arms may be dropped: one leaves nothing behind, the other waits.
    tokio::select! {
        room = app.ledger.room() => room.map_err(|error| app.failed(error))?,
        () = app.clock.sleep(READY_TIME) => {
            return Err(Problem::new(Kind::StoreUnavailable, "the store does not answer in time"));
        }
    }
    Ok("ready\n".into_response())
}

/// `GET /metrics`.
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Answer {
    let tally = app.ledger.tally().await.map_err(|error| app.failed(error))?;
    let text = app.watch.metrics.encode(tally, app.clock.now());
    let text = text.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// `GET /v1/status`.
pub(super) async fn status(State(app): State<Arc<App>>) -> Answer {
    let tally = app.ledger.tally().await.map_err(|error| app.failed(error))?;
    Ok(Json(view(&app, &tally)).into_response())
}

fn view(app: &App, tally: &Tally) -> StatusView {
    let now = app.clock.now();
    let dead_by_reason: BTreeMap<_, _> =
        tally.dead.iter().map(|(reason, count)| ((*reason).to_owned(), *count)).collect();
    StatusView {
        version: env!("CARGO_PKG_VERSION").into(),
        store: app.store.clone(),
        accepted: tally.accepted,
        waiting: tally.count(Stands::Waiting),
        in_flight: tally.count(Stands::InFlight),
        held: tally.count(Stands::Held),
        delivered: tally.count(Stands::Delivered),
        dead: tally.count(Stands::Dead),
        discarded: tally.count(Stands::Discarded),
        cancelled: tally.count(Stands::Cancelled),
        dead_by_reason,
        attempts: tally.attempts,
        amplification: amplification(tally),
        oldest_waiting_at: tally.oldest_waiting.map(At),
        oldest_waiting_s: tally.oldest_waiting.map(|at| Seconds(now.since(at))),
        oldest_dead_at: tally.oldest_dead.map(At),
        uptime_s: Seconds(now.since(app.started)),
        draining: app.draining.has_begun(),
    }
}

/// Longer than a commit on a slow disk, shorter than the patience of a load balancer.
const READY_TIME: Duration = Duration::from_secs(2);
