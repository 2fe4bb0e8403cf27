//! The store in this process's memory, for the tests of services.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use relent::{Clock, Timestamp};

use crate::{
    Claim, Claimed, End, Error, Finished, Lease, Record, RecordId, Resolution, Resolved, Row, State, Store,
    row::{Step, Write},
};

/// A store in this process's memory alone: **not shared** with other processes, and gone with this one. A second
/// replica, or this one after a restart, does the work again. For tests.
///
/// It holds [`UnsharedMemory::MAX_RECORDS`] records unless told otherwise; the oldest that are done make room. Clones
/// share it.
///
/// # Examples
///
/// ```
/// use relent::ManualClock;
/// use relent_idempotency::UnsharedMemory;
///
/// let clock = ManualClock::new();
/// let store = UnsharedMemory::new(clock.clone()).with_max_records(100);
/// ```
#[derive(Clone)]
pub struct UnsharedMemory {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    max_records: u64,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    rows: HashMap<RecordId, (u64, Row)>,
    /// The records by when they were first claimed.
    order: BTreeMap<u64, RecordId>,
    /// How many records were ever made.
    made: u64,
}

impl UnsharedMemory {
    /// The most records, unless told otherwise: with the usual limit of an answer at most 2.5 GiB, in practice some
    /// megabytes.
    pub const MAX_RECORDS: u64 = 10_000;

    /// An empty store on that clock.
    pub fn new(clock: impl Clock) -> Self {
        Self { now: Arc::new(move || clock.now()), max_records: Self::MAX_RECORDS, inner: Arc::default() }
    }

    /// The same with room for so many records.
    #[must_use]
    pub fn with_max_records(self, max_records: u64) -> Self {
        Self { max_records, ..self }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.lock().rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A panic under the lock leaves the rows whole (each change is one step), so poison is no news.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn row(&self, id: &RecordId) -> Option<&Row> {
        self.rows.get(id).map(|(_, row)| row)
    }

    /// Writes down what a step says of a record.
    fn carry_out<T>(&mut self, id: &RecordId, step: Step<T>) -> T {
        match step.write {
            Write::Leave => {}
            Write::Put(row) => match self.rows.get_mut(id) {
                Some((_, kept)) => *kept = *row,
                None => self.make(id, *row),
            },
            Write::Remove => self.remove(id),
        }
        step.say
    }

    fn make(&mut self, id: &RecordId, row: Row) {
        self.made += 1;
        self.order.insert(self.made, id.clone());
        self.rows.insert(id.clone(), (self.made, row));
    }

    fn remove(&mut self, id: &RecordId) {
        if let Some((seq, _)) = self.rows.remove(id) {
            self.order.remove(&seq);
        }
    }

    /// Keeps the newest `max_records` and whatever is not done, and looks at some of the oldest whether they are
    /// forgotten.
    fn make_room(&mut self, max_records: u64, now: Timestamp) {
        let max_records = usize::try_from(max_records).unwrap_or(usize::MAX);
        let old = self.order.values().take(self.rows.len().saturating_sub(max_records));
        let evicted = old.filter(|id| self.row(id).is_some_and(Row::is_done));
        let oldest = self.order.values().take(LOOKED_AT);
        let forgotten = oldest.filter(|id| self.row(id).is_some_and(|row| row.is_forgotten(now)));
        let gone: Vec<_> = evicted.chain(forgotten).cloned().collect();
        gone.iter().for_each(|id| self.remove(id));
    }
}

#[async_trait]
impl Store for UnsharedMemory {
    async fn claim(&self, claim: &Claim) -> Result<Claimed, Error> {
        let now = (self.now)();
        let mut inner = self.lock();
        let step = Row::claim(inner.row(&claim.record), claim, now);
        let is_new = step.say.is_new();
        if is_new {
            inner.remove(&claim.record); // what is forgotten makes room for a new record
        }
        let claimed = inner.carry_out(&claim.record, step);
        if is_new {
            inner.make_room(self.max_records, now);
        }
        Ok(claimed)
    }

    async fn renew(&self, lease: &Lease, length: Duration) -> Result<(), Error> {
        let now = (self.now)();
        let mut inner = self.lock();
        let step = Row::renew(inner.row(&lease.record), lease.claim, length, now)?;
        inner.carry_out(&lease.record, step);
        Ok(())
    }

    async fn finish(&self, lease: &Lease, end: End) -> Result<Finished, Error> {
        let now = (self.now)();
        let mut inner = self.lock();
        let step = Row::finish(inner.row(&lease.record), lease.claim, end, now)?;
        Ok(inner.carry_out(&lease.record, step))
    }

    async fn read(&self, id: &RecordId) -> Result<Option<Record>, Error> {
        let now = (self.now)();
        Ok(self.lock().row(id).and_then(|row| row.record(id, now)))
    }

    async fn unknown(&self, limit: usize) -> Result<Vec<Record>, Error> {
        let now = (self.now)();
        let inner = self.lock();
        let all = inner.rows.iter().filter_map(|(id, (seq, row))| Some((*seq, row.record(id, now)?)));
        let mut unknown: Vec<_> = all.filter(|(_, record)| record.state == State::Unknown).collect();
        unknown.sort_by_key(|(seq, _)| *seq);
        Ok(unknown.into_iter().take(limit).map(|(_, record)| record).collect())
    }

    async fn resolve(&self, id: &RecordId, resolution: Resolution) -> Result<Resolved, Error> {
        let now = (self.now)();
        let mut inner = self.lock();
        let step = Row::resolve(inner.row(id), resolution, now);
        Ok(inner.carry_out(id, step))
    }

    async fn purge(&self, limit: usize) -> Result<u64, Error> {
        let now = (self.now)();
        let mut inner = self.lock();
        let forgotten = inner.rows.iter().filter(|(_, (_, row))| row.is_forgotten(now));
        let forgotten: Vec<_> = forgotten.map(|(id, _)| id.clone()).take(limit).collect();
        forgotten.iter().for_each(|id| inner.remove(id));
        Ok(forgotten.len() as u64)
    }
}

impl fmt::Debug for UnsharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsharedMemory").field("records", &self.len()).finish_non_exhaustive()
    }
}

/// How many of the oldest are looked at with each new record: more than come, so that what is forgotten goes.
const LOOKED_AT: usize = 8;
