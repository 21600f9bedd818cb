//! `svc restore`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use super::OperatorArgs;
use super::backup::write_copy_counts;
use super::progress::TerminalProgressBar;
use crate::backup::{self, BackupRestoreOutcome};
use svc_base::clock::Clock;

#[derive(Debug, clap::Args)]
pub(super) struct RestoreCommand {
    /// The directory of a backup
    dir: PathBuf,
    #[command(flatten)]
    args: OperatorArgs,
}

impl RestoreCommand {
    /// Runs the command. It fails if the backup is incomplete; nothing has changed then.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (clock, progress) = (Clock::system(), TerminalProgressBar::new());
        let watch = |stage, done, all| progress.show_stage(stage, done, all);
        let data = self.args.data();
        if data.exists() {
            self.args.restrict_permissions(&data)?;
        }
        let restored = backup::restore(&self.dir, &data, &clock, &watch).await?;
        drop(progress);
        self.args.print_answer(&restored, &summary(&restored)?)?;
        Ok(if restored.restored {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
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
