//! Whom to believe over TLS: Mozilla's roots, which are compiled in, and the operator's own.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::settings::SettingsError;

/// A TLS configuration for clients, without client certificates: Mozilla's roots, and those of a PEM file beside. The
/// provider is named here, not taken from the process, so
/// that another library in it cannot change what relent does.
///
/// # Errors
///
/// The file cannot be read, or holds no root.
pub fn config(extra: Option<&Path>) -> Result<ClientConfig, SettingsError> {
    let mut roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    if let Some(path) = extra {
        add(&mut roots, path)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(SettingsError::Tls)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Adds each certificate of the file. One that cannot be a root is an error: it was put there to be believed.
fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), SettingsError> {
    let unusable = |source| SettingsError::Roots { path: path.to_owned(), source };
    let before = roots.len();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.into()))? {
        let certificate = certificate.map_err(|error| unusable(error.into()))?;
        roots.add(certificate).map_err(|error| unusable(error.into()))?;
    }
    if roots.len() == before {
        return Err(SettingsError::no_roots(path.to_owned()));
    }
    Ok(())
}
