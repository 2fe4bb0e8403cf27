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
    wait: Wait,
}

/// How far a wait for a place has come, as plain data: [`Shared::give_up`] leaves the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    NotAsked,
    InLine(Ticket),
    Over,
}

impl<'a> Acquire<'a> {
    pub(super) fn new(shared: &'a Arc<Shared>) -> Self {
        Self { shared, wait: Wait::NotAsked }
    }
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<Permit<'a>, Refusal>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = self.shared;
        shared.poll_enter(&mut self.wait, cx).map_ok(|()| Permit { shared })
    }
}

impl Drop for Acquire<'_> {
    #[inline]
    fn drop(&mut self) {
        self.shared.give_up(self.wait);
    }
}

impl Shared {
    #[inline]
    pub(super) fn poll_enter(&self, wait: &mut Wait, cx: &Context<'_>) -> Poll<Result<(), Refusal>> {
        let entered = match *wait {
            Wait::NotAsked if self.enter() => Ok(()),
            Wait::NotAsked if self.is_queue_full() => Err(REFUSAL),
            Wait::NotAsked => match self.join(cx) {
                Joined::Entered => Ok(()),
                Joined::Refused => Err(REFUSAL),
                Joined::InLine(ticket) => {
                    *wait = Wait::InLine(ticket);
                    return Poll::Pending;
                }
            },
            Wait::InLine(ticket) if self.take_up(ticket, cx) => Ok(()),
            Wait::InLine(_) => return Poll::Pending,
            Wait::Over => panic!("polled after it has given its output"),
        };
        *wait = Wait::Over;
        Poll::Ready(entered)
    }

    #[inline]
    pub(super) fn give_up(&self, wait: Wait) {
        if let Wait::InLine(ticket) = wait {
            self.leave_line(ticket);
        }
    }

    /// Takes a place or a ticket. Under the lock, so that nobody who leaves can miss the ticket: either it sees
    /// the flag and waits for the lock, or its place is seen here.
    #[cold]
    fn join(&self, cx: &Context<'_>) -> Joined {
        let mut queue = self.queue();
        let queue_is_full = self.is_queue_full();
        let stepped = self.step(|state| match state.enter() {
            None if queue_is_full || state.is_awaited() => None,
            None => Some(state.awaited()),
            entered => entered,
        });
        match stepped {
            Some(state) if !state.is_awaited() => Joined::Entered,
            None if queue_is_full => Joined::Refused,
            Some(_) | None => {
                let ticket = queue.join(cx.waker().clone());
                self.note_waiting(&queue);
                Joined::InLine(ticket)
            }
        }
    }

    /// Whether the ticket has been given a place; if not, the waker is woken when it is.
    fn take_up(&self, ticket: Ticket, cx: &Context<'_>) -> bool {
        let mut queue = self.queue();
        if queue.take_up(ticket) {
            return true;
        }
        let replaced = queue.watch(ticket, cx.waker());
        drop(queue);
        drop(replaced);
        false
    }

    #[cold]
    fn leave_line(&self, ticket: Ticket) {
        let mut queue = self.queue();
        let left = queue.leave(ticket);
        self.note_waiting(&queue);
        drop(queue);
        match left {
            Some(Left::Granted) => self.leave(),
            Some(Left::Waiting(waker)) => drop(waker),
            None => {}
        }
    }
}

/// What came of asking under the lock.
enum Joined {
    Entered,
    Refused,
    InLine(Ticket),
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("wait", &self.wait).finish_non_exhaustive()
    }
}
