//! Connections from clients: how many, how long, and how they end.
//!
//! No client can hold the server: a request's head and body each have their time, an answer that is not read
//! and a connection that is idle are given up, and beyond the limit clients wait to be accepted.

use std::{convert::Infallible, io, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body, response::IntoResponse as _};
use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use relent::{Clock, UnixClock};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::{JoinError, JoinSet},
};
use tower_service::Service as _;
use tracing::{debug, error, warn};

use super::{app::App, gate, patient::Patient};

/// Where connections are accepted, and what answers on them.
pub(super) struct Connections {
    listener: TcpListener,
    app: Arc<App>,
    router: Router,
    clock: UnixClock,
    open: JoinSet<()>,
    permits: Arc<Semaphore>,
}

impl Connections {
    /// Nothing is accepted yet.
    pub(super) fn new(listener: TcpListener, app: Arc<App>, router: Router) -> Self {
        let (clock, permits) = (app.clock, Arc::new(Semaphore::new(MOST_CONNECTIONS)));
        Self { listener, app, router, clock, open: JoinSet::new(), permits }
    }

    /// Accepts until `closing` holds `true`; then lets what was asked be answered, for [`GRACE`], and returns
    /// when every connection has ended.
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future closes every connection.
    pub(super) async fn run(mut self, closing: watch::Receiver<bool>) {
        let mut closed = pin!(until_told(closing.clone()));
        loop {
            let permits = Arc::clone(&self.permits);
            // Each arm may be dropped: a permit goes back, an unaccepted connection stays in the kernel's
            // queue, an ended task in the set.
            tokio::select! {
                () = &mut closed => break,
                Some(ended) = self.open.join_next() => report(ended),
                (permit, accepted) = accept(&self.listener, permits) => match accepted {
                    Ok(stream) => self.serve(stream, permit, closing.clone()),
                    Err(failed) => self.pause_after(&failed).await,
                },
            }
        }
        drop(self.listener);
        let open = &mut self.open;
        tokio::select! {
            () = all_end(open) => {}
            () = self.clock.sleep(GRACE) => {}
        }
        self.open.abort_all();
        all_end(&mut self.open).await;
    }

    fn serve(&mut self, stream: TcpStream, permit: OwnedSemaphorePermit, closing: watch::Receiver<bool>) {
        let (app, router, clock) = (Arc::clone(&self.app), self.router.clone(), self.clock);
        self.open.spawn(async move {
            let _permit = permit;
            if let Err(failed) = stream.set_nodelay(true) {
                debug!(target: "relent::http", error = %failed, "a connection was gone before it was served");
                return;
            }
            let service = service_fn(|request| answer(Arc::clone(&app), router.clone(), request));
            let io = TokioIo::new(Patient::new(stream, clock, WRITE_TIME));
            let mut connection = pin!(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIME)
                    .serve_connection(io, service)
            );
            // The connection is not dropped by the other arm, only told to end after the present request.
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = until_told(closing) => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(failed) = ended {
                debug!(target: "relent::http", error = %failed, "a connection ended badly");
            }
        });
    }

    /// A client that is gone before it is accepted is its own affair; anything else (no file descriptors left)
    /// does not pass by trying again at once.
    async fn pause_after(&self, failed: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(failed.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        warn!(target: "relent::http", error = %failed, "no connection can be accepted");
        self.clock.sleep(ACCEPT_PAUSE).await;
    }
}

async fn accept(
    listener: &TcpListener,
    permits: Arc<Semaphore>,
) -> (OwnedSemaphorePermit, io::Result<TcpStream>) {
    let Ok(permit) = permits.acquire_owned().await else { unreachable!("nobody closes the semaphore") };
    (permit, listener.accept().await.map(|(stream, _)| stream))
}

async fn answer(
    app: Arc<App>,
    mut router: Router,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    if let Err(refused) = gate::admit(&app, &parts) {
        return Ok(refused.into_response());
    }
    router.call(Request::from_parts(parts, body)).await
}

/// Returns once `closing` holds `true`, or nobody is left who could say so.
async fn until_told(mut closing: watch::Receiver<bool>) {
    drop(closing.wait_for(|closing| *closing).await);
}

async fn all_end(open: &mut JoinSet<()>) {
    while let Some(ended) = open.join_next().await {
        report(ended);
    }
}

fn report(ended: Result<(), JoinError>) {
    if let Err(failed) = ended
        && failed.is_panic()
    {
        error!(target: "relent::http", error = %failed, "a request made the server panic; its connection is closed");
    }
}

/// Half of the file descriptors that a process commonly has (1,024); the rest is for deliveries and the store.
const MOST_CONNECTIONS: usize = 512;

/// The time for the head of a request, and how long a connection may idle between two.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a client may take nothing of its answer.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// How long what was asked before the end may still be answered: a commit and a write, with room.
const GRACE: Duration = Duration::from_secs(5);

const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
