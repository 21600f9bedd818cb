//! Whether a store of other machines is reached. Who comes while it is not does not wait for it again, one after the other.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use object_store::Error;

use svc_base::Stopwatch;

/// How long a store that has not answered as it should is not asked again.
const REST: Duration = Duration::from_secs(1);

/// Memory of a store's last failure.
#[derive(Debug, Default)]
pub(super) struct Reach(Mutex<Option<Stopwatch>>);

impl Reach {
    /// Whether it has failed a moment ago.
    pub(super) fn rests(&self) -> bool {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failed.as_ref().is_some_and(|it| it.elapsed() < REST)
    }

    /// Notes how it has answered; that an object is there or is not is an answer.
    pub(super) fn note<T>(&self, answer: &Result<T, Error>) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *failed = match answer {
            Ok(_) | Err(Error::NotFound { .. } | Error::AlreadyExists { .. }) => None,
            Err(_) => Some(Stopwatch::start()),
        };
    }
}
