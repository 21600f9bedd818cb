//! Health of a remote store, which may hang or be unavailable for a while.
//!
//! After a failure, requests fail at once for a short time instead of waiting one after the other. A deletion that was not answered
//! may still be executed later: its object is not put again until that is no longer possible.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};

use super::Digest;
use svc_base::Stopwatch;

/// Time after a failure during which no request is sent.
const FAILURE_BACKOFF: Duration = Duration::from_secs(1);
/// Longest time after which an unanswered deletion may still be executed.
const MAX_DELETION_DELAY: Duration = Duration::from_secs(60);

/// Recent failures and unanswered deletions of a store.
#[derive(Debug, Default)]
pub(super) struct StoreHealth {
    failed: Mutex<Option<Stopwatch>>,
    deleting: Mutex<HashMap<Digest, Stopwatch>>,
}

impl StoreHealth {
    /// Whether the last request failed a moment ago.
    pub(super) fn is_backing_off(&self) -> bool {
        let failed = lock(&self.failed);
        failed
            .as_ref()
            .is_some_and(|it| it.elapsed() < FAILURE_BACKOFF)
    }

    /// Records whether the store has answered; a refusal is an answer.
    pub(super) fn record_answer<T>(&self, answer: &Result<T, Error>) {
        *lock(&self.failed) = match answer {
            Err(error) if is_unavailable(error) => Some(Stopwatch::start()),
            _ => None,
        };
    }

    /// Records deletions that may still be executed.
    pub(super) fn add_pending_deletions(&self, digests: impl IntoIterator<Item = Digest>) {
        let mut deleting = lock(&self.deleting);
        deleting.retain(|_, since| since.elapsed() < MAX_DELETION_DELAY);
        let digests = digests.into_iter();
        deleting.extend(digests.map(|digest| (digest, Stopwatch::start())));
    }

    /// Whether an unanswered deletion of an object may still be executed.
    pub(super) fn may_be_deleted(&self, digest: &Digest) -> bool {
        let deleting = lock(&self.deleting);
        let since = deleting.get(digest);
        since.is_some_and(|since| since.elapsed() < MAX_DELETION_DELAY)
    }
}

/// Whether an error means that the store is unavailable.
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

/// Whether a request that failed with this error may still be executed: it was sent, and not refused.
pub(super) fn may_have_succeeded(error: &Error) -> bool {
    is_unavailable(error) && http_error_kind(error) != Some(HttpErrorKind::Connect)
}

/// Returns the kind of a request's transport error, if it did not fail by its status.
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
