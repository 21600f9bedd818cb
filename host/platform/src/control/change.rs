//! Changes that caches in memory follow: noted in the transaction, delivered once it is durable and before its caller is answered.

use std::sync::{PoisonError, RwLock};

use svc_base::ids::{BackendId, ProjectId};

/// A change after which state in memory must be updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlChange {
    /// The content of a slug changed, or the slug ended.
    Slug(String),
    /// A backend was deleted.
    BackendEnded(BackendId),
    /// Realtime was switched off for a backend: its rooms are closed.
    RealtimeOff(BackendId),
    /// A visitor's session ended, given by the SHA-256 of its token.
    SessionEnded([u8; 32]),
    /// Some or all sessions of a project's visitors ended.
    SessionsEnded(ProjectId),
}

type ChangeListener = Box<dyn Fn(&ControlChange) + Send + Sync>;

/// Listeners to changes, in the order of their registration.
#[derive(Default)]
pub(super) struct NotedChangeListeners(RwLock<Vec<ChangeListener>>);

impl NotedChangeListeners {
    pub(super) fn add(&self, listener: impl Fn(&ControlChange) + Send + Sync + 'static) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(listener));
    }

    pub(super) fn deliver(&self, changes: &[ControlChange]) {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            listeners.iter().for_each(|follow| follow(change));
        }
    }
}

impl std::fmt::Debug for NotedChangeListeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotedChangeListeners")
            .finish_non_exhaustive()
    }
}
