//! Turns of what changes one site at once: each change is made on top of what the one before it has published.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use svc_base::ids::DeploymentId;
use tokio::sync::OwnedMutexGuard;

/// Turn of one site. It is there while a change holds it or waits for it.
type Turn = tokio::sync::Mutex<()>;

/// Turns of the sites that are being changed on this server.
#[derive(Debug, Default)]
pub(in crate::deployments::revisions) struct SiteTurns {
    turns: Mutex<HashMap<DeploymentId, Weak<Turn>>>,
}

impl SiteTurns {
    /// Waits for the turn of a change; the next one has its turn when the guard is dropped.
    pub(super) async fn wait(&self, site: DeploymentId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| turn.strong_count() > 0);
            match turns.get(&site).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    let turn = Arc::new(Turn::default());
                    turns.insert(site, Arc::downgrade(&turn));
                    turn
                }
            }
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn site(n: u8) -> DeploymentId {
        format!("00000000-0000-7000-8000-0000000000{n:02}")
            .parse()
            .unwrap()
    }

    #[tokio::test]
    async fn changes_of_one_site_wait_for_each_other_and_those_of_others_do_not() {
        let turns = SiteTurns::default();
        let first = turns.wait(site(1)).await;
        assert!(turns.wait(site(1)).now_or_never().is_none());
        assert!(turns.wait(site(2)).now_or_never().is_some());
        drop(first);
        assert!(turns.wait(site(1)).now_or_never().is_some());
        turns.wait(site(3)).await;
        assert_eq!(turns.turns.lock().unwrap().len(), 1);
    }
}
