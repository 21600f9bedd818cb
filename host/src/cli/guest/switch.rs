//! `svc guest install|rollback`: the component is checked here, and the server switches to it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::check::{ComponentReport, check_with_replay};
use super::{GuestArgs, GuestDirectories};
use crate::guests::GuestRecordError;
use crate::guests::replay::DifferencesFolder;
use crate::guests::status::is_server_running;
use crate::operators::{
    GuestChange, GuestChangeEffect, GuestChangeOutcome, Operation, SwitchGuest,
};
use svc_sandbox::{GuestDigest, World, read_component};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct InstallGuestCommand {
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

/// Answer to an installation or a rollback.
#[derive(Debug, Serialize)]
struct GuestSwitchAnswer {
    #[serde(flatten)]
    outcome: GuestChangeOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<ComponentReport>,
}

impl InstallGuestCommand {
    /// Runs the command. It fails if the component is refused, or the server cannot load it.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (config, directories) = self.guest_args.config_and_directories()?;
        directories.require_same_guests().await?;
        let bytes = Arc::new(read_component(&self.file)?);
        let differences = match self.out {
            _ if self.no_replay => None,
            Some(out) => Some(DifferencesFolder::in_folder(out)?),
            None => Some(DifferencesFolder::counted_only()),
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
        // The component is copied first, because the server may not be able to read the user's file.
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

/// Prints why a component is refused; nothing is changed.
fn answer_refused(guest_args: &GuestArgs, report: ComponentReport) -> anyhow::Result<ExitCode> {
    let text = format!("{}not installed", report.to_text()?);
    let outcome = GuestChangeOutcome {
        world: report.world(),
        digest: report.digest(),
        built_in: false,
        previous: None,
        at: None,
        effect: GuestChangeEffect::Refused,
        failures: report.reasons(),
    };
    let check = Some(report);
    guest_args
        .args
        .print_answer(&GuestSwitchAnswer { outcome, check }, &text)?;
    Ok(exit_code(GuestChangeEffect::Refused))
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
        return Err(GuestRecordError::NoPreviousGuest(world).into());
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

/// Makes the change and prints its effect.
async fn switch_and_answer(
    guest_args: &GuestArgs,
    directories: &GuestDirectories,
    (world, change): (World, GuestChange),
    check: Option<ComponentReport>,
) -> anyhow::Result<ExitCode> {
    let guests = std::path::absolute(&directories.guests)?;
    let switch = SwitchGuest {
        guests,
        world,
        change,
    };
    let answer = directories.run_operation(Operation::Guest(switch)).await?;
    let mut outcome: GuestChangeOutcome = serde_json::from_str(&answer.document)?;
    if outcome.effect == GuestChangeEffect::NextStart && is_server_running(&directories.data)? {
        // A server that does not take commands: it is starting or stopping.
        outcome.effect = GuestChangeEffect::Pending;
    }
    let (text, effect) = (describe_switch(&outcome, world), outcome.effect);
    guest_args
        .args
        .print_answer(&GuestSwitchAnswer { outcome, check }, &text)?;
    Ok(exit_code(effect))
}

fn exit_code(effect: GuestChangeEffect) -> ExitCode {
    match effect {
        GuestChangeEffect::Switched | GuestChangeEffect::NextStart => ExitCode::SUCCESS,
        GuestChangeEffect::Failed | GuestChangeEffect::Refused => ExitCode::FAILURE,
        GuestChangeEffect::Pending => ExitCode::from(2),
    }
}

/// Formats the answer for people.
fn describe_switch(answer: &GuestChangeOutcome, world: World) -> String {
    let which = if answer.built_in {
        "the built-in guest".to_owned()
    } else {
        format!("guest {}", answer.digest)
    };
    let why = answer.failures.join("; ");
    let told = match answer.effect {
        GuestChangeEffect::Switched => format!("{world}: {which} serves"),
        GuestChangeEffect::NextStart => {
            format!("{world}: {which} serves from the next start on; no server runs")
        }
        GuestChangeEffect::Pending => {
            format!(
                "{world}: {which} was chosen, and the server has not said yet that it serves: see `svc guest status`"
            )
        }
        GuestChangeEffect::Refused => return format!("{world}: not rolled back: {why}"),
        GuestChangeEffect::Failed => return format!("{world}: {which} does not serve: {why}"),
    };
    if why.is_empty() {
        told
    } else {
        format!("{told}; {why}")
    }
}
