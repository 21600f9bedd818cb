//! Copies sessions into the table `svc_payments` of the project's own database, in the order in which they changed.
//!
//! The table is written first, and its position is recorded after that: a crash between the two writes the same rows
//! again, which changes nothing. Each backend has its own mirror, so that a busy or full one does not delay the others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Payments;
use super::model::{CheckoutSession, Status};
use super::store::{self, LaggingPaymentMirror};
use crate::backends::Backends;
use crate::control::{ControlDatabase, ErrandWork, Error, Tx};
use svc_base::fault;
use svc_base::ids::{BackendId, ProjectId};
use svc_database::PaymentMirrorRow;

/// Number of rows that one transaction writes.
const BATCH_ROWS: u32 = 500;

impl Payments {
    /// Writes all tables that lack rows, each in its own task. Runs several times a second.
    pub async fn update_mirrors(&self, backends: &Arc<Backends>) -> anyhow::Result<()> {
        let lagging = self.infra.control.read(store::lagging_mirrors).await?;
        // A mirror that lacks nothing, or whose backend is deleted, is not behind.
        backends.retain_lags(|backend| lagging.iter().any(|one| one.backend == *backend));
        for one in lagging {
            // Of several nodes one writes it.
            if !backends.is_responsible(one.backend) || !backends.claim_mirror(one.backend) {
                continue;
            }
            let (backends, control) = (Arc::clone(backends), self.infra.control.clone());
            tokio::spawn(async move {
                let backend = one.backend;
                let failed = update_mirror(&control, &backends, one).await.err();
                let failed = failed.map(|error| {
                    tracing::warn!(%backend, error = format!("{error:#}"), "svc_payments is behind");
                    error.to_string()
                });
                backends.release_mirror(backend, failed);
            });
        }
        Ok(())
    }
}

/// Errand: a mirror has the changes up to this position.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MirrorPosition {
    pub project: ProjectId,
    pub backend: BackendId,
    pub position: i64,
    /// Number of the latest request to rebuild it.
    pub asked: i64,
}

impl ErrandWork for MirrorPosition {
    const KIND: &'static str = "mirror_position";
    type Answer = ();

    fn perform(self, tx: &Tx<'_>) -> Result<(), Error> {
        store::set_position(tx, &self)
    }
}

/// Writes the missing rows of a mirror.
async fn update_mirror(
    control: &ControlDatabase,
    backends: &Backends,
    mut lagging: LaggingPaymentMirror,
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
        let followed = MirrorPosition {
            project,
            backend: lagging.backend,
            position: reached,
            asked: lagging.asked,
        };
        // The next rows are read from there, so it is waited for.
        control.run_errand(followed).await?;
        fault::point("mirror.noted");
        if !more {
            return Ok(());
        }
        lagging.position = Some(reached);
    }
}

impl From<CheckoutSession> for PaymentMirrorRow {
    fn from(session: CheckoutSession) -> Self {
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
