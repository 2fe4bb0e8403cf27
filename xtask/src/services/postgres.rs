//! PostgreSQL: whatever answers at the usual place, or a cluster of our own beside it.
//!
//! A test makes a schema of its own and drops it, so any server will do that lets `postgres` in without a password
//! from this machine. Debian's own cluster asks TCP for one; instead of changing its settings, a cluster of our own is
//! made, on a port of its own.

use std::{
    env,
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use super::{Effort, as_root, is_installed, output, say};

/// The name and the value of what the tests must be told.
pub(super) fn have(effort: Effort) -> Result<(String, String), String> {
    let found = |url: String| Ok((NAME.to_string(), url));
    if let Ok(url) = env::var(NAME) {
        say(&format!("PostgreSQL is where {NAME} says"));
        return found(url);
    }
    for port in [USUAL, OUR_OWN] {
        if lets_in(port).is_ok() {
            say(&format!("PostgreSQL answers on port {port}"));
            return found(url(port));
        }
    }
    if let Some(port) = start_what_is_installed()? {
        return found(url(port));
    }
    if effort == Effort::Start {
        return Err("PostgreSQL is not here".into());
    }
    install()?;
    if let Some(port) = start_what_is_installed()? {
        return found(url(port));
    }
    make_our_own()?;
    found(url(OUR_OWN))
}

/// Starts the stopped clusters of Debian's packages, one after the other, until one lets us in; its port.
fn start_what_is_installed() -> Result<Option<u16>, String> {
    if !is_installed("pg_lsclusters") {
        return Ok(None);
    }
    for cluster in clusters()? {
        if cluster.is_down {
            start(&cluster.version, &cluster.name)?;
        }
        if wait_until_ready(cluster.port).is_ok() {
            say(&format!(
                "PostgreSQL {} \"{}\" answers on port {}",
                cluster.version, cluster.name, cluster.port
            ));
            return Ok(Some(cluster.port));
        }
    }
    Ok(None)
}

/// Debian's way to start a cluster, with or without systemd.
fn start(version: &str, name: &str) -> Result<(), String> {
    as_root(&["pg_ctlcluster", "--skip-systemctl-redirect", version, name, "start"])
}

fn install() -> Result<(), String> {
    if !is_installed("apt-get") {
        return Err(format!(
            "PostgreSQL is not here, and neither is apt-get to install it: install it yourself and say where it is, \
             {NAME}=postgres://user:password@host:port/database"
        ));
    }
    say("PostgreSQL is not here: it is installed from Debian's packages");
    as_root(&["apt-get", "update", "--quiet"])?;
    as_root(&["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "postgresql"])
}

/// Makes a cluster that needs no password from this machine, and starts it.
fn make_our_own() -> Result<(), String> {
    let newest = output(&["ls", "-1v", "/usr/lib/postgresql"])?;
    let version = newest.lines().last().ok_or("PostgreSQL is installed, and no version of it is there")?;
    say(&format!(
        "a PostgreSQL of the tests' own is made, on port {OUR_OWN}: cluster {version} \"{OUR_NAME}\""
    ));
    let port = OUR_OWN.to_string();
    if !clusters()?.iter().any(|cluster| cluster.name == OUR_NAME) {
        as_root(&["pg_createcluster", "--port", &port, version, OUR_NAME, "--", "--auth=trust"])?;
    }
    start(version, OUR_NAME)?;
    wait_until_ready(OUR_OWN)
}

struct Cluster {
    version: String,
    name: String,
    port: u16,
    is_down: bool,
}

/// The clusters of Debian's packages: version, name, port, status, and more.
fn clusters() -> Result<Vec<Cluster>, String> {
    Ok(output(&["pg_lsclusters", "--no-header"])?.lines().filter_map(cluster).collect())
}

fn cluster(line: &str) -> Option<Cluster> {
    let mut words = line.split_whitespace();
    let (version, name, port, status) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_down = status.starts_with("down");
    Some(Cluster { version: version.into(), name: name.into(), port: port.parse().ok()?, is_down })
}

/// Waits for a server that is starting; one that wants a password is ready and of no use.
#[expect(clippy::disallowed_methods, reason = "a server starts in real time")]
fn wait_until_ready(port: u16) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    loop {
        match lets_in(port) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied || Instant::now() > end => {
                return Err(format!("PostgreSQL on port {port}: {error}"));
            }
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Whether `postgres` gets in from this machine without a password: the first exchange of the protocol.
fn lets_in(port: u16) -> io::Result<()> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(&start_up())?;
    let mut answer = [0; 9];
    stream.read_exact(&mut answer)?;
    match answer {
        // AuthenticationOk: 'R', its length 8, the code 0.
        [b'R', 0, 0, 0, 8, 0, 0, 0, 0] => Ok(()),
        [b'R', ..] => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it wants a password")),
        _ => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "it is starting, or refuses")),
    }
}

/// StartupMessage: its length, version 3.0, the parameters, and a zero at the end.
fn start_up() -> Vec<u8> {
    let mut body = 196_608_u32.to_be_bytes().to_vec();
    for text in ["user", "postgres", "database", "postgres"] {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &body].concat()
}

fn url(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

const NAME: &str = "RELENT_TEST_POSTGRES";
const USUAL: u16 = 5432;
/// Far from the ports that Debian gives to further clusters.
const OUR_OWN: u16 = 54_329;
const OUR_NAME: &str = "relent";
const PATIENCE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_read_as_debian_lists_them() {
        let line =
            "15  main    5432 down,binaries_missing postgres /var/lib/postgresql/15/main /var/log/x.log";
        let read = cluster(line).unwrap();
        assert_eq!(
            (read.version.as_str(), read.name.as_str(), read.port, read.is_down),
            ("15", "main", 5432, true)
        );
        assert!(!cluster("17 relent 54329 online postgres /a /b").unwrap().is_down);
        assert!(cluster("").is_none());
    }

    #[test]
    fn the_first_message_has_its_length() {
        let message = start_up();
        assert_eq!(message[..8], [0, 0, 0, 41, 0, 3, 0, 0]);
        assert_eq!(message.len(), 41);
    }
}
