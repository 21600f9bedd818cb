//! Turns of the checks that owners ask for: so many at once, and fewer of each owner, so that names which DNS answers slowly keep only
//! their own owner waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use svc_base::ids::WorkspaceId;

/// Most checks at once, and most of an owner.
const MAX_CHECKS: usize = 32;
const MAX_OF_OWNER: usize = 4;

/// The turns of all owners.
#[derive(Debug)]
pub(super) struct CheckTurns {
    all: Arc<Semaphore>,
    /// Those of owners who check something now.
    owners: Mutex<HashMap<WorkspaceId, Arc<Semaphore>>>,
}

/// The turn of a check; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct CheckTurn {
    _of_owner: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for CheckTurns {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_CHECKS)),
            owners: Mutex::default(),
        }
    }
}

impl CheckTurns {
    /// Waits for the turn of an owner's check.
    pub(super) async fn take(&self, owner: WorkspaceId) -> CheckTurn {
        let of_owner = self.turns_of(owner).acquire_owned().await;
        let of_all = Arc::clone(&self.all).acquire_owned().await;
        // No semaphore is ever closed, so there is an error in neither.
        CheckTurn {
            _of_owner: of_owner.ok(),
            _of_all: of_all.ok(),
        }
    }

    fn turns_of(&self, owner: WorkspaceId) -> Arc<Semaphore> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // Each turn holds its semaphore, and each wait for one.
        owners.retain(|_, turns| Arc::strong_count(turns) > 1);
        let turns = owners.entry(owner);
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(MAX_OF_OWNER))))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use svc_base::clock::{Clock, Timestamp};
    use svc_base::random::Random;

    use super::*;

    #[test]
    fn an_owner_waits_for_their_own_checks_alone() {
        let (clock, random) = (Clock::manual(Timestamp(0)), Random::system());
        let [one, other] = [0, 1].map(|_| WorkspaceId::new(&clock, &random).unwrap());
        let turns = CheckTurns::default();
        let take = |owner| turns.take(owner).now_or_never();
        let mut held: Vec<_> = (0..MAX_OF_OWNER).map(|_| take(one).unwrap()).collect();
        assert!(take(one).is_none());
        drop(take(other).unwrap());
        held.pop();
        held.push(take(one).unwrap());
        assert!(take(one).is_none());
        drop(held);
        drop(take(other).unwrap());
        assert_eq!(
            turns.owners.lock().unwrap().len(),
            1,
            "others are forgotten"
        );
    }
}
