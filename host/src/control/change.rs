//! Changes that memory follows: noted in the transaction, delivered once it is durable and before its caller is answered.

use std::sync::{PoisonError, RwLock};

use svc_base::ids::{BackendId, ProjectId};

/// A change that whoever keeps something in memory must follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A slug answers something else from now on, or nothing.
    Slug(String),
    /// A backend is no more.
    BackendEnded(BackendId),
    /// Nobody may be in the rooms of a backend any more.
    RealtimeOff(BackendId),
    /// A visitor's session has ended; it is named by the SHA-256 of its token.
    SessionEnded([u8; 32]),
    /// Sessions of visitors of a project have ended, some or all.
    SessionsEnded(ProjectId),
}

type ChangeListener = Box<dyn Fn(&Change) + Send + Sync>;

/// Followers of changes, in the order in which they came.
#[derive(Default)]
pub(super) struct ChangeListeners(RwLock<Vec<ChangeListener>>);

impl ChangeListeners {
    pub(super) fn add(&self, listener: impl Fn(&Change) + Send + Sync + 'static) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(listener));
    }

    pub(super) fn deliver(&self, changes: &[Change]) {
        let listeners = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            listeners.iter().for_each(|follow| follow(change));
        }
    }
}

impl std::fmt::Debug for ChangeListeners {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeListeners").finish_non_exhaustive()
    }
}
