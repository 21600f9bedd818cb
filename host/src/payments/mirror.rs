//! Copies sessions into the table `svc_payments` of the project's own database, in the order in which they changed.
//!
//! The table is written first, and its position is recorded after that: a crash between the two writes the same rows
//! again, which changes nothing. Each backend has its own mirror, so that a busy or full one does not delay the others.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Payments;
use super::model::{Session, Status};
use super::store::{self, Lagging};
use crate::backends::Backends;
use crate::control::Control;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_database::Payment;

/// Number of rows that one transaction writes.
const ROWS: u32 = 500;
/// Longest delay before a failed mirror is tried again.
const WAIT_MOST: Duration = Duration::from_secs(5);
const WAIT_FIRST: Duration = Duration::from_millis(500);

/// State of all mirrors.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Backends whose mirror is being written.
    busy: HashSet<BackendId>,
    /// Backends whose mirror could not be written.
    behind: HashMap<BackendId, Behind>,
}

#[derive(Clone, Debug)]
struct Behind {
    why: String,
    wait: Duration,
    /// Time of the next attempt, by the clock's count since its start.
    again: Duration,
}

impl Mirrors {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a backend, unless its mirror is being written or its retry is not due yet.
    fn take(&self, backend: BackendId, now: Duration) -> bool {
        let mut state = self.state();
        let rests = state
            .behind
            .get(&backend)
            .is_some_and(|one| one.again > now);
        !rests && state.busy.insert(backend)
    }

    fn release(&self, backend: BackendId, failed: Option<String>, now: Duration) {
        let mut state = self.state();
        state.busy.remove(&backend);
        match failed {
            None => {
                state.behind.remove(&backend);
            }
            Some(why) => {
                let before = state.behind.get(&backend).map(|one| one.wait);
                let wait = before.map_or(WAIT_FIRST, |wait| (wait * 2).min(WAIT_MOST));
                let again = now + wait;
                state.behind.insert(backend, Behind { why, wait, again });
            }
        }
    }
}

impl Payments {
    /// Returns a function that tells why the mirror of a backend is behind, if it is.
    pub fn what_is_behind(&self) -> impl Fn(BackendId) -> Option<String> + Send + Sync + use<> {
        let mirrors = Arc::clone(&self.mirrors);
        move |backend| Some(mirrors.state().behind.get(&backend)?.why.clone())
    }

    /// Updates every mirror that is behind, each in a task of its own. Runs several times a second.
    pub async fn follow(&self, backends: &Arc<Backends>) -> anyhow::Result<()> {
        let lagging = self.control.read(store::lagging).await?;
        {
            // A mirror that is up to date, or whose backend is gone, is no longer behind.
            let mut state = self.mirrors.state();
            state
                .behind
                .retain(|backend, _| lagging.iter().any(|one| one.backend == *backend));
        }
        for one in lagging {
            if !self.mirrors.take(one.backend, self.clock.elapsed()) {
                continue;
            }
            let (mirrors, control) = (Arc::clone(&self.mirrors), self.control.clone());
            let (backends, clock): (_, Clock) = (Arc::clone(backends), self.clock.clone());
            tokio::spawn(async move {
                let backend = one.backend;
                let failed = bring_up(&control, &backends, one).await.err();
                let failed = failed.map(|error| {
                    tracing::warn!(%backend, error = format!("{error:#}"), "svc_payments is behind");
                    error.to_string()
                });
                mirrors.release(backend, failed, clock.elapsed());
            });
        }
        Ok(())
    }
}

/// Writes the missing rows of a mirror.
async fn bring_up(
    control: &Control,
    backends: &Backends,
    mut lagging: Lagging,
) -> anyhow::Result<()> {
    loop {
        let (project, position) = (lagging.project, lagging.position);
        let most = position.map(|_| ROWS);
        let found = control
            .read(move |c| store::changed(c, &project, position.unwrap_or(0), most))
            .await?;
        let more = most.is_some_and(|most| found.len() >= most as usize);
        let last = found.last().map_or(0, |(change, _)| *change);
        let reached = if more {
            last
        } else {
            last.max(lagging.changes)
        };
        let rows = found.into_iter().map(|(_, session)| session.into());
        backends
            .mirror(lagging.backend, rows.collect(), position.is_none())
            .await?;
        fault::point("mirror.written");
        let followed = lagging.clone();
        control
            .write(move |tx| store::set_position(tx, &followed, reached))
            .await?;
        fault::point("mirror.noted");
        if !more {
            return Ok(());
        }
        lagging.position = Some(reached);
    }
}

impl From<Session> for Payment {
    fn from(session: Session) -> Self {
        Self {
            session_id: session.id.to_string(),
            price_id: session.price,
            price_label: session.price_label,
            amount: session.amount,
            currency: session.currency,
            user_id: session.user_id,
            email: session.email,
            status: Status::as_str(session.status).to_owned(),
            created_at: session.created_at,
        }
    }
}
