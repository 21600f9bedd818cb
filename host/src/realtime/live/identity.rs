//! Identity of a listener: a session, looked at when a connection is opened and from then on, until it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::visitors::{Identity, Session};

/// A sign-in that a connection was opened with.
#[derive(Debug)]
pub(super) struct SignIn {
    pub(super) session: Arc<Session>,
    identity: Arc<Identity>,
    over: AtomicBool,
}

impl SignIn {
    /// The sign-in of a session.
    pub(super) fn for_session(session: Arc<Session>) -> Self {
        Self {
            identity: Arc::new(session.identity()),
            session,
            over: AtomicBool::new(false),
        }
    }

    /// Returns the visitor who is signed in, until the session is over.
    pub(super) fn visitor(&self) -> Option<Arc<Identity>> {
        (!self.has_ended()).then(|| Arc::clone(&self.identity))
    }

    /// Whether it is over.
    pub(super) fn has_ended(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Ends it for this connection.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
