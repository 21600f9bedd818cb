//! `svc report list`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::Operate;
use crate::deployments::reports;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Report {
    /// List the reports, newest first
    List {
        #[command(flatten)]
        operate: Operate,
    },
}

impl Report {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self::List { operate } = self;
        let reports = reports::list(&operate.control()?).await?;
        let mut text = String::new();
        for report in &reports {
            writeln!(
                text,
                "{}  {}  {}  {}",
                report.created_at, report.reason, report.slug, report.id
            )?;
            for (name, said) in [("details", &report.details), ("contact", &report.contact)] {
                if let Some(said) = said {
                    // What a stranger wrote must not steer the terminal.
                    writeln!(text, "    {name}: {}", said.escape_debug())?;
                }
            }
        }
        operate.answer(&serde_json::json!({ "reports": reports }), &text)
    }
}
