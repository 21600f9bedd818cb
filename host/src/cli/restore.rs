//! `svc restore`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use url::Url;

use super::OperatorArgs;
use super::backup::write_copy_counts;
use super::progress::TerminalProgressBar;
use crate::backup::{self, BackupRestoreOutcome, BucketSource};
use crate::config::LedgerUrl;
use svc_base::clock::Clock;

#[derive(Debug, clap::Args)]
pub(super) struct RestoreCommand {
    /// The directory of a backup
    #[arg(required_unless_present = "from")]
    dir: Option<PathBuf>,
    /// The bucket of a cluster, in place of a backup: s3://bucket/prefix, or file:///srv/shared
    #[arg(long, value_name = "URL", conflicts_with = "dir")]
    from: Option<Url>,
    /// The cluster's ledger, for everything that was acknowledged; without it the newest copies in the bucket
    #[arg(
        long,
        value_name = "URL",
        env = "SVC_CLUSTER_LEDGER",
        hide_env_values = true
    )]
    ledger: Option<LedgerUrl>,
    #[command(flatten)]
    args: OperatorArgs,
}

impl RestoreCommand {
    /// Runs the command. It fails if the backup is incomplete, and nothing has changed then; or if a part of a cluster is missing, and
    /// the rest is restored.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (clock, progress) = (Clock::system(), TerminalProgressBar::new());
        let watch = |stage, done, all| progress.show_stage(stage, done, all);
        let data = self.args.data();
        if data.exists() {
            self.args.restrict_permissions(&data)?;
        }
        let Some(dir) = &self.dir else {
            let Some(bucket) = self.from else {
                bail!("name the directory of a backup, or a bucket with --from");
            };
            let ledger = self.ledger.filter(|url| !url.as_str().is_empty());
            let source = BucketSource {
                url: bucket,
                ledger: ledger.as_ref(),
            };
            let restored = Box::pin(backup::restore_from(source, &data, &clock, &watch)).await?;
            drop(progress);
            self.args.print_answer(&restored, &restored.text())?;
            return Ok(exit_code(restored.errors.is_empty()));
        };
        let restored = backup::restore(dir, &data, &clock, &watch).await?;
        drop(progress);
        self.args.print_answer(&restored, &summary(&restored)?)?;
        Ok(exit_code(restored.restored))
    }
}

fn exit_code(is_whole: bool) -> ExitCode {
    match is_whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn summary(restored: &BackupRestoreOutcome) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    if restored.restored {
        writeln!(text, "everything is as it was at {}", restored.moment)?;
    }
    write_copy_counts(
        &mut text,
        &restored.databases,
        &restored.content,
        &restored.guests,
    )?;
    if let Some(before) = &restored.before {
        writeln!(
            text,
            "what was there before is in {before}, in the data directory"
        )?;
    }
    for error in &restored.errors {
        writeln!(text, "error: {error}")?;
    }
    for note in &restored.notes {
        writeln!(text, "note: {note}")?;
    }
    if !restored.restored {
        writeln!(text, "nothing was restored: the backup is damaged")?;
    }
    Ok(text)
}
