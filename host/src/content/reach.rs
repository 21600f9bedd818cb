//! Reach of a store of other machines, which may hang or be away for a while.
//!
//! Who comes then does not wait for it, one after the other. And a deletion that was never answered may be done at any time
//! after: what it is of is not put until it is too late for that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use object_store::Error;

use super::Digest;
use svc_base::Stopwatch;

/// How long a store that has not answered as it should is not asked again.
const REST: Duration = Duration::from_secs(1);
/// How long a deletion may be under way that was never answered.
const LATE: Duration = Duration::from_secs(60);

/// Memory of what a store has not answered.
#[derive(Debug, Default)]
pub(super) struct Reach {
    failed: Mutex<Option<Stopwatch>>,
    deleting: Mutex<HashMap<Digest, Stopwatch>>,
}

impl Reach {
    /// Whether it has failed a moment ago.
    pub(super) fn rests(&self) -> bool {
        let failed = held(&self.failed);
        failed.as_ref().is_some_and(|it| it.elapsed() < REST)
    }

    /// Notes how it has answered; that an object is there or is not is an answer.
    pub(super) fn note<T>(&self, answer: &Result<T, Error>) {
        *held(&self.failed) = match answer {
            Ok(_) | Err(Error::NotFound { .. }) => None,
            Err(_) => Some(Stopwatch::start()),
        };
    }

    /// Notes that the deletion of an object has failed, and may be done yet.
    pub(super) fn left_deleting(&self, digest: Digest) {
        let mut deleting = held(&self.deleting);
        deleting.retain(|_, since| since.elapsed() < LATE);
        deleting.insert(digest, Stopwatch::start());
    }

    /// Whether a deletion of an object that has failed may be done yet.
    pub(super) fn may_delete(&self, digest: &Digest) -> bool {
        let deleting = held(&self.deleting);
        let since = deleting.get(digest);
        since.is_some_and(|since| since.elapsed() < LATE)
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
