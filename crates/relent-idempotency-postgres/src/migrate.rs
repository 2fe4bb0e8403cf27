//! The table: made, or refused where it is a newer relent's.

use deadpool_postgres::Client;
use relent_idempotency::{Error, ErrorKind};

use crate::{PostgresStore, error::postgres};

impl PostgresStore {
    /// The statements that make the table, for those whose migrations are a tool's.
    pub fn schema(&self) -> &str {
        &self.sql.schema
    }

    /// Makes the table if it is not there. Several processes may do so at once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] if the database does not answer or does not let it, or if the table is of a newer
    /// relent.
    ///
    /// # Cancellation safety
    ///
    /// One transaction.
    pub async fn migrate(&self) -> Result<(), Error> {
        let mut client = self.lend().await?;
        let migrated = self.migrate_on(&mut client).await;
        client.give_back();
        migrated
    }

    async fn migrate_on(&self, client: &mut Client) -> Result<(), Error> {
        let found = client.query_one(&self.sql.version, &[]).await.map_err(postgres("read the version"))?;
        let found: Option<String> = found.try_get(0).map_err(postgres("read the version"))?;
        match found.as_deref() {
            Some(VERSION) => return Ok(()),
            Some(other) => {
                let what = format!(
                    "the table says \"{other}\", and this relent knows \"{VERSION}\": use a newer relent"
                );
                return Err(Error::new(ErrorKind::Unavailable, what));
            }
            None => {}
        }
        let transaction = client.transaction().await.map_err(postgres("make the table"))?;
        // "If not exists" is not enough for two who make it at once.
        let lock = "SELECT pg_advisory_xact_lock(hashtext('relent idempotency'))";
        transaction.execute(lock, &[]).await.map_err(postgres("make the table"))?;
        transaction.batch_execute(&self.sql.schema).await.map_err(postgres("make the table"))?;
        transaction.commit().await.map_err(postgres("make the table"))
    }
}

/// The table's note of itself.
const VERSION: &str = "relent idempotency, version 1";
