//! Opening a store: where it is, who owns it, its schema, and what its earlier owner left.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use relent_core::Timestamp;
use relent_ledger::{Error, ErrorKind};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig, ffi};

use crate::{error::sqlite, write};

/// How a store is opened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Whether a commit waits for the disk.
    pub synchronous: Synchronous,
    /// The most pages (of 4 KiB) that the database may have; what does not fit is refused as
    /// [`ErrorKind::Full`]. `None`: as many as the disk holds.
    pub max_pages: Option<u32>,
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Synchronous {
    /// It does: what was answered survives the loss of power.
    #[default]
    Full,
    /// It does not: what was answered survives the death of the process and not the loss of power. For tests
    /// that show the difference.
    Off,
}

impl Options {
    /// The same with another care for the disk.
    #[must_use]
    pub fn with_synchronous(self, synchronous: Synchronous) -> Self {
        Self { synchronous, ..self }
    }

    /// The same with a limit to the database's size.
    #[must_use]
    pub fn with_max_pages(self, max_pages: u32) -> Self {
        Self { max_pages: Some(max_pages), ..self }
    }
}

/// A store that this process owns.
pub(crate) struct Owned {
    /// The writer's connection.
    pub(crate) writer: Connection,
    /// Where the database is.
    pub(crate) database: PathBuf,
    /// Owns the store until it is dropped.
    pub(crate) lock: File,
}

/// Takes the store, makes it if there is none, and puts back what an earlier owner had in flight.
pub(crate) fn own(path: &Path, options: Options, now: Timestamp) -> Result<Owned, Error> {
    let database = database(path);
    let folder = folder(&database);
    create_folder(folder)?;
    let lock = lock(folder)?;
    let mut writer = Connection::open_with_flags(&database, FLAGS | OpenFlags::SQLITE_OPEN_CREATE)
        .and_then(|connection| configure(connection, options))
        .map_err(sqlite("open the database"))?;
    prepare(&mut writer, now)?;
    sync_folder(folder).map_err(|error| unavailable("sync", folder, error))?;
    Ok(Owned { writer, database, lock })
}

/// A connection for reads beside the writer.
pub(crate) fn reader(database: &Path) -> Result<Connection, Error> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY | NO_MUTEX)
        .map_err(sqlite("open the database"))?;
    connection.busy_timeout(BUSY).map_err(sqlite("open the database"))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

/// A connection to a store that this process does not own.
pub(crate) fn read_only(path: &Path) -> Result<Connection, Error> {
    let database = database(path);
    if !database.is_file() {
        return Err(Error::new(ErrorKind::Unavailable, format!("there is no store at {}", path.display())));
    }
    let connection = reader(&database)?;
    version(&connection)?;
    Ok(connection)
}

/// The database for a path: a file that is there, or a name that ends in `.db`, is the database itself, and
/// anything else the folder in which it lies.
fn database(path: &Path) -> PathBuf {
    let is_file = path.is_file() || (!path.is_dir() && path.extension().is_some_and(|ending| ending == "db"));
    if is_file { path.into() } else { path.join("relent.db") }
}

fn folder(database: &Path) -> &Path {
    match database.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the folder, and makes sure that its name is on disk.
fn create_folder(folder: &Path) -> Result<(), Error> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| unavailable("create", folder, error))?;
    for above in folder.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        sync_folder(above).map_err(|error| unavailable("sync", above, error))?;
    }
    Ok(())
}

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join("relent.lock");
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(|error| unavailable("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::Owned,
            format!("another process uses the store in {} (it holds {})", folder.display(), path.display()),
        )),
        Err(TryLockError::Error(error)) => Err(unavailable("lock", &path, error)),
    }
}

fn configure(connection: Connection, options: Options) -> rusqlite::Result<Connection> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let why = format!("the folder's file system allows no write-ahead log (journal mode {mode})");
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CANTOPEN), Some(why)));
    }
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Off => "OFF",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Otherwise SQLite compiles a statement anew whenever a parameter changes that it compared with the
    // condition of a partial index: a seventh of the writer's time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.query_row("PRAGMA journal_size_limit = 67108864", [], |_| Ok(()))?;
    if let Some(pages) = options.max_pages {
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    }
    Ok(connection)
}

/// Makes the schema if there is none, refuses one that is not ours, and recovers, in one commit.
fn prepare(connection: &mut Connection, now: Timestamp) -> Result<(), Error> {
    let found = version(connection)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(sqlite("open the database"))?;
    if found == 0 {
        transaction
            .execute_batch(SCHEMA)
            .and_then(|()| transaction.pragma_update(None, "application_id", APPLICATION))
            .and_then(|()| transaction.pragma_update(None, "user_version", VERSION))
            .map_err(sqlite("make the schema"))?;
    }
    write::recover(&transaction, now).map_err(sqlite("put back what was in flight"))?;
    transaction.commit().map_err(sqlite("put back what was in flight"))
}

/// The version of the schema; 0 if there is none yet.
fn version(connection: &Connection) -> Result<i32, Error> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let application = pragma("application_id").map_err(sqlite("read the database"))?;
    let version = pragma("user_version").map_err(sqlite("read the database"))?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(sqlite("read the database"))?;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(0),
        (APPLICATION, VERSION) => Ok(VERSION),
        (APPLICATION, newer) if newer > VERSION => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the store has version {newer}, and this relent knows {VERSION}: use a newer relent"),
        )),
        _ => Err(Error::new(ErrorKind::Unavailable, "the database is not a store of relent")),
    }
}

/// Makes sure that the names in a folder are on disk.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn unavailable(what: &str, path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, format!("cannot {what} {}: {error}", path.display()))
        .with_source(error)
}

/// Each connection stays on one thread, so SQLite's own mutexes are not needed.
const NO_MUTEX: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(NO_MUTEX);

/// "RLNT".
const APPLICATION: i32 = 0x524c_4e54;

/// What a store is made of.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// The version of `schema.sql`.
const VERSION: i32 = 1;

/// How long a connection waits for another's lock. Only a checkpoint or a recovery by somebody who looks into
/// the file can hold one, and briefly.
const BUSY: Duration = Duration::from_secs(5);

/// More than there are statements, so that each is compiled once.
const STATEMENTS: usize = 64;

/// The writer's page cache: the hot ends of the indexes of millions of messages.
const CACHE_KIB: i64 = 64 * 1024;
