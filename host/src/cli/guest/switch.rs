//! `svc guest install|rollback`: what may serve is looked at here, and the server has it serve.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::check::{Report, check_with_replay};
use super::{GuestArgs, GuestDirectories};
use crate::guests::RecordError;
use crate::guests::replay::Differences;
use crate::guests::status::is_server_running;
use crate::operators::{GuestChange, Operation, SwitchEffect, SwitchGuest, SwitchOutcome};
use svc_sandbox::{GuestDigest, World, read_component};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Install {
    /// The component
    file: PathBuf,
    /// Do not try it on everything that is stored first, where it is refused if it fails and the one that serves does not: for emergencies
    #[arg(long)]
    no_replay: bool,
    /// Where what differs goes as files to look at: a folder that is missing or empty [default: it is only counted]
    #[arg(long, conflicts_with = "no_replay")]
    out: Option<PathBuf>,
    #[command(flatten)]
    guest_args: GuestArgs,
}

/// The answer to a change.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    outcome: SwitchOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Report>,
}

impl Install {
    /// Fails where the component does not pass, or the server cannot load it.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (config, directories) = self.guest_args.config_and_directories()?;
        directories.require_same_guests().await?;
        let bytes = Arc::new(read_component(&self.file)?);
        let differences = match self.out {
            _ if self.no_replay => None,
            Some(out) => Some(Differences::in_folder(out)?),
            None => Some(Differences::counted_only()),
        };
        let report = check_with_replay(
            (&config, &directories),
            &self.file,
            Arc::clone(&bytes),
            differences,
        )
        .await?;
        let Some(world) = report.world().filter(|_| report.passed()) else {
            return answer_refused(&self.guest_args, report);
        };
        let from = std::path::absolute(&self.file)?.display().to_string();
        // Here, for the server need not see the file: what it is to read lies in its own directory.
        let folder = directories.folder(world);
        let _held = tokio::task::spawn_blocking(move || folder.store(&bytes)).await??;
        let digest = report.digest();
        let change = GuestChange::Install { digest, from };
        switch_and_answer(
            &self.guest_args,
            &directories,
            (world, change),
            Some(report),
        )
        .await
    }
}

/// Says that a component may not serve, and changes nothing.
fn answer_refused(guest_args: &GuestArgs, report: Report) -> anyhow::Result<ExitCode> {
    let text = format!("{}not installed", report.to_text()?);
    let outcome = SwitchOutcome {
        world: report.world(),
        digest: report.digest(),
        built_in: false,
        previous: None,
        at: None,
        effect: SwitchEffect::Refused,
        failures: report.reasons(),
    };
    let check = Some(report);
    guest_args
        .args
        .print_answer(&Answer { outcome, check }, &text)?;
    Ok(exit_code(SwitchEffect::Refused))
}

pub(super) async fn roll_back(
    world: World,
    from: Option<GuestDigest>,
    guest_args: &GuestArgs,
) -> anyhow::Result<ExitCode> {
    let directories = guest_args.directories()?;
    directories.require_same_guests().await?;
    let Some(top) = directories
        .folder(world)
        .read()?
        .current_guest()
        .map(|top| top.digest)
    else {
        return Err(RecordError::NoPreviousGuest(world).into());
    };
    let from = from.unwrap_or(top);
    switch_and_answer(
        guest_args,
        &directories,
        (world, GuestChange::RollBack { from }),
        None,
    )
    .await
}

/// Has the change made, and says what came of it.
async fn switch_and_answer(
    guest_args: &GuestArgs,
    directories: &GuestDirectories,
    (world, change): (World, GuestChange),
    check: Option<Report>,
) -> anyhow::Result<ExitCode> {
    let guests = std::path::absolute(&directories.guests)?;
    let switch = SwitchGuest {
        guests,
        world,
        change,
    };
    let answer = directories.run_operation(Operation::Guest(switch)).await?;
    let mut outcome: SwitchOutcome = serde_json::from_str(&answer.document)?;
    if outcome.effect == SwitchEffect::NextStart && is_server_running(&directories.data)? {
        // A server that takes no commands yet, or no more.
        outcome.effect = SwitchEffect::Pending;
    }
    let (text, effect) = (describe_switch(&outcome, world), outcome.effect);
    guest_args
        .args
        .print_answer(&Answer { outcome, check }, &text)?;
    Ok(exit_code(effect))
}

fn exit_code(effect: SwitchEffect) -> ExitCode {
    match effect {
        SwitchEffect::Switched | SwitchEffect::NextStart => ExitCode::SUCCESS,
        SwitchEffect::Failed | SwitchEffect::Refused => ExitCode::FAILURE,
        SwitchEffect::Pending => ExitCode::from(2),
    }
}

/// Writes the answer for people.
fn describe_switch(answer: &SwitchOutcome, world: World) -> String {
    let which = if answer.built_in {
        "the built-in guest".to_owned()
    } else {
        format!("guest {}", answer.digest)
    };
    let why = answer.failures.join("; ");
    let told = match answer.effect {
        SwitchEffect::Switched => format!("{world}: {which} serves"),
        SwitchEffect::NextStart => {
            format!("{world}: {which} serves from the next start on; no server runs")
        }
        SwitchEffect::Pending => {
            format!(
                "{world}: {which} was chosen, and the server has not said yet that it serves: see `svc guest status`"
            )
        }
        SwitchEffect::Refused => return format!("{world}: not rolled back: {why}"),
        SwitchEffect::Failed => return format!("{world}: {which} does not serve: {why}"),
    };
    if why.is_empty() {
        told
    } else {
        format!("{told}; {why}")
    }
}
