//! Copies sessions into the table `svc_payments` of the project's own database, in the order in which they changed.
//!
//! The table is written first, and its position is recorded after that: a crash between the two writes the same rows
//! again, which changes nothing. Each backend has its own mirror, so that a busy or full one does not delay the others.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Payments;
use super::model::{Session, Status};
use super::store::{self, LaggingMirror};
use crate::backends::Backends;
use crate::control::Control;
use svc_base::clock::Clock;
use svc_base::fault;
use svc_base::ids::BackendId;
use svc_database::PaymentRow;

/// Number of rows that one transaction writes.
const BATCH_ROWS: u32 = 500;
/// Longest delay before a failed mirror is tried again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// State of all mirrors.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<MirrorState>);

#[derive(Debug, Default)]
struct MirrorState {
    /// Backends whose mirror is being written.
    busy: HashSet<BackendId>,
    /// Backends whose mirror could not be written.
    behind: HashMap<BackendId, RetryState>,
}

#[derive(Clone, Copy, Debug)]
struct RetryState {
    wait: Duration,
    /// Time of the next attempt, by the clock's count since its start.
    again: Duration,
}

impl Mirrors {
    fn state(&self) -> MutexGuard<'_, MirrorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims a backend, unless its mirror is being written or its retry is not due yet.
    fn claim(&self, backend: BackendId, now: Duration) -> bool {
        let mut state = self.state();
        let rests = state
            .behind
            .get(&backend)
            .is_some_and(|one| one.again > now);
        !rests && state.busy.insert(backend)
    }

    fn release(&self, backend: BackendId, has_failed: bool, now: Duration) {
        let mut state = self.state();
        state.busy.remove(&backend);
        if has_failed {
            let before = state.behind.get(&backend).map(|one| one.wait);
            let wait = before.map_or(FIRST_RETRY_DELAY, |wait| (wait * 2).min(MAX_RETRY_DELAY));
            let again = now + wait;
            state.behind.insert(backend, RetryState { wait, again });
        } else {
            state.behind.remove(&backend);
        }
    }
}

impl Payments {
    /// Writes all tables that lack rows, each in its own task. Runs several times a second.
    pub async fn update_mirrors(&self, backends: &Arc<Backends>) -> anyhow::Result<()> {
        let lagging = self.infra.control.read(store::lagging_mirrors).await?;
        // A mirror that lacks nothing, or whose backend is deleted, is not behind.
        let lags = |backend: &BackendId| lagging.iter().any(|one| one.backend == *backend);
        self.mirrors
            .state()
            .behind
            .retain(|backend, _| lags(backend));
        backends.retain_lags(lags);
        for one in lagging {
            if !self.mirrors.claim(one.backend, self.infra.clock.elapsed()) {
                continue;
            }
            let (mirrors, control) = (Arc::clone(&self.mirrors), self.infra.control.clone());
            let (backends, clock): (_, Clock) = (Arc::clone(backends), self.infra.clock.clone());
            tokio::spawn(async move {
                let backend = one.backend;
                let failed = update_mirror(&control, &backends, one).await.err();
                let failed = failed.map(|error| {
                    tracing::warn!(%backend, error = format!("{error:#}"), "svc_payments is behind");
                    error.to_string()
                });
                let has_failed = failed.is_some();
                backends.note_lag(backend, failed);
                mirrors.release(backend, has_failed, clock.elapsed());
            });
        }
        Ok(())
    }
}

/// Writes the missing rows of a mirror.
async fn update_mirror(
    control: &Control,
    backends: &Backends,
    mut lagging: LaggingMirror,
) -> anyhow::Result<()> {
    loop {
        let (project, position) = (lagging.project, lagging.position);
        let most = position.map(|_| BATCH_ROWS);
        let found = control
            .read(move |c| store::sessions_changed_since(c, &project, position.unwrap_or(0), most))
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

impl From<Session> for PaymentRow {
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
