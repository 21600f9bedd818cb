//! Reach of a store of other machines, which may hang or be away for a while.
//!
//! Who comes then does not wait for it, one after the other. And a deletion that was never answered may be done at any time
//! after: what it is of is not put until it is too late for that.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::Digest;
use svc_base::Stopwatch;

/// How long a store that has not answered as it should is not asked again.
const BACKOFF: Duration = Duration::from_secs(1);
/// How long a deletion may be under way that was never answered.
const MAX_DELETION_DELAY: Duration = Duration::from_secs(60);

/// Memory of what a store has not answered.
#[derive(Debug, Default)]
pub(super) struct StoreHealth {
    failed: Mutex<Option<Stopwatch>>,
    deleting: Mutex<HashMap<Digest, Stopwatch>>,
}

impl StoreHealth {
    /// Whether it has failed a moment ago.
    pub(super) fn is_backing_off(&self) -> bool {
        let failed = lock(&self.failed);
        failed.as_ref().is_some_and(|it| it.elapsed() < BACKOFF)
    }

    /// Notes whether it has answered; that it refuses something is an answer.
    pub(super) fn record_answer<T>(&self, answer: &Result<T, Error>) {
        *lock(&self.failed) = match answer {
            Err(error) if is_unavailable(error) => Some(Stopwatch::start()),
            _ => None,
        };
    }

    /// Notes deletions that may be done yet.
    pub(super) fn add_pending_deletions(&self, digests: impl IntoIterator<Item = Digest>) {
        let mut deleting = lock(&self.deleting);
        deleting.retain(|_, since| since.elapsed() < MAX_DELETION_DELAY);
        let digests = digests.into_iter();
        deleting.extend(digests.map(|digest| (digest, Stopwatch::start())));
    }

    /// Whether a deletion of an object that has failed may be done yet.
    pub(super) fn may_be_deleted(&self, digest: &Digest) -> bool {
        let deleting = lock(&self.deleting);
        let since = deleting.get(digest);
        since.is_some_and(|since| since.elapsed() < MAX_DELETION_DELAY)
    }
}

/// Whether an error says that the store does not answer, or not as it should.
fn is_unavailable(error: &Error) -> bool {
    match error {
        Error::NotFound { .. }
        | Error::AlreadyExists { .. }
        | Error::Precondition { .. }
        | Error::NotModified { .. }
        | Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. } => false,
        error => http_error_kind(error) != Some(HttpErrorKind::Decode),
    }
}

/// Whether what was asked for with this error may be done yet: it was sent, and not refused.
pub(super) fn may_have_succeeded(error: &Error) -> bool {
    is_unavailable(error) && http_error_kind(error) != Some(HttpErrorKind::Connect)
}

/// Kind of what has gone wrong with a request, if it was not a status that said so.
fn http_error_kind(error: &Error) -> Option<HttpErrorKind> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
