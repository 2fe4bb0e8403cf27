//! The commands' side of the API: where the server is, what opens it, and what its refusals mean to a person.
//!
//! Nothing here is retried: a command runs under somebody's eyes, and whoever scripts it gives a key and runs it
//! again.

mod failure;

use std::{
    env,
    error::Error as _,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client as Http, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

pub(crate) use failure::Failure;

use crate::{args::ClientArgs, exit::Misuse};

/// A way to a server.
#[derive(Clone)]
pub(crate) struct Client {
    server: String,
    token: Token,
    /// How long an answer may take.
    patience: Duration,
    http: Http<HttpConnector, Full<Bytes>>,
}

/// What the server answered when it did what it was asked.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The body as it came.
    body: Bytes,
    /// Whether it was told `Idempotency-Replayed: true`.
    pub(crate) replayed: bool,
}

/// The API token, and where it came from.
#[derive(Clone)]
struct Token {
    secret: String,
    from: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Environment,
    File(PathBuf),
}

impl Client {
    /// The server that the flags, the environment or the data folder name.
    ///
    /// # Errors
    ///
    /// A URL that is none is wrong use. No token is a failure, with the way out.
    pub(crate) fn new(args: &ClientArgs) -> anyhow::Result<Self> {
        let address = args.data.join("address");
        let server = match &args.server {
            Some(server) => base(server)?,
            None => match read(&address)? {
                Some(address) => base(&address)?,
                None => DEFAULT_SERVER.to_owned(),
            },
        };
        let token = Token::find(&args.data)?;
        Ok(Self { server, token, patience: args.timeout, http: http_client() })
    }

    /// A server of one's own, with its data folder.
    ///
    /// # Errors
    ///
    /// The folder names no address or no token.
    pub(crate) fn of_folder(data: &Path) -> anyhow::Result<Self> {
        let file = data.join("token");
        let secret = read(&file)?.with_context(|| format!("{} does not exist", file.display()))?;
        let address = data.join("address");
        let server = read(&address)?.with_context(|| format!("{} does not exist", address.display()))?;
        let token = Token { secret, from: Source::File(file) };
        Ok(Self { server: base(&server)?, token, patience: PATIENCE, http: http_client() })
    }

    /// Asks without a body.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub(crate) async fn ask(&self, method: Method, path: &str) -> Result<Answer, Failure> {
        self.send(method, path, Bytes::new()).await
    }

    /// Asks with a body, which is JSON.
    ///
    /// # Errors
    ///
    /// [`Failure`].
    pub(crate) async fn post(&self, path: &str, json: Vec<u8>) -> Result<Answer, Failure> {
        self.send(Method::POST, path, json.into()).await
    }

    /// # Cancellation safety
    ///
    /// Dropping the future closes the connection; whether the server acted is then not known.
    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, Failure> {
        let late = || Failure::Late { server: self.server.clone(), patience: self.patience };
        timeout(self.patience, self.exchange(method, path, body)).await.unwrap_or_else(|_| Err(late()))
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, Failure> {
        let odd = |what: String| Failure::Odd { server: self.server.clone(), what };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server))
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token.secret))
            .header(header::ACCEPT, "application/json");
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(body)).map_err(|error| odd(error.to_string()))?;
        let response = self.http.request(request).await.map_err(|error| self.failed(error))?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| self.cut_off(error))?.to_bytes();
        if head.status.is_success() {
            let replayed = head.headers.get("idempotency-replayed").is_some_and(|value| value == "true");
            return Ok(Answer { body, replayed });
        }
        if head.status == StatusCode::UNAUTHORIZED {
            return Err(Failure::Token { server: self.server.clone(), from: self.token.from.to_string() });
        }
        match serde_json::from_slice(&body) {
            Ok(problem) => Err(Failure::Refused { problem: Box::new(problem) }),
            Err(_) => Err(odd(format!("it answered {} without saying why", head.status))),
        }
    }

    fn failed(&self, error: hyper_util::client::legacy::Error) -> Failure {
        let server = self.server.clone();
        if error.is_connect() {
            return Failure::Unreachable { server, source: Box::new(error) };
        }
        match error.source().and_then(|source| source.downcast_ref::<hyper::Error>()) {
            Some(answer) if answer.is_parse() => Failure::Odd { server, what: answer.to_string() },
            _ => Failure::CutOff { server, source: Box::new(error) },
        }
    }

    fn cut_off(&self, error: hyper::Error) -> Failure {
        Failure::CutOff { server: self.server.clone(), source: Box::new(error) }
    }
}

impl Answer {
    /// The body as a value.
    ///
    /// # Errors
    ///
    /// What was answered is not what the API says: probably another program, or another version.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        serde_json::from_slice(&self.body)
            .context("the server's answer is not what this version of relent expects; is it a relent server?")
    }

    /// The body as it came, as a line: what `--json` prints, fields that this version does not know included.
    pub(crate) fn line(&self) -> String {
        format!("{}\n", String::from_utf8_lossy(&self.body).trim_end())
    }
}

impl Token {
    fn find(data: &Path) -> anyhow::Result<Self> {
        if let Ok(secret) = env::var("RELENT_TOKEN") {
            return Self::usable(secret.trim(), Source::Environment);
        }
        let file = data.join("token");
        let Some(secret) = read(&file)? else {
            anyhow::bail!(
                "no API token: RELENT_TOKEN is not set and there is no {}; start the server with `relent serve`, \
                 or name its data folder with --data",
                file.display()
            );
        };
        Self::usable(&secret, Source::File(file))
    }

    fn usable(secret: &str, from: Source) -> anyhow::Result<Self> {
        let visible = !secret.is_empty() && secret.bytes().all(|byte| byte.is_ascii_graphic());
        anyhow::ensure!(visible, "the API token from {from} is empty or holds characters that no token has");
        Ok(Self { secret: secret.to_owned(), from })
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment => f.write_str("RELENT_TOKEN"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// A text as the value of a query's parameter: what is not plainly a letter, a digit or a mark without meaning is
/// escaped.
pub(crate) fn escape(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut out, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
        out
    })
}

/// The text of a file without the blanks around it; `None` if there is no such file.
fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// `scheme://host:port` without a slash at the end; the scheme may be left out.
fn base(server: &str) -> anyhow::Result<String> {
    let wrong =
        |why: &str| Misuse::new(format!("--server {server}: {why}; write for example {DEFAULT_SERVER}"));
    let full = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let full = full.trim_end_matches('/');
    let uri: http::Uri = full.parse().map_err(|_| wrong("this is not a URL"))?;
    if uri.scheme_str() != Some("http") {
        return Err(wrong("commands speak http to their server"));
    }
    if uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
        return Err(wrong("this is not the URL of a server"));
    }
    Ok(full.to_owned())
}

/// Its own hidden retry is off, so that a request is sent once or not at all.
fn http_client() -> Http<HttpConnector, Full<Bytes>> {
    Http::builder(TokioExecutor::new()).retry_canceled_requests(false).build(HttpConnector::new())
}

const DEFAULT_SERVER: &str = "http://127.0.0.1:8484";

/// For a server of one's own, on this machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_named_with_and_without_its_scheme() {
        for text in ["127.0.0.1:9000", "http://127.0.0.1:9000", "http://127.0.0.1:9000/"] {
            assert_eq!(base(text).unwrap(), "http://127.0.0.1:9000");
        }
        assert_eq!(base("[::1]:9000").unwrap(), "http://[::1]:9000");
        assert_eq!(base("http://proxy.example/relent/").unwrap(), "http://proxy.example/relent");
    }

    #[test]
    fn a_text_is_escaped_for_a_query() {
        assert_eq!(escape("a+/=9"), "a%2B%2F%3D9");
        assert_eq!(escape("å"), "%C3%A5");
    }

    #[test]
    fn what_is_no_server_is_wrong_use() {
        for text in ["", "https://example.com", "ftp://example.com", "http://", "a b", "http://h/?q=1"] {
            assert!(base(text).unwrap_err().is::<Misuse>(), "{text}");
        }
    }
}
