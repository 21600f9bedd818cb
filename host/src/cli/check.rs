//! `svc check`.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::Operate;
use crate::backends;
use crate::backends::database::Files;
use crate::content::{Content, OnceFiles};
use crate::deployments::operate;

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    #[command(flatten)]
    operate: Operate,
}

impl Check {
    /// Fails when something is wrong; leftovers of a crash are not, because the server collects them.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let control = self.operate.control()?;
        let data = self.operate.data();
        let content = Content::open(&data.join("content"))?;
        let once = OnceFiles::open(&data.join("once"))?;
        let mut found = operate::check(&control, &content, &once).await?;
        let files = Files::open(&data.join("backends"))?;
        let backends = backends::check::check(&control, &files).await?;
        found.errors.extend(backends.errors);
        found.leftovers.extend(backends.leftovers);
        let mut text = format!(
            "{} deployments, {} objects, {} bytes in use\n",
            found.deployments, found.objects, found.bytes
        );
        for error in &found.errors {
            writeln!(text, "error: {error}")?;
        }
        for leftover in &found.leftovers {
            writeln!(text, "leftover: {leftover}")?;
        }
        writeln!(
            text,
            "{}",
            if found.errors.is_empty() {
                "ok"
            } else {
                "damaged"
            }
        )?;
        self.operate.answer(&found, &text)?;
        Ok(if found.errors.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
