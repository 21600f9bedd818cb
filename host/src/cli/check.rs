//! `svc check`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use super::OperatorArgs;
use super::actor::current_actor_name;
use super::progress::TerminalProgressBar;
use crate::backup::{self, BackupStage};
use crate::check::{InstallationStores, StoreCheckFindings};
use crate::content::{ContentLocation, ContentStore, OneTimeFileDirectory};
use crate::data_dir;
use crate::operators::{self, CheckInstallation, Operation, OperationProgressSink};
use crate::permissions;
use svc_database::DatabasesDirectory;

#[derive(Debug, clap::Args)]
pub(super) struct CheckCommand {
    #[command(flatten)]
    args: OperatorArgs,
}

impl CheckCommand {
    /// Checks a data directory or a backup.
    async fn findings(&self) -> anyhow::Result<StoreCheckFindings> {
        let data = self.args.data();
        let progress = Arc::new(TerminalProgressBar::new());
        let shown = Arc::clone(&progress);
        let show = move |done, all| shown.show_stage(BackupStage::Check, done, all);
        if backup::is_backup(&data) {
            return backup::verify(&data, show).await;
        }
        // Modes are noted before they are corrected, as every command corrects them.
        let open = match data_dir::is_installation(&data) {
            true => permissions::describe_exposure(&data, &data_dir::DATA_DIRECTORY_LAYOUT)?,
            false => None,
        };
        let data = self.args.installation()?;
        operators::check_one_machine(&data)?;
        let wanted = Operation::Check(CheckInstallation {});
        let mut found: StoreCheckFindings = match operators::run_on_server(
            &data,
            &wanted,
            &current_actor_name(),
            &OperationProgressSink::new(move |step| show(step.done, step.all)),
        )
        .await?
        {
            Some(answer) => serde_json::from_str(&answer.document)?,
            None => self.check_offline(&data, &progress).await?,
        };
        found
            .errors
            .extend(open.map(|open| format!("{open}; it is closed to them now")));
        Ok(found)
    }

    /// Checks a data directory that no server uses.
    async fn check_offline(
        &self,
        data: &Path,
        progress: &TerminalProgressBar,
    ) -> anyhow::Result<StoreCheckFindings> {
        let parts = InstallationStores {
            control: self.args.control()?,
            content: ContentStore::open(
                &ContentLocation::read_recorded(data)?.require_directory()?,
            )?,
            once: Some(OneTimeFileDirectory::open(&data.join("once"))?),
            files: DatabasesDirectory::open(&data.join("backends"))?,
        };
        let show = |done, all| progress.show_stage(BackupStage::Check, done, all);
        parts.check(show).await
    }

    /// Runs the command. It fails if something is wrong; leftovers of a crash are no errors, because the server removes them.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let found = self.findings().await?;
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
        for note in &found.notes {
            writeln!(text, "note: {note}")?;
        }
        writeln!(
            text,
            "{}",
            if found.errors.is_empty() {
                "ok"
            } else {
                "not ok"
            }
        )?;
        self.args.print_answer(&found, &text)?;
        Ok(if found.errors.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}
