//! Making a connection: resolve, judge, dial, shake hands. Each step has its own class of failure.

use std::{
    fmt,
    future::{Ready, ready},
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use relent::{DurationText, ErrorClass};
use relent_tower::http::classify;
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tower_service::Service;

use super::{fault::ConnectFailure, resolve::Resolve};
use crate::guard::{self, Guard};

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Makes guarded connections. Clones share everything.
#[derive(Clone)]
pub(super) struct Connector(Arc<Parts>);

struct Parts {
    guard: Guard,
    resolver: Arc<dyn Resolve>,
    tls: Arc<ClientConfig>,
    /// For each of the three steps that wait for somebody.
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(
        guard: Guard,
        resolver: Arc<dyn Resolve>,
        tls: ClientConfig,
        timeout: Duration,
    ) -> Self {
        Self(Arc::new(Parts { guard, resolver, tls: Arc::new(tls), timeout }))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("guard", &self.0.guard).finish_non_exhaustive()
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = ConnectFailure;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, ConnectFailure>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let parts = Arc::clone(&self.0);
        Box::pin(async move { parts.connect(uri).await })
    }
}

impl Parts {
    async fn connect(&self, uri: Uri) -> Result<Stream, ConnectFailure> {
        let secure = uri.scheme() == Some(&http::uri::Scheme::HTTPS);
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        // `Uri` keeps the brackets of an IPv6 literal.
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let found = self.addresses(host).await?;
        let tcp = self.dial(host, self.judge(host, found)?, port).await?;
        if secure { self.shake_hands(tcp, uri).await } else { Ok(Stream::Http(TokioIo::new(tcp))) }
    }

    /// The host's addresses. A literal is one; every other spelling of an address is left to the resolver, so
    /// that nothing is judged here that is dialled as something else.
    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, ConnectFailure> {
        if let Ok(literal) = host.parse() {
            return Ok(vec![literal]);
        }
        match timeout(self.timeout, self.resolver.resolve(host.to_owned())).await {
            Ok(Ok(found)) if found.is_empty() => {
                Err(ConnectFailure::new(ErrorClass::Dns, format!("the name {host} has no address")))
            }
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(unresolved(host, error)),
            Err(_) => {
                let within = DurationText(self.timeout);
                let what = format!("the name {host} could not be resolved within {within}");
                Err(ConnectFailure::new(ErrorClass::Dns, what))
            }
        }
    }

    /// Those of the addresses that may be dialled.
    fn judge(&self, host: &str, mut found: Vec<IpAddr>) -> Result<Vec<IpAddr>, ConnectFailure> {
        let first = found.first().copied();
        found.retain(|address| self.guard.allows(*address));
        found.truncate(MAX_ADDRESSES);
        match first {
            Some(blocked) if found.is_empty() => {
                Err(ConnectFailure::new(ErrorClass::Blocked, blocked_text(host, blocked)))
            }
            _ => Ok(found),
        }
    }

    /// The first connection that stands. The addresses share the time-out evenly, as one that swallows
    /// everything must not keep the next from being tried.
    async fn dial(&self, host: &str, addresses: Vec<IpAddr>, port: u16) -> Result<TcpStream, ConnectFailure> {
        let share = self.timeout / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut failure = ConnectFailure::new(ErrorClass::Dns, format!("the name {host} has no address"));
        for address in addresses {
            failure = match timeout(share, TcpStream::connect((address, port))).await {
                Ok(Ok(tcp)) => return ready_to_write(tcp),
                Ok(Err(error)) => undialled(address, port, error),
                Err(_) => {
                    let what =
                        format!("no connection to {address} port {port} within {}", DurationText(share));
                    ConnectFailure::new(ErrorClass::ConnectTimeout, what)
                }
            };
            if failure.is_own_fault() {
                break;
            }
        }
        Err(failure)
    }

    async fn shake_hands(&self, tcp: TcpStream, uri: Uri) -> Result<Stream, ConnectFailure> {
        let mut https = HttpsConnector::from((Dialled(Some(tcp)), Arc::clone(&self.tls)));
        match timeout(self.timeout, https.call(uri)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                Err(ConnectFailure::from(ErrorClass::Tls, "the TLS handshake failed".to_owned(), error))
            }
            Err(_) => {
                let what = format!("the TLS handshake did not end within {}", DurationText(self.timeout));
                Err(ConnectFailure::new(ErrorClass::ConnectTimeout, what))
            }
        }
    }
}

/// The inner connector of a [`HttpsConnector`]: it hands over a connection that stands already.
struct Dialled(Option<TcpStream>);

impl Service<Uri> for Dialled {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let tcp = self.0.take().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
        ready(tcp.map(TokioIo::new))
    }
}

/// Requests are written whole, so waiting for more to send (Nagle's algorithm) only delays them.
fn ready_to_write(tcp: TcpStream) -> Result<TcpStream, ConnectFailure> {
    match tcp.set_nodelay(true) {
        Ok(()) => Ok(tcp),
        Err(error) => {
            let what = "the connection broke as soon as it stood".to_owned();
            Err(ConnectFailure::from(ErrorClass::Connect, what, error))
        }
    }
}

/// A failed resolution. The operating system's own codes (`EAI_SYSTEM`) mean that the question was never asked.
fn unresolved(host: &str, error: io::Error) -> ConnectFailure {
    if error.raw_os_error().is_some() || classify::is_own_fault(&error) {
        let what = format!("our own fault: the resolver could not be asked for {host}");
        return ConnectFailure::from(ErrorClass::OwnFault, what, error);
    }
    ConnectFailure::from(ErrorClass::Dns, format!("the name {host} could not be resolved"), error)
}

fn undialled(address: IpAddr, port: u16, error: io::Error) -> ConnectFailure {
    let class = classify::dial_failure(&error);
    let what = match class {
        ErrorClass::OwnFault => format!("our own fault: {address} port {port} could not be dialled"),
        _ => format!("no connection to {address} port {port}"),
    };
    ConnectFailure::from(class, what, error)
}

fn blocked_text(host: &str, address: IpAddr) -> String {
    let named = match host.parse::<IpAddr>() {
        Ok(_) => address.to_string(),
        Err(_) => format!("{address}, an address of {host},"),
    };
    // The IPv4 address inside an IPv6 one: the guard heeds no other range for mere notations of it.
    let allowed = IpNet::from(guard::destination(address));
    format!("{named} may not be dialled because it is not public (to allow it: --allow-target {allowed})")
}

/// Enough for every real answer; a thousand addresses would leave none of them the time to answer.
const MAX_ADDRESSES: usize = 8;
