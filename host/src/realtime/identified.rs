//! Sockets that show who is signed in: each is closed soon after its session ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::control;
use crate::http::websocket::{Close, Outbox};
use crate::visitors::{Session, Visitors};

/// Sockets by their numbers.
type Sockets = HashMap<u64, (Arc<Session>, Arc<Outbox>)>;

/// All sockets of rooms that were opened with a session.
#[derive(Debug, Default)]
pub(super) struct IdentifiedSockets {
    sockets: Mutex<Sockets>,
    next: AtomicU64,
}

/// A socket among them, until it is dropped.
#[derive(Debug)]
pub(super) struct SocketRegistration {
    all: Arc<IdentifiedSockets>,
    number: u64,
}

impl IdentifiedSockets {
    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a socket that was opened with a session.
    pub(super) fn add(
        self: &Arc<Self>,
        session: Arc<Session>,
        outbox: &Arc<Outbox>,
    ) -> SocketRegistration {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, (session, Arc::clone(outbox)));
        SocketRegistration {
            all: Arc::clone(self),
            number,
        }
    }

    /// Closes the sockets whose session is over.
    ///
    /// # Errors
    /// The database's; the other sockets are looked at nevertheless.
    pub(super) async fn close_ended(&self, visitors: &Visitors) -> Result<(), control::Error> {
        let sockets: Vec<_> = self.lock().values().cloned().collect();
        let mut looked = Ok(());
        for (session, outbox) in sockets {
            match visitors.is_live(&session).await {
                Ok(true) => {}
                Ok(false) => outbox.close(Close::SIGNED_OUT),
                Err(error) => looked = Err(error),
            }
        }
        looked
    }
}

impl Drop for SocketRegistration {
    fn drop(&mut self) {
        self.all.lock().remove(&self.number);
    }
}
