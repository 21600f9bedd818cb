//! Content that the operator has blocked, by the SHA-256 of its bytes: in memory, so that no view asks the database.

mod problems;
mod store;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::Serialize;

use crate::content::Digest;
use crate::control::{self, ControlChange, ControlDatabase, Tx};
use svc_base::clock::Timestamp;

/// Length from which a text is hashed on a thread that may block, in bytes.
const LARGE_BYTES: usize = 256 << 10;
/// Number of digests that says that they were not read yet.
const UNKNOWN: usize = usize::MAX;

/// Content that is blocked, and was to be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operator has blocked {digest}")]
pub struct ContentBlocked {
    /// Digest of the content.
    pub digest: Digest,
    /// Path of the file, where it is one of a site.
    pub path: Option<String>,
}

/// Content that the operator has blocked, as operators list it.
#[derive(Clone, Debug, Serialize)]
pub struct BlockedContentEntry {
    /// Digest of the content.
    pub sha256: String,
    /// Reason in the operator's words.
    pub note: Option<String>,
    /// When it was blocked.
    pub blocked_at: Timestamp,
}

/// Digests of all blocked content. Clones share it.
#[derive(Clone, Debug)]
pub struct BlockedContent {
    control: ControlDatabase,
    /// It follows changes, so that the control database holds it, and it does not hold the control database.
    state: Arc<BlockedState>,
}

#[derive(Debug)]
struct BlockedState {
    /// Number of digests, for those who need not look at them.
    count: AtomicUsize,
    digests: RwLock<BlockedDigests>,
}

#[derive(Debug, Default)]
struct BlockedDigests {
    all: HashSet<Digest>,
    /// Number of changes that were followed: what was read before one of them is old.
    changes: u64,
}

impl BlockedContent {
    /// Makes the list, which follows the changes of `control` from now on. Nothing is read yet.
    pub fn following(control: &ControlDatabase) -> Self {
        let state = Arc::new(BlockedState {
            count: AtomicUsize::new(UNKNOWN),
            digests: RwLock::default(),
        });
        let held = Arc::clone(&state);
        control.on_change(move |change| held.follow(change));
        Self {
            control: control.clone(),
            state,
        }
    }

    /// Reads the list, once. This comes before any load of content that is shown.
    ///
    /// # Errors
    /// The database's.
    pub async fn load(&self) -> Result<(), control::Error> {
        let state = &self.state;
        while state.count.load(Ordering::Acquire) == UNKNOWN {
            let seen = state.read().changes;
            let found = self.control.read(store::digests).await?;
            let mut digests = state.write();
            if digests.changes == seen {
                state.count.store(found.len(), Ordering::Release);
                digests.all = found;
            }
        }
        Ok(())
    }

    /// Whether nothing is blocked.
    pub fn is_empty(&self) -> bool {
        self.state.count.load(Ordering::Acquire) == 0
    }

    /// Returns the first of these digests that is blocked.
    pub fn find<'d>(&self, digests: impl IntoIterator<Item = &'d Digest>) -> Option<Digest> {
        if self.is_empty() {
            return None;
        }
        let blocked = self.state.read();
        let mut digests = digests.into_iter();
        digests
            .find(|digest| blocked.all.contains(*digest))
            .copied()
    }

    /// Refuses content that is blocked.
    ///
    /// # Errors
    /// [`ContentBlocked`].
    pub fn check<'d>(
        &self,
        digests: impl IntoIterator<Item = &'d Digest>,
    ) -> Result<(), ContentBlocked> {
        match self.find(digests) {
            None => Ok(()),
            Some(digest) => Err(ContentBlocked { digest, path: None }),
        }
    }

    /// Returns the digest of a text, if that is blocked. Where nothing is, no text is hashed.
    ///
    /// # Errors
    /// The database's.
    pub async fn find_text(&self, text: &str) -> Result<Option<Digest>, control::Error> {
        self.load().await?;
        if self.is_empty() {
            return Ok(None);
        }
        let digest = match text.len() < LARGE_BYTES {
            true => Digest::of(text.as_bytes()),
            false => {
                let text = text.to_owned();
                let hashing = tokio::task::spawn_blocking(move || Digest::of(text.as_bytes()));
                hashing.await.map_err(|_| control::Error::Closed)?
            }
        };
        Ok(self.find([&digest]))
    }
}

impl BlockedState {
    fn follow(&self, change: &ControlChange) {
        let (digest, is_blocked) = match change {
            ControlChange::ContentBlocked(digest) => (Digest::from_bytes(*digest), true),
            ControlChange::ContentAllowed(digest) => (Digest::from_bytes(*digest), false),
            ControlChange::Slug(_)
            | ControlChange::Origin(_)
            | ControlChange::BackendCreated(..)
            | ControlChange::BackendEnded(_)
            | ControlChange::RealtimeOff(_)
            | ControlChange::ActionsDefined(_)
            | ControlChange::ActionJudged(_)
            | ControlChange::SessionEnded(_)
            | ControlChange::SessionsEnded(_)
            | ControlChange::DomainServed { .. }
            | ControlChange::DomainEnded(_) => return,
        };
        let mut digests = self.write();
        digests.changes += 1;
        match is_blocked {
            true => digests.all.insert(digest),
            false => digests.all.remove(&digest),
        };
        if self.count.load(Ordering::Acquire) != UNKNOWN {
            self.count.store(digests.all.len(), Ordering::Release);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BlockedDigests> {
        self.digests.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BlockedDigests> {
        self.digests.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Blocks content in a transaction, or notes another reason for what is blocked.
pub(super) fn block(
    tx: &Tx<'_>,
    digest: &Digest,
    note: Option<&str>,
    now: Timestamp,
) -> Result<(), control::Error> {
    store::insert(tx, digest, note, now)?;
    tx.note(ControlChange::ContentBlocked(*digest.as_bytes()));
    Ok(())
}

/// Allows content again in a transaction; returns whether it was blocked.
pub(super) fn unblock(tx: &Tx<'_>, digest: &Digest) -> Result<bool, control::Error> {
    let was_blocked = store::delete(tx, digest)?;
    tx.note(ControlChange::ContentAllowed(*digest.as_bytes()));
    Ok(was_blocked)
}

/// Lists all blocked content, newest first.
///
/// # Errors
/// The database's.
pub async fn list(control: &ControlDatabase) -> Result<Vec<BlockedContentEntry>, control::Error> {
    control.read(store::list).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_list_is_read_once_and_follows_changes() {
        let directory = tempfile::tempdir().unwrap();
        let control = ControlDatabase::open(directory.path()).unwrap();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        let put = |digest: Digest| {
            let put = control.write(move |tx| block(tx, &digest, Some("why"), Timestamp(1)));
            async move { put.await.unwrap() }
        };
        put(one).await;
        let blocked = BlockedContent::following(&control);
        blocked.load().await.unwrap();
        assert_eq!(blocked.find([&two, &one]), Some(one));
        assert_eq!(blocked.find([&two]), None);
        put(two).await;
        assert!(blocked.check([&two]).is_err());
        assert_eq!(blocked.find_text("two").await.unwrap(), Some(two));
        assert_eq!(list(&control).await.unwrap().len(), 2);
        for digest in [one, two] {
            let allowed = control.write(move |tx| unblock(tx, &digest));
            assert!(allowed.await.unwrap());
        }
        assert!(blocked.is_empty());
        assert!(blocked.check([&one, &two]).is_ok());
        let again = control.write(move |tx| unblock(tx, &one));
        assert!(!again.await.unwrap());
    }
}
