//! `svc payments rebuild|events`.

use std::process::ExitCode;

use anyhow::Context as _;
use serde::Serialize;

use super::Operate;
use super::table::table;
use crate::clock::{Clock, Timestamp};
use crate::control::Control;
use crate::ids::{ProjectId, SessionId};
use crate::overview;
use crate::payments;
use crate::stripe::Fact;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Payments {
    /// Derive all that is said of a project's payments anew from the ledger of events
    Rebuild {
        /// Its id, or the first part of its origin
        project: String,
        #[command(flatten)]
        operate: Operate,
    },
    /// List what the payment provider has said about a project's payments, in the order in which it arrived
    Events {
        /// Its id, or the first part of its origin
        project: String,
        #[command(flatten)]
        operate: Operate,
    },
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Rebuilt {
    project: ProjectId,
    /// How many sessions the project has.
    sessions: usize,
    /// How many of them said something else before.
    changed: usize,
}

/// An event of the ledger.
#[derive(Debug, Serialize)]
struct Told {
    session: SessionId,
    id: String,
    #[serde(rename = "type")]
    kind: String,
    /// When it happened, by the provider's clock.
    at: Timestamp,
    received_at: Timestamp,
    fact: Fact,
}

impl Payments {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Rebuild { project, operate } => rebuild(&operate, &project).await,
            Self::Events { project, operate } => events(&operate, &project).await,
        }
    }
}

async fn rebuild(operate: &Operate, named: &str) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let project = project(&control, named).await?;
    let now = Clock::system().now();
    let (sessions, changed) = payments::Payments::rebuild(&control, project, now).await?;
    let command = format!("payments rebuild {project}");
    operate.note(&control, command).await;
    let rebuilt = Rebuilt {
        project,
        sessions,
        changed,
    };
    let text = format!("{sessions} sessions, {changed} of which said something else before");
    operate.answer(&rebuilt, &text)
}

async fn events(operate: &Operate, named: &str) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let project = project(&control, named).await?;
    let found = payments::Payments::events(&control, project).await?;
    let events = found.into_iter().map(|(session, entry)| Told {
        session,
        id: entry.event.id,
        kind: entry.event.kind,
        at: entry.event.at,
        received_at: entry.received_at,
        fact: entry.event.fact,
    });
    let events: Vec<Told> = events.collect();
    let rows = events.iter().map(|event| {
        [
            event.received_at.to_string(),
            event.at.to_string(),
            event.kind.clone(),
            event.session.to_string(),
            // What a provider wrote must not steer the terminal.
            event.id.escape_debug().to_string(),
        ]
    });
    let text = table(["received", "happened", "type", "session", "id"], rows);
    operate.answer(&serde_json::json!({ "events": events }), &text)
}

async fn project(control: &Control, named: &str) -> anyhow::Result<ProjectId> {
    let projects = overview::projects(control, Clock::system().now(), None).await?;
    let mut projects = projects.into_iter();
    let found = projects.find(|one| one.id.to_string() == named || one.host_label == named);
    let found = found
        .with_context(|| format!("there is no project `{named}`: name its id or its label"))?;
    Ok(found.id)
}
