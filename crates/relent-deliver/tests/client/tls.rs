//! TLS: whom the client believes, and what it says when it does not.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use relent::{ErrorClass, Observed, Sent};
use relent_deliver::ClientSettings;
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tempfile::NamedTempFile;

use crate::support::{
    Receiver, SHORT, Scripted, assert_failed, client_asking, client_with, found, post, settings,
};

#[tokio::test]
async fn an_extra_root_is_believed() {
    let authority = Authority::new("known");
    let receiver = SecureReceiver::start(authority.certify("good.test", Validity::Now));
    let answered = post(&believing(&authority.file()), &receiver.url("good.test")).await;
    assert_eq!((answered.observed, answered.response.as_ref()), (Observed::Status(200), &b"secret"[..]));
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_is_tls_on_one_connection() {
    // RT-15
    let (authority, stranger) = (Authority::new("known"), Authority::new("stranger"));
    let roots = authority.file();
    for (identity, words) in [
        (authority.certify("other.test", Validity::Now), "not valid for name"),
        (authority.certify("good.test", Validity::Past), "expired"),
        (stranger.certify("good.test", Validity::Now), "UnknownIssuer"),
        (self_signed("good.test"), "UnknownIssuer"),
    ] {
        let receiver = SecureReceiver::start(identity);
        let answered = post(&believing(&roots), &receiver.url("good.test")).await;
        assert_failed(&answered, ErrorClass::Tls, &["TLS handshake failed", words]);
        assert_eq!(answered.observed.sent(), Sent::No);
        assert_eq!(receiver.connections(), 1, "{words}");
    }
}

#[tokio::test]
async fn a_receiver_without_tls_is_tls() {
    let receiver = Receiver::start(|_, mut peer| async move {
        peer.send("HTTP/1.1 400 Bad Request\r\n\r\n").await;
        peer.until_closed().await;
    })
    .await;
    let url = receiver.url().replace("http:", "https:");
    let answered = post(&client_with(settings()), &url).await;
    assert_failed(&answered, ErrorClass::Tls, &["TLS handshake failed"]);
}

#[tokio::test]
async fn a_handshake_cut_off_is_tls_and_a_silent_one_is_connect_timeout() {
    let closing = Receiver::start(|_, peer| async move {
        let mut first = [0];
        peer.tcp.peek(&mut first).await.expect("the handshake begins");
    })
    .await;
    let url = closing.url().replace("http:", "https:");
    assert_failed(&post(&client_with(settings()), &url).await, ErrorClass::Tls, &[]);

    let silent = Receiver::start(|_, mut peer| async move { peer.until_closed().await }).await;
    let url = silent.url().replace("http:", "https:");
    let hasty = ClientSettings { connect_timeout: SHORT, ..settings() };
    let answered = post(&client_with(hasty), &url).await;
    assert_failed(&answered, ErrorClass::ConnectTimeout, &["TLS handshake", "within 1s500ms"]);
}

fn believing(roots: &NamedTempFile) -> crate::support::TestClient {
    let settings = ClientSettings { extra_roots: Some(roots.path().to_owned()), ..settings() };
    client_asking(&Scripted::new([found(&["127.0.0.1"])]), settings)
}

/// A certificate and its key.
struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

enum Validity {
    Now,
    Past,
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new(Vec::new()).expect("parameters");
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(parameters, key).expect("an authority"))
    }

    fn certify(&self, name: &str, validity: Validity) -> Identity {
        let mut parameters = CertificateParams::new([name.to_owned()]).expect("parameters");
        if let Validity::Past = validity {
            (parameters.not_before, parameters.not_after) =
                (date_time_ymd(2001, 1, 1), date_time_ymd(2002, 1, 1));
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = parameters.signed_by(&key, &self.0).expect("a certificate");
        Identity { certificate: certificate.der().clone(), key }
    }

    fn file(&self) -> NamedTempFile {
        let file = NamedTempFile::new().expect("a file");
        write(file.path(), &self.0.pem());
        file
    }
}

fn self_signed(name: &str) -> Identity {
    let key = KeyPair::generate().expect("a key");
    let parameters = CertificateParams::new([name.to_owned()]).expect("parameters");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    Identity { certificate: certificate.der().clone(), key }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the file is written");
}

/// Answers one request over TLS on each connection.
struct SecureReceiver {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl SecureReceiver {
    fn start(identity: Identity) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        let key = PrivateKeyDer::try_from(identity.key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(vec![identity.certificate], key))
            .map(Arc::new)
            .expect("a server's configuration");
        std::thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                counter.fetch_add(1, Ordering::SeqCst);
                let tls = ServerConnection::new(Arc::clone(&config)).expect("a connection");
                serve(StreamOwned::new(tls, tcp));
            }
        });
        Self { address, connections }
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.address.port())
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A client that breaks off the handshake is what most tests are about, so errors end the connection quietly.
fn serve(mut stream: StreamOwned<ServerConnection, std::net::TcpStream>) {
    let mut request = [0; 4096];
    if stream.read(&mut request).is_ok() {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nsecret");
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }
}
