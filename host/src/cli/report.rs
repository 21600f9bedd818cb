//! `svc report list|close`.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use super::Operate;
use super::actor::deed;
use crate::clock::Clock;
use crate::deployments::reports;
use crate::ids::ReportId;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Report {
    /// List the reports that are open, newest first
    List {
        /// Those that were closed, too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        operate: Operate,
    },
    /// Close a report: it is listed no more
    Close {
        /// The report's id
        id: String,
        #[command(flatten)]
        operate: Operate,
    },
}

impl Report {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List { all, operate } => list(&operate, all).await,
            Self::Close { id, operate } => close(&operate, &id).await,
        }
    }
}

async fn list(operate: &Operate, all: bool) -> anyhow::Result<ExitCode> {
    let reports = reports::list(&operate.control()?, all).await?;
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
        for (name, said) in [("details", &report.details), ("contact", &report.contact)] {
            if let Some(said) = said {
                // What a stranger wrote must not steer the terminal.
                writeln!(text, "    {name}: {}", said.escape_debug())?;
            }
        }
    }
    operate.answer(&serde_json::json!({ "reports": reports }), &text)
}

async fn close(operate: &Operate, id: &str) -> anyhow::Result<ExitCode> {
    let control = operate.control()?;
    let none = || format!("there is no report `{id}`: `svc report list` has their ids");
    let report: ReportId = id.parse().ok().with_context(none)?;
    let now = Clock::system().now();
    let closed_at = reports::close(&control, report, now, deed(format!("report close {id}")))
        .await?
        .with_context(none)?;
    let document = serde_json::json!({ "id": report, "closed_at": closed_at });
    operate.answer(&document, &format!("closed {id}"))
}
