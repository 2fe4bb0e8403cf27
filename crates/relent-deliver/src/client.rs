//! The real [`Transport`]: one guarded HTTP/1.1 request, whose every end is an observation of its own class.
//!
//! What a policy may do next depends on what is known: whether anything was sent, whether an answer came,
//! whose fault it was. A client that calls all of that "request failed", or that quietly tries again or
//! follows a redirect beneath the policy, takes the decision away from it. So this one adds no attempt, no
//! redirect, no proxy from the environment and no decompression, and it says exactly where an exchange ended.

mod body;
mod connect;
mod fault;
mod resolve;
mod settings;
mod tls;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::capture_connection},
    rt::{TokioExecutor, TokioTimer},
};
use relent::{Clock, DurationText, ErrorClass, Observed};
use relent_ledger::Truncated;
use relent_tower::http::hints;
use tokio::time::timeout;

use self::{body::Answer, connect::Connector, fault::Fault};
use crate::transport::{Answered, Outbound, Transport};

pub use self::{
    resolve::{Resolve, Resolving, SystemResolver},
    settings::{ClientSettings, SettingsError},
    tls::config as tls_config,
};

/// Sends requests over connections of its own, which it keeps for a while and uses again.
///
/// The clock must count from the Unix epoch: a `Retry-After` that names a date is measured with it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use relent::{ErrorClass, ManualClock, Observed};
/// use relent_deliver::{ClientSettings, HttpClient, Outbound, Transport};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = HttpClient::new(ClientSettings::default(), ManualClock::new())?;
/// let request = Outbound {
///     method: http::Method::POST,
///     uri: "http://169.254.169.254/latest/meta-data".parse()?,
///     headers: http::HeaderMap::new(),
///     body: "an order".into(),
/// };
/// let answered = client.send(request, Duration::from_secs(15)).await;
/// assert_eq!(answered.observed, Observed::Error(ErrorClass::Blocked));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpClient<C> {
    http: Client<Connector, Full<Bytes>>,
    clock: C,
    max_response: usize,
    read_limit: usize,
}

impl<C: Clock> HttpClient<C> {
    /// A client that asks the system's resolver for addresses.
    ///
    /// # Errors
    ///
    /// A setting contradicts another or is out of range, or the extra roots cannot be read.
    pub fn new(settings: ClientSettings, clock: C) -> Result<Self, SettingsError> {
        Self::with_resolver(settings, clock, Arc::new(SystemResolver))
    }

    /// A client that asks this resolver for addresses.
    ///
    /// # Errors
    ///
    /// As [`HttpClient::new`].
    pub fn with_resolver(
        settings: ClientSettings,
        clock: C,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, SettingsError> {
        settings.check()?;
        let tls = tls::config(settings.extra_roots.as_deref())?;
        let connector = Connector::new(settings.guard, resolver, tls, settings.connect_timeout);
        let http = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(settings.idle_timeout)
            .pool_max_idle_per_host(settings.max_idle_per_host)
            .http1_max_buf_size(settings.max_head)
            .http1_max_headers(settings.max_headers)
            .retry_canceled_requests(false)
            .build(connector);
        Ok(Self { http, clock, max_response: settings.max_response, read_limit: settings.read_limit })
    }

    /// The exchange itself. What of an answer has come stands in `answer` whenever this ends or is dropped.
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        answer: &mut Option<Answer>,
    ) -> Result<(), Fault> {
        let response = self.http.request(request).await.map_err(Fault::NoHead)?;
        let (head, body) = response.into_parts();
        let server_wait = hints::server_wait(head.status, &head.headers, self.clock.now());
        let answer = answer.insert(Answer::new(head.status, server_wait, self.max_response));
        answer.read(body, self.read_limit).await.map_err(Fault::BrokenBody)
    }
}

/// Connecting, the head and the body share one limit; making a connection has its own within it.
///
/// A 2xx counts once its whole body is here (or as much of it as is read at all): a success that broke off is
/// observed as the failure that broke it, since nobody can say that the receiver finished. Any other status
/// stands as soon as it is read, together with its `Retry-After`, because however the body ends it cannot
/// turn a refusal into anything else; `detail` then says how the body ended.
impl<C: Clock> Transport for HttpClient<C> {
    async fn send(&self, request: Outbound, limit: Duration) -> Answered {
        let mut request = match physical(request) {
            Ok(request) => request,
            Err(refused) => return failed(ErrorClass::Blocked, refused),
        };
        let connection = capture_connection(&mut request);
        let mut answer = None;
        let ended = timeout(limit, self.exchange(request, &mut answer)).await;
        let reached = connection.connection_metadata().is_some();
        let within = DurationText(limit);
        match (ended, answer) {
            (Ok(Ok(())), Some(answer)) => answer.whole(),
            (Ok(Err(fault)), Some(answer)) => answer.broke_off(fault.class(reached), fault.in_words()),
            (Ok(Err(fault)), None) => failed(fault.class(reached), fault.in_words()),
            (Err(_), Some(answer)) => {
                answer.broke_off(ErrorClass::BodyTimeout, format!("the body did not end within {within}"))
            }
            (Err(_), None) if reached => {
                failed(ErrorClass::HeaderTimeout, format!("no response head within {within}"))
            }
            (Err(_), None) => failed(ErrorClass::ConnectTimeout, format!("no connection within {within}")),
            (Ok(Ok(())), None) => unreachable!("an exchange that ends well has had its head"),
        }
    }
}

/// The request as it goes over the wire, or why it will not.
fn physical(outbound: Outbound) -> Result<Request<Full<Bytes>>, String> {
    match outbound.uri.scheme_str() {
        Some("http" | "https") => (),
        Some(other) => return Err(format!("the scheme {other:?} is not sent to: only http and https are")),
        None => return Err("the URL has no scheme: only http and https are sent to".to_owned()),
    }
    let Outbound { method, uri, mut headers, body } = outbound;
    // The framing is ours: a length that differs from the body's would let the rest pass for another request.
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONTENT_LENGTH);
    if body.is_empty() && matches!(method, Method::POST | Method::PUT | Method::PATCH) {
        // RFC 9110, section 8.6: said for methods that expect a body; hyper says nothing of an empty one.
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// What is observed where no answer came.
fn failed(class: ErrorClass, detail: String) -> Answered {
    Answered {
        observed: Observed::Error(class),
        server_wait: None,
        detail,
        response: Bytes::new(),
        truncated: Truncated::No,
    }
}
