//! `svc report list|close`.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

use super::installation::{Installation, OperationAnswer};
use crate::deployments::reports;
use svc_base::ids::ReportId;

#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportOperation {
    /// List the reports that are open, newest first
    List {
        /// Those that were closed, too
        #[arg(long)]
        all: bool,
    },
    /// Close a report: it is listed no more
    Close {
        /// The report's id
        id: String,
    },
}

impl ReportOperation {
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        match self {
            Self::List { all } => list(at, all).await,
            Self::Close { id } => close(at, &id).await,
        }
    }
}

async fn list(at: &Installation, all: bool) -> anyhow::Result<OperationAnswer> {
    let reports = reports::list(&at.control, all).await?;
    let mut text = String::new();
    for report in &reports {
        write!(
            text,
            "{}  {}  {}  {}",
            report.created_at, report.reason, report.slug, report.id
        )?;
        match report.closed_at {
            Some(at) => writeln!(text, "  closed {at}")?,
            None => writeln!(text)?,
        }
        for (name, said) in [
            ("path", &report.path),
            ("details", &report.details),
            ("contact", &report.contact),
        ] {
            if let Some(said) = said {
                // Escaped: text of a stranger must not control the terminal.
                writeln!(text, "    {name}: {}", said.escape_debug())?;
            }
        }
    }
    OperationAnswer::new(&serde_json::json!({ "reports": reports }), text)
}

async fn close(at: &Installation, id: &str) -> anyhow::Result<OperationAnswer> {
    let none = || format!("there is no report `{id}`: `svc report list` has their ids");
    let report: ReportId = id.parse().ok().with_context(none)?;
    let closed_at = reports::close(&at.control, report, at.clock.now())
        .await?
        .with_context(none)?;
    let document = serde_json::json!({ "id": report, "closed_at": closed_at });
    let answer = OperationAnswer::new(&document, format!("closed {id}"))?;
    Ok(answer.logged_as(format!("report close {id}")))
}
