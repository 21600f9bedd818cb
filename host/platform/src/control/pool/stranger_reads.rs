//! Reads of clients without a credential, counted by network. All callers share few readers, first come, first served: without a
//! bound, one client's requests would stand before those of everybody.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use svc_base::CountsByKey;
use svc_base::flow::CallerFlow;

use crate::control::Error;

/// Maximum number of reads of a network that are under way. It is about the number of connections that a client may have, so that
/// only one who sends many requests at once on most of them meets it.
pub(super) const MAX_READS: u64 = 1_024;

/// Counts of the reads under way.
#[derive(Debug, Default)]
pub(super) struct StrangerReads(Mutex<CountsByKey<IpAddr>>);

/// A counted read, until this is dropped.
#[derive(Debug)]
pub(super) struct CountedRead {
    reads: Arc<StrangerReads>,
    network: IpAddr,
}

impl StrangerReads {
    fn counts(&self) -> MutexGuard<'_, CountsByKey<IpAddr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a read of a caller; `None` for owners, who have buckets, and for the server.
    ///
    /// # Errors
    /// [`Error::TooManyReads`].
    pub(super) fn admit(
        self: &Arc<Self>,
        caller: &CallerFlow,
    ) -> Result<Option<CountedRead>, Error> {
        let (CallerFlow::Stranger(network) | CallerFlow::Preview(network)) = caller else {
            return Ok(None);
        };
        let mut counts = self.counts();
        if counts.count(network) >= MAX_READS {
            return Err(Error::TooManyReads);
        }
        counts.increment(*network);
        drop(counts);
        Ok(Some(CountedRead {
            reads: Arc::clone(self),
            network: *network,
        }))
    }
}

impl Drop for CountedRead {
    fn drop(&mut self) {
        self.reads.counts().decrement(&self.network);
    }
}
