//! `svc backup`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;

use super::OperatorArgs;
use super::actor::current_actor_name;
use super::progress::TerminalProgressBar;
use crate::backup::{self, BackupOutcome, CopyStats, last};
use crate::control::ControlDatabase;
use crate::operators::{self, MakeBackup, Operation, OperationProgressSink};
use svc_base::clock::Clock;

#[derive(Debug, clap::Args)]
pub(super) struct BackupCommand {
    /// Where the backup goes: a new directory, or that of an earlier backup, which it takes the place of
    dir: PathBuf,
    #[command(flatten)]
    args: OperatorArgs,
}

impl BackupCommand {
    /// Runs the command. It fails if the copy is incomplete; the earlier backup stays then.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let data = self.args.installation()?;
        operators::check_one_machine(&data)?;
        let directory = std::path::absolute(&self.dir)?;
        let progress = Arc::new(TerminalProgressBar::new());
        let shown = Arc::clone(&progress);
        let watch = OperationProgressSink::new(move |step| {
            shown.show_stage(step.stage, step.done, step.all);
        });
        let wanted = Operation::Backup(MakeBackup {
            directory: directory.clone(),
        });
        let made =
            match operators::run_on_server(&data, &wanted, &current_actor_name(), &watch).await? {
                Some(answer) => serde_json::from_str(&answer.document)?,
                None => back_up_offline(&data, &directory, &progress).await?,
            };
        drop((watch, progress));
        self.args.print_answer(&made, &summary(&made)?)?;
        Ok(if made.complete {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Makes a backup without a running server.
async fn back_up_offline(
    data: &Path,
    directory: &Path,
    progress: &TerminalProgressBar,
) -> anyhow::Result<BackupOutcome> {
    super::raise_file_limit();
    let clock = Clock::system();
    let control =
        ControlDatabase::open(data).with_context(|| format!("opening {}", data.display()))?;
    let watch = |stage, done, all| progress.show_stage(stage, done, all);
    let made = backup::make((data, &control), None, directory, &clock, &watch).await;
    if let Err(error) = last::record(data, directory, made.as_ref().ok(), clock.now()) {
        super::print_note(&format!("`svc status` does not know of this: {error}"));
    }
    made
}

fn summary(made: &BackupOutcome) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    if made.complete {
        writeln!(text, "everything as it was at {}", made.moment)?;
    }
    write_copy_counts(&mut text, &made.databases, &made.content, &made.guests)?;
    if made.one_time_left_out > 0 {
        writeln!(
            text,
            "{} one-time shares are left out",
            made.one_time_left_out
        )?;
    }
    for error in &made.errors {
        writeln!(text, "error: {error}")?;
    }
    for note in &made.notes {
        writeln!(text, "note: {note}")?;
    }
    if !made.complete {
        writeln!(text, "no backup was made: the copy is damaged")?;
    }
    Ok(text)
}

/// Writes how many files and bytes were copied.
pub(super) fn write_copy_counts(
    text: &mut String,
    databases: &CopyStats,
    content: &CopyStats,
    guests: &CopyStats,
) -> std::fmt::Result {
    let parts = [
        ("databases", databases),
        ("objects", content),
        ("guests", guests),
    ];
    for (name, copied) in parts {
        writeln!(
            text,
            "{} {name}, {} bytes; copied {}, {} bytes",
            copied.files, copied.bytes, copied.copied_files, copied.copied_bytes
        )?;
    }
    Ok(())
}
