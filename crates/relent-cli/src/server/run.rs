//! The server's life: it opens the store, listens, delivers, and drains in the order that loses nothing.

use std::{
    fs, io,
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use relent::{Clock as _, UnixClock};
use relent_deliver::{
    ClientSettings, Deliverer, Guard, HttpClient, IntakeLimits, Limits, Policies, RunReport, SettingsError,
};
use relent_ledger::{ErrorKind, Ledger};
use relent_ledger_sqlite::{Options, SqliteLedger, Synchronous as Sync};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::JoinHandle,
};
use tracing::{info, warn};

use super::{
    api,
    app::{App, Draining},
    connection::Connections,
    token::Token,
    watch::Watch,
};
use crate::{args::Synchronous, exit::Misuse, settings::Settings};

/// A server at work.
pub(crate) struct Server {
    ledger: SqliteLedger,
    app: Arc<App>,
    driver: JoinHandle<RunReport>,
    connections: JoinHandle<()>,
    stop: oneshot::Sender<()>,
    closing: watch::Sender<bool>,
    address_file: PathBuf,
}

impl Server {
    /// Opens the store, listens, and begins to deliver. `secret` is the token of the environment.
    ///
    /// # Errors
    ///
    /// [`Misuse`] if the settings cannot be served; otherwise what is in the way: another server on the same
    /// folder, the address in use, the disk.
    ///
    /// # Cancellation safety
    ///
    /// Dropped halfway, nothing runs on.
    pub(crate) async fn start(settings: &Settings, secret: Option<String>) -> anyhow::Result<Self> {
        let clock = UnixClock::new();
        let token = Token::from_environment(secret)?;
        if token.is_none() && !settings.listen.ip().is_loopback() {
            return Err(exposed(settings.listen));
        }
        let client = HttpClient::new(client_settings(settings), clock).map_err(no_client)?;
        let ledger = open(settings, &clock)?;
        let token = token.map_or_else(|| Token::of_folder(&settings.data), Ok)?;
        let listener = TcpListener::bind(settings.listen).await.with_context(|| {
            format!("cannot listen on {}; free it, or choose another address with --listen", settings.listen)
        })?;
        let address = listener.local_addr().context("the address in use is not known")?;
        let address_file = settings.data.join("address");
        publish(&address_file, address)
            .with_context(|| format!("cannot write {}", address_file.display()))?;

        let app = app(settings, ledger.clone(), client, token, clock);
        info!(
            version = env!("CARGO_PKG_VERSION"),
            address = %format_args!("http://{address}"),
            data = %settings.data.display(),
            token = %app.token.place(),
            "relent serves"
        );
        let (stop, stopped) = oneshot::channel();
        let driver = app.driver.clone();
        // A sender that is dropped unsent stops the driver as well.
        let driver = tokio::spawn(async move { driver.run(async { drop(stopped.await) }).await });
        let (closing, closed) = watch::channel(false);
        let connections = Connections::new(listener, Arc::clone(&app), api::router(Arc::clone(&app)));
        let connections = tokio::spawn(connections.run(closed));
        Ok(Self { ledger, app, driver, connections, stop, closing, address_file })
    }

    /// Ready only if a part of the server has ended that should not.
    ///
    /// # Cancellation safety
    ///
    /// May be dropped and called again.
    pub(crate) async fn failed(&mut self) -> anyhow::Error {
        // Both arms may be dropped: an ended task stays ended.
        tokio::select! {
            ended = &mut self.driver => anyhow::anyhow!("the delivery ended by itself: {ended:?}"),
            ended = &mut self.connections => anyhow::anyhow!("the HTTP server ended by itself: {ended:?}"),
        }
    }

    /// Ends in order. From now on no message is taken (503); the API still answers, so that the drain can be
    /// watched. Attempts in flight have the drain's time, then they are put back; then connections end, and last
    /// the store, so that whatever was answered is on disk.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, the server goes on draining without its owner; then only the end of the process ends it. The
    /// store stays whole: what was in flight is `unknown` and goes on at the next start.
    pub(crate) async fn drain(self) -> anyhow::Result<RunReport> {
        self.app.draining.begin();
        // Refused, it says that the driver has ended already.
        let _ended = self.stop.send(());
        let report = self.driver.await.context("the delivery ended badly")?;
        self.closing.send_replace(true);
        self.connections.await.context("the HTTP server ended badly")?;
        self.ledger.close().await;
        if let Err(error) = fs::remove_file(&self.address_file) {
            warn!(file = %self.address_file.display(), %error, "the address file stays behind");
        }
        Ok(report)
    }
}

fn app(
    settings: &Settings,
    ledger: SqliteLedger,
    client: HttpClient<UnixClock>,
    token: Token,
    clock: UnixClock,
) -> Arc<App> {
    let store = ledger.path().display().to_string();
    let ledger: Arc<dyn Ledger> = Arc::new(ledger);
    let watch = Arc::new(Watch::new());
    let policies = Policies::new(settings.policies.clone());
    let limits = Limits {
        in_flight: settings.delivery.in_flight,
        per_destination: settings.delivery.per_destination,
        drain: settings.drain,
    };
    let driver =
        Deliverer::new(Arc::clone(&ledger), client, clock, policies.clone(), limits, Arc::clone(&watch) as _);
    Arc::new(App {
        ledger,
        driver,
        watch,
        policies,
        limits: IntakeLimits { body: settings.body_limit, ..IntakeLimits::default() },
        token,
        metrics_public: settings.metrics_public,
        store,
        clock,
        started: clock.now(),
        draining: Draining::default(),
    })
}

/// Opens the store. Blocks, which at this moment keeps nobody waiting.
fn open(settings: &Settings, clock: &UnixClock) -> anyhow::Result<SqliteLedger> {
    let synchronous = match settings.synchronous {
        Synchronous::Full => Sync::Full,
        Synchronous::Off => Sync::Off,
    };
    let options = Options::default().with_synchronous(synchronous);
    let is_new = !settings.data.exists();
    let data = settings.data.display();
    let ledger = SqliteLedger::open(&settings.data, options, clock.now()).map_err(|error| {
        let is_owned = error.kind() == ErrorKind::Owned;
        anyhow::Error::new(error).context(match is_owned {
            true => format!(
                "another server runs on {data}; stop it, or give this one a folder of its own with --data"
            ),
            false => format!("the store in {data} does not open"),
        })
    })?;
    if is_new {
        keep_to_ourselves(&settings.data).with_context(|| format!("cannot protect {data}"))?;
    }
    Ok(ledger)
}

/// Messages carry what their senders keep secret, so nobody else on the machine looks into a folder that we made.
/// One that was there is its maker's to protect.
fn keep_to_ourselves(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn client_settings(settings: &Settings) -> ClientSettings {
    let defaults = ClientSettings::default();
    ClientSettings {
        guard: Guard::new(settings.allow_target.clone()),
        max_response: settings.delivery.max_response,
        read_limit: defaults.read_limit.max(settings.delivery.max_response),
        connect_timeout: settings.delivery.connect_timeout,
        extra_roots: settings.delivery.ca_file.clone(),
        ..defaults
    }
}

fn no_client(error: SettingsError) -> anyhow::Error {
    match &error {
        SettingsError::Roots { source, .. } => Misuse::new(format!("delivery.ca_file: {error}: {source}")),
        SettingsError::Invalid { .. } => Misuse::new(format!("delivery.{error}")),
        _ => anyhow::Error::new(error),
    }
}

fn exposed(listen: SocketAddr) -> anyhow::Error {
    Misuse::new(format!(
        "listen: {listen} can be reached from other machines, and the token in the data folder is meant for this one; \
         listen on 127.0.0.1, or set RELENT_TOKEN to a secret of your own"
    ))
}

/// Tells other commands where the server is: all of the address or none.
fn publish(path: &Path, address: SocketAddr) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(file, "http://{address}")?;
    file.persist(path)?;
    Ok(())
}
