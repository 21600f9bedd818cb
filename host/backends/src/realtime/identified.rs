//! Sockets that show a signed-in visitor: each is closed soon after its session ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::control;
use crate::http::websocket::{CloseReason, Outbox};
use crate::visitors::{VisitorSession, Visitors};

/// Sockets by number.
type SocketsByNumber = HashMap<u64, (Arc<VisitorSession>, Arc<Outbox>)>;

/// All sockets in rooms that were opened with a session.
#[derive(Debug, Default)]
pub(super) struct SessionSockets {
    sockets: Mutex<SocketsByNumber>,
    next: AtomicU64,
}

/// Registration of one such socket, until it is dropped.
#[derive(Debug)]
pub(super) struct SocketRegistration {
    all: Arc<SessionSockets>,
    number: u64,
}

impl SessionSockets {
    fn lock(&self) -> MutexGuard<'_, SocketsByNumber> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a socket that was opened with a session.
    pub(super) fn add(
        self: &Arc<Self>,
        session: Arc<VisitorSession>,
        outbox: &Arc<Outbox>,
    ) -> SocketRegistration {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.lock().insert(number, (session, Arc::clone(outbox)));
        SocketRegistration {
            all: Arc::clone(self),
            number,
        }
    }

    /// Closes the sockets whose session has ended.
    ///
    /// # Errors
    /// Errors of the database; the other sockets are checked nevertheless.
    pub(super) async fn close_ended(&self, visitors: &Visitors) -> Result<(), control::Error> {
        let sockets: Vec<_> = self.lock().values().cloned().collect();
        let mut looked = Ok(());
        for (session, outbox) in sockets {
            match visitors.is_live(&session).await {
                Ok(true) => {}
                Ok(false) => outbox.close(CloseReason::SIGNED_OUT),
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
