//! The signed-in visitor of a connection, until the session ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::visitors::{ActionCallerIdentity, VisitorSession};

/// Session with which a connection was opened.
#[derive(Debug)]
pub(super) struct ConnectionSession {
    pub(super) session: Arc<VisitorSession>,
    identity: Arc<ActionCallerIdentity>,
    over: AtomicBool,
}

impl ConnectionSession {
    pub(super) fn for_session(session: Arc<VisitorSession>) -> Self {
        Self {
            identity: Arc::new(session.identity()),
            session,
            over: AtomicBool::new(false),
        }
    }

    /// Returns the identity of the visitor, until the session ends.
    pub(super) fn visitor(&self) -> Option<Arc<ActionCallerIdentity>> {
        (!self.has_ended()).then(|| Arc::clone(&self.identity))
    }

    /// Whether the session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Marks the session as ended.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
