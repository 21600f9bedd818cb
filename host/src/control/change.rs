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

type Follower = Box<dyn Fn(&Change) + Send + Sync>;

/// Followers of changes, in the order in which they came.
#[derive(Default)]
pub(super) struct Followers(RwLock<Vec<Follower>>);

impl Followers {
    pub(super) fn add(&self, follower: impl Fn(&Change) + Send + Sync + 'static) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(follower));
    }

    pub(super) fn deliver(&self, changes: &[Change]) {
        let followers = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            followers.iter().for_each(|follow| follow(change));
        }
    }
}

impl std::fmt::Debug for Followers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Followers").finish_non_exhaustive()
    }
}
