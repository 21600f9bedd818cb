//! `svc payments rebuild|events`.

use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use crate::payments;
use crate::stripe::EventFact;
use crate::terminal::table;
use svc_base::clock::Timestamp;
use svc_base::ids::{ProjectId, SessionId};

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PaymentsOperation {
    /// Derive all that is said of a project's payments anew from the ledger of events
    Rebuild {
        /// Id of the project, or the first part of its origin
        project: String,
    },
    /// List what the payment provider has said about a project's payments, in the order in which it arrived
    Events {
        /// Id of the project, or the first part of its origin
        project: String,
    },
}

/// Result of a rebuild.
#[derive(Debug, Serialize)]
struct LedgerRebuildResult {
    project: ProjectId,
    /// Number of the project's sessions.
    sessions: usize,
    /// Number of sessions whose state changed.
    changed: usize,
}

/// An event of the ledger.
#[derive(Debug, Serialize)]
struct LedgerProviderEvent {
    session: SessionId,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    /// Time of the event by the provider's clock.
    at: Timestamp,
    received_at: Timestamp,
    fact: EventFact,
}

impl PaymentsOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::Rebuild { project } => rebuild(at, &project).await,
            Self::Events { project } => events(at, &project).await,
        }
    }
}

async fn rebuild(at: &Installation, named: &str) -> anyhow::Result<OperationAnswer> {
    let (project, now) = (at.project(named).await?, at.clock.now());
    let (sessions, changed) = payments::Payments::rebuild(&at.control, project, now).await?;
    let rebuilt = LedgerRebuildResult {
        project,
        sessions,
        changed,
    };
    let text = format!("{sessions} sessions, {changed} of which said something else before");
    let answer = OperationAnswer::new(&rebuilt, text)?;
    Ok(answer.logged_as(format!("payments rebuild {project}")))
}

async fn events(at: &Installation, named: &str) -> anyhow::Result<OperationAnswer> {
    let project = at.project(named).await?;
    let found = payments::Payments::events(&at.control, project).await?;
    let events = found
        .into_iter()
        .map(|(session, entry)| LedgerProviderEvent {
            session,
            id: entry.event.id,
            kind: entry.event.kind,
            at: entry.event.at,
            received_at: entry.received_at,
            fact: entry.event.fact,
        });
    let events: Vec<LedgerProviderEvent> = events.collect();
    let rows = events.iter().map(|event| {
        [
            event.received_at.to_string(),
            event.at.to_string(),
            event.kind.clone(),
            event.session.to_string(),
            // Escaped: text of a provider must not control the terminal.
            event.id.escape_debug().to_string(),
        ]
    });
    let text = table(["received", "happened", "type", "session", "id"], rows);
    OperationAnswer::new(&serde_json::json!({ "events": events }), text)
}
