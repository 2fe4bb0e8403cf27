//! A connection while it is asked, and what becomes of it when nobody waits for the answer any more.

use std::ops::{Deref, DerefMut};

use deadpool_postgres::{Client, Object};
use tokio_postgres::NoTls;

/// A connection of the pool. Unless it is given back it never goes there again: whoever asked was dropped, and what it
/// asked (to wait for a lock, say) may go on, with everything that is asked next on that connection behind it.
pub(crate) struct Lent(Option<Client>);

impl Lent {
    pub(crate) fn new(client: Client) -> Self {
        Self(Some(client))
    }

    /// To the pool: nothing that was asked goes on.
    pub(crate) fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Deref for Lent {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.as_ref().expect("it is there until it is given back")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Client {
        self.0.as_mut().expect("it is there until it is given back")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(client) = self.0.take() else { return };
        let token = Object::take(client).cancel_token();
        // Outside of a runtime nobody asks any more. A server that takes no connection without TLS refuses this, and
        // then the statement ends by itself: those that may wait for a lock have a limit.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { token.cancel_query(NoTls).await });
        }
    }
}
