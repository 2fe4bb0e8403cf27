//! Waiting for a place.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use relent_core::{Refusal, concurrency::REFUSAL};

use super::{
    Permit, Shared,
    queue::{Left, Ticket},
};
use crate::sync::Arc;

/// The future of [`Concurrency::acquire`](super::Concurrency::acquire).
///
/// # Panics
///
/// If it is polled after it has given its output.
///
/// # Cancellation safety
///
/// Dropping it leaves the queue; a place that it was given and did not take up goes to the next.
#[must_use = "it waits only while it is polled"]
pub struct Acquire<'a> {
    shared: &'a Arc<Shared>,
    progress: Progress,
}

enum Progress {
    NotAsked,
    InLine(Ticket),
    Over,
}

impl<'a> Acquire<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>) -> Self {
        Self { shared, progress: Progress::NotAsked }
    }

    #[inline]
    fn permit(&mut self) -> Poll<Result<Permit<'a>, Refusal>> {
        self.progress = Progress::Over;
        Poll::Ready(Ok(Permit { shared: self.shared }))
    }

    fn refused(&mut self) -> Poll<Result<Permit<'a>, Refusal>> {
        self.progress = Progress::Over;
        Poll::Ready(Err(REFUSAL))
    }

    /// Takes a place or a ticket. Under the lock, so that nobody who leaves can miss the ticket: either it sees
    /// the flag and waits for the lock, or its place is seen here.
    #[cold]
    fn join(&mut self, cx: &Context<'_>) -> Poll<Result<Permit<'a>, Refusal>> {
        let mut queue = self.shared.queue();
        let queue_is_full = self.shared.is_queue_full();
        let stepped = self.shared.step(|state| match state.enter() {
            None if queue_is_full || state.is_awaited() => None,
            None => Some(state.awaited()),
            entered => entered,
        });
        match stepped {
            Some(state) if !state.is_awaited() => {
                drop(queue);
                self.permit()
            }
            None if queue_is_full => {
                drop(queue);
                self.refused()
            }
            Some(_) | None => {
                self.progress = Progress::InLine(queue.join(cx.waker().clone()));
                self.shared.note_waiting(&queue);
                Poll::Pending
            }
        }
    }

    fn take_up(&mut self, ticket: Ticket, cx: &Context<'_>) -> Poll<Result<Permit<'a>, Refusal>> {
        let mut queue = self.shared.queue();
        if queue.take_up(ticket) {
            drop(queue);
            return self.permit();
        }
        let replaced = queue.watch(ticket, cx.waker());
        drop(queue);
        drop(replaced);
        Poll::Pending
    }

    #[cold]
    fn give_up(&mut self, ticket: Ticket) {
        let mut queue = self.shared.queue();
        let left = queue.leave(ticket);
        self.shared.note_waiting(&queue);
        drop(queue);
        match left {
            Some(Left::Granted) => self.shared.leave(),
            Some(Left::Waiting(waker)) => drop(waker),
            None => {}
        }
    }
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<Permit<'a>, Refusal>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.progress {
            Progress::NotAsked if self.shared.enter() => self.permit(),
            Progress::NotAsked if self.shared.is_queue_full() => self.refused(),
            Progress::NotAsked => self.join(cx),
            Progress::InLine(ticket) => self.take_up(ticket, cx),
            Progress::Over => panic!("polled after it has given its output"),
        }
    }
}

impl Drop for Acquire<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Progress::InLine(ticket) = self.progress {
            self.give_up(ticket);
        }
    }
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let progress = match self.progress {
            Progress::NotAsked => "not_asked",
            Progress::InLine(_) => "in_line",
            Progress::Over => "over",
        };
        f.debug_struct("Acquire").field("progress", &progress).finish_non_exhaustive()
    }
}
