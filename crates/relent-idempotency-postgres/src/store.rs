//! The handle on a store.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use deadpool_postgres::{Client, Pool};
use relent::{Invalid, Timestamp};
use relent_idempotency::{
    Answer, Claim, Claimed, End, Error, ErrorKind, Finished, Lease, Record, RecordId, Resolution, Resolved,
    Row, State, Step, Store, Write,
};
use tokio_postgres::{Transaction, error::SqlState};

use crate::{
    Options,
    error::{pool, postgres},
    lent::Lent,
    record::{Loaded, Values, nanos},
    sql::{Sql, table},
};

/// A store in PostgreSQL, for services of many processes. Clones share its pool, which may be the service's own.
///
/// What was answered is committed before the client hears it. A claim is two round trips, a replay one.
#[derive(Clone)]
pub struct PostgresStore {
    pool: Pool,
    options: Options,
    pub(crate) sql: Arc<Sql>,
    /// How many records this process made.
    made: Arc<AtomicU64>,
}

/// What to do about a record that somebody else is changing in a transaction of theirs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Locked {
    /// Wait until they are done, or the limit is reached.
    Wait,
    /// Leave it to them.
    Leave,
}

/// Whether a change came to be.
enum Changed<T> {
    /// It did.
    Said(T),
    /// Somebody else changed the record first: look again.
    Again,
    /// Somebody is about to.
    Locked,
}

impl PostgresStore {
    /// A store over a pool. It asks nothing yet: see [`PostgresStore::migrate`].
    ///
    /// # Errors
    ///
    /// [`Invalid`] if the schema's name is none.
    pub fn new(pool: Pool, options: Options) -> Result<Self, Invalid> {
        if let Some(schema) = options.schema.as_deref().filter(|name| name.is_empty() || name.contains('\0'))
        {
            return Err(Invalid::new("schema", format!("{schema:?} is no name of a schema")));
        }
        let lock_timeout = options.lock_timeout.unwrap_or(LOCK_TIMEOUT);
        let sql = Arc::new(Sql::on(&table(options.schema.as_deref()), lock_timeout));
        Ok(Self { pool, options, sql, made: Arc::default() })
    }

    /// Ends a run inside the handler's own transaction on the same database: the record stands if and only if that
    /// transaction does. Do the work, end the run, and commit only after `Ok`; return the answer that was given here.
    ///
    /// For layers with [`WhenLost::SharedTransaction`](relent_idempotency::WhenLost::SharedTransaction).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Stale`] if the lease is lost, and [`ErrorKind::Misuse`] if the run has ended already: roll back, the
    /// work is another's or was done.
    ///
    /// # Choosing a value
    ///
    /// Any isolation level will do. From `REPEATABLE READ` up, a renewal of the lease while the transaction runs makes it
    /// fail to serialize: nothing is written, and a repeat does the work. Make leases longer than such transactions.
    ///
    /// # Cancellation safety
    ///
    /// Dropped, the transaction must be rolled back, which dropping it does.
    pub async fn finish_in(
        &self,
        transaction: &Transaction<'_>,
        lease: &Lease,
        answer: &Answer,
    ) -> Result<(), Error> {
        let id = &lease.record;
        let params: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&id.caller.as_str(), &id.key.as_str(), &self.now()];
        let found =
            transaction.query_opt(&self.sql.load_locked, &params).await.map_err(postgres("read a record"))?;
        let loaded = Loaded::read(&found.ok_or_else(Error::stale)?)?;
        let step = Row::finish(loaded.row(), lease.claim, End::Answered(answer.clone()), loaded.now)?;
        let Write::Put(row) = step.write else {
            return Err(Error::new(
                ErrorKind::Misuse,
                "the run has ended already, with the answer that stands",
            ));
        };
        let values = Values::of(id, &row, loaded.version());
        let written =
            transaction.execute(&self.sql.update, &values.params()).await.map_err(postgres("end a run"))?;
        if written == 1 { Ok(()) } else { Err(Error::stale()) }
    }

    pub(crate) async fn lend(&self) -> Result<Lent, Error> {
        self.pool.get().await.map(Lent::new).map_err(pool)
    }

    /// The time, where it is not the database's.
    fn now(&self) -> Option<i64> {
        self.options.now.as_ref().map(|now| nanos(now()))
    }

    async fn load(&self, client: &Client, id: &RecordId) -> Result<Loaded, Error> {
        let statement = client.prepare_cached(&self.sql.load).await.map_err(postgres("read a record"))?;
        let found = client
            .query_one(&statement, &[&id.caller.as_str(), &id.key.as_str(), &self.now()])
            .await
            .map_err(postgres("read a record"))?;
        Loaded::read(&found)
    }

    /// Reads a record, decides, and writes down what was decided if the record is still the one that was read; else all
    /// of it again. `None`: somebody else is changing it, and it was left to them.
    async fn change<T>(
        &self,
        id: &RecordId,
        locked: Locked,
        decide: impl Fn(Option<&Row>, Timestamp) -> Result<Step<T>, Error> + Send + Sync,
        is_new: impl Fn(&T) -> bool + Send + Sync,
    ) -> Result<Option<T>, Error>
    where
        T: Send,
    {
        let client = self.lend().await?;
        let changed = async {
            let mut version_locked = None;
            for _ in 0..TRIES {
                let loaded = self.load(&client, id).await?;
                if version_locked == Some(loaded.version()) {
                    return Ok(None);
                }
                let step = decide(loaded.row(), loaded.now)?;
                let is_new = is_new(&step.say);
                match self.carry_out(&client, id, loaded.version(), step, is_new, locked).await? {
                    Changed::Said(said) => return Ok(Some(said)),
                    Changed::Again => {}
                    Changed::Locked => version_locked = Some(loaded.version()),
                }
            }
            Err(Error::new(
                ErrorKind::Unavailable,
                format!("the record changed {TRIES} times while it was being changed"),
            ))
        }
        .await;
        client.give_back();
        changed
    }

    async fn carry_out<T>(
        &self,
        client: &Client,
        id: &RecordId,
        version: i64,
        step: Step<T>,
        is_new: bool,
        locked: Locked,
    ) -> Result<Changed<T>, Error> {
        let (sql, values) = match &step.write {
            Write::Leave => return Ok(Changed::Said(step.say)),
            Write::Remove => (&self.sql.remove, None),
            Write::Put(row) => {
                let sql = match (version, is_new, locked) {
                    (0, ..) => &self.sql.insert,
                    (_, true, _) => &self.sql.replace,
                    (_, false, Locked::Wait) => &self.sql.update_waiting,
                    (_, false, Locked::Leave) => &self.sql.update_unlocked,
                };
                (sql, Some(Values::of(id, row, version)))
            }
        };
        let statement = client.prepare_cached(sql).await.map_err(postgres("write a record"))?;
        let writing = async {
            match &values {
                None => client.execute(&statement, &[&id.caller.as_str(), &id.key.as_str(), &version]).await,
                Some(values) if version == 0 => client.execute(&statement, &values.params()[..14]).await,
                Some(values) => client.execute(&statement, &values.params()).await,
            }
        };
        // One round trip for both: what is forgotten goes as new records come.
        let written = if is_new { tokio::join!(writing, self.tidy_up(client)).0 } else { writing.await };
        match written {
            Ok(0) if sql == &self.sql.update_unlocked => Ok(Changed::Locked),
            Ok(0) => Ok(Changed::Again),
            Ok(_) => Ok(Changed::Said(step.say)),
            Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => Ok(Changed::Again),
            Err(error) => Err(postgres("write a record")(error)),
        }
    }

    /// Forgets some and makes room. If it fails, the next claim does it, and whatever is wrong with the database is seen
    /// by what was asked for.
    async fn tidy_up(&self, client: &Client) {
        drop(self.forget(client, FORGOTTEN_WITH_EACH).await);
        if let Some(max) = self.options.max_records {
            // Counting a hundred thousand records takes some 25 ms.
            let every = (max / 100).clamp(1, 64);
            if !self.made.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
                return;
            }
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            if let Ok(statement) = client.prepare_cached(&self.sql.evict).await {
                drop(client.execute(&statement, &[&max]).await);
            }
        }
    }

    async fn forget(&self, client: &Client, limit: i64) -> Result<u64, Error> {
        let statement = client.prepare_cached(&self.sql.purge).await.map_err(postgres("remove records"))?;
        client.execute(&statement, &[&self.now(), &limit]).await.map_err(postgres("remove records"))
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let decide = |row: Option<&Row>, now| Ok(Row::claim(row, claim, now));
        let claimed = self.change(&claim.record, Locked::Leave, decide, Claimed::is_new).await?;
        // A lease that ran out, and a run that is committing all the same.
        Ok(claimed.unwrap_or(Claimed::Running { left: Duration::ZERO }))
    }

    async fn renew(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        let decide = |row: Option<&Row>, now| Row::renew(row, lease.claim, length, now);
        let renewed = self.change(&lease.record, Locked::Leave, decide, |()| false).await?;
        // Who changes it holds it: the run's own transaction, which is about to end the run.
        renewed.map_or(Ok(()), Ok)
    }

    async fn finish(&self, lease: &Lease, end: End) -> Result<Finished, Error> {
        let decide = |row: Option<&Row>, now| Row::finish(row, lease.claim, end.clone(), now);
        waited_for(self.change(&lease.record, Locked::Wait, decide, |_| false).await?)
    }

    async fn read(&self, id: &RecordId) -> Result<Option<Record>, Error> {
        let client = self.lend().await?;
        let loaded = self.load(&client, id).await;
        client.give_back();
        let loaded = loaded?;
        Ok(loaded.row().and_then(|row| row.record(id, loaded.now)))
    }

    async fn unknown(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let client = self.lend().await?;
        let rows = client.query(&self.sql.open, &[&self.now()]).await.map_err(postgres("list records"));
        client.give_back();
        let rows = rows?;
        let mut found = Vec::new();
        for row in &rows {
            let (id, loaded) = (Loaded::id(row)?, Loaded::read(row)?);
            let record = loaded.row().and_then(|row| row.record(&id, loaded.now));
            found.extend(record.filter(|record| record.state == State::Unknown));
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn resolve(&self, id: &RecordId, resolution: Resolution) -> Result<Resolved, Error> {
        let decide = |row: Option<&Row>, now| Ok(Row::resolve(row, resolution.clone(), now));
        waited_for(self.change(id, Locked::Wait, decide, |_| false).await?)
    }

    async fn purge(&self, limit: usize) -> Result<u64, Error> {
        let client = self.lend().await?;
        let purged = self.forget(&client, i64::try_from(limit).unwrap_or(i64::MAX)).await;
        client.give_back();
        purged
    }
}

/// Who waits for a lock is never told that it was left.
fn waited_for<T>(changed: Option<T>) -> Result<T, Error> {
    changed.ok_or_else(|| Error::new(ErrorKind::Unavailable, "the record is locked"))
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Less than the layer's usual patience with its store, so that it hears why it was not answered.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// More than come, so that what is forgotten goes, and few enough that no claim waits for it.
const FORGOTTEN_WITH_EACH: i64 = 2;

/// Each means that somebody else did something with the very record in between; many claims at once make a few.
const TRIES: u32 = 16;
