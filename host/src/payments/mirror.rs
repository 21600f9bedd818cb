//! The table `svc_payments` in a project's own database follows the sessions here, in the order in which they changed.
//!
//! The table is written first, and how far it follows is noted after that: a crash between the two writes the same rows
//! again, which changes nothing. Each backend is followed on its own, so that one that is busy or full keeps no other waiting.

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

/// How many rows are written in one transaction.
const BATCH_ROWS: u32 = 500;
/// The longest wait before a table that could not be written is tried again.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);

/// State of the mirrors that are being followed.
#[derive(Debug, Default)]
pub(super) struct Mirrors(Mutex<MirrorState>);

#[derive(Debug, Default)]
struct MirrorState {
    /// Those that are being written.
    busy: HashSet<BackendId>,
    /// Those that could not be.
    behind: HashMap<BackendId, RetryState>,
}

#[derive(Clone, Debug)]
struct RetryState {
    why: String,
    wait: Duration,
    /// By the clock's count since it was made.
    again: Duration,
}

impl Mirrors {
    fn state(&self) -> MutexGuard<'_, MirrorState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a backend, if nobody has it and it is not to be left alone for a while.
    fn claim(&self, backend: BackendId, now: Duration) -> bool {
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
                let wait = before.map_or(FIRST_RETRY_DELAY, |wait| (wait * 2).min(MAX_RETRY_DELAY));
                let again = now + wait;
                state
                    .behind
                    .insert(backend, RetryState { why, wait, again });
            }
        }
    }
}

impl Payments {
    /// Says why the table of a backend is behind, if it is.
    pub fn mirror_delay_reason_fn(
        &self,
    ) -> impl Fn(BackendId) -> Option<String> + Send + Sync + use<> {
        let mirrors = Arc::clone(&self.mirrors);
        move |backend| Some(mirrors.state().behind.get(&backend)?.why.clone())
    }

    /// Has every table that lacks something written, each in a task of its own. Runs several times a second.
    pub async fn update_mirrors(&self, backends: &Arc<Backends>) -> anyhow::Result<()> {
        let lagging = self.control.read(store::lagging_mirrors).await?;
        {
            // What lags no more, as where its backend is gone, is not behind.
            let mut state = self.mirrors.state();
            state
                .behind
                .retain(|backend, _| lagging.iter().any(|one| one.backend == *backend));
        }
        for one in lagging {
            if !self.mirrors.claim(one.backend, self.clock.elapsed()) {
                continue;
            }
            let (mirrors, control) = (Arc::clone(&self.mirrors), self.control.clone());
            let (backends, clock): (_, Clock) = (Arc::clone(backends), self.clock.clone());
            tokio::spawn(async move {
                let backend = one.backend;
                let failed = update_mirror(&control, &backends, one).await.err();
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

/// Writes what a table lacks.
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
