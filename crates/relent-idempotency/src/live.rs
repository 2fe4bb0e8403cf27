//! What runs in this process now: to wait for it at shutdown, and for repeats that wait for an answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{Notify, watch};

use crate::RecordId;

/// The runs of this process.
#[derive(Debug)]
pub(crate) struct Live {
    tasks: watch::Sender<usize>,
    runs: Mutex<HashMap<RecordId, Arc<Notify>>>,
}

impl Live {
    pub(crate) fn new() -> Self {
        Self { tasks: watch::Sender::new(0), runs: Mutex::default() }
    }

    /// Counts a task until the guard is dropped.
    pub(crate) fn begin_task(self: &Arc<Self>) -> Task {
        self.tasks.send_modify(|tasks| *tasks += 1);
        Task(Arc::clone(self))
    }

    /// Waits until no task runs.
    pub(crate) async fn idle(&self) {
        // The sender lives as long as `self`, so the wait cannot fail.
        drop(self.tasks.subscribe().wait_for(|tasks| *tasks == 0).await);
    }

    /// Says that a run of this record is under way, until the guard is dropped.
    pub(crate) fn begin_run(self: &Arc<Self>, record: RecordId) -> Running {
        let end = Arc::new(Notify::new());
        self.lock().insert(record.clone(), Arc::clone(&end));
        Running { live: Arc::clone(self), record, end }
    }

    /// Told when the run of this record ends, if it is under way here.
    pub(crate) fn end_of(&self, record: &RecordId) -> Option<Arc<Notify>> {
        self.lock().get(record).cloned()
    }

    /// A panic under the lock leaves the map whole (each change is one step), so poison is no news.
    fn lock(&self) -> MutexGuard<'_, HashMap<RecordId, Arc<Notify>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that counts.
pub(crate) struct Task(Arc<Live>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.tasks.send_modify(|tasks| *tasks -= 1);
    }
}

/// A run under way.
pub(crate) struct Running {
    live: Arc<Live>,
    record: RecordId,
    end: Arc<Notify>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut runs = self.live.lock();
        // A run that lost its lease may have a successor in this very process.
        if runs.get(&self.record).is_some_and(|end| Arc::ptr_eq(end, &self.end)) {
            runs.remove(&self.record);
        }
        drop(runs);
        self.end.notify_waiters();
    }
}
