//! The client: hyper-util's over rustls, without its hidden retry.

use std::path::Path;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::exit::Misuse;

pub(super) type Https = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// A client that believes Mozilla's roots, and those of the file beside.
pub(super) fn https(roots: Option<&Path>) -> anyhow::Result<Https> {
    let config = relent_deliver::tls_config(roots)
        .map_err(|error| Misuse::new(format!("--cacert: {:#}", anyhow::Error::from(error))))?;
    let connector =
        HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1().build();
    Ok(Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build(connector))
}
