//! `svc guest install|rollback`: what serves is changed, and the server seen to follow.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use serde::Serialize;

use super::check::{Report, examine};
use super::{LOOK, Place};
use crate::clock::{Clock, Timestamp};
use crate::config::Config;
use crate::guests::status::{self, is_served};
use crate::guests::{Folder, Record, RecordError};
use crate::sandbox::{GuestDigest, World, built_in, read};

/// How often the server is looked at: ten seconds. It needs one at most, where the component is compiled.
const LOOKS: u32 = 200;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Install {
    /// The component
    file: PathBuf,
    /// Try it on everything that is stored first, and refuse it if it fails where the one that serves does not
    #[arg(long)]
    replay: bool,
    #[command(flatten)]
    place: Place,
}

/// What the server did about a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    /// It serves.
    Switched,
    /// The server cannot load it; what served goes on.
    Failed(Vec<String>),
    /// The server has not said yet.
    Pending,
    /// No server runs: from the next start on.
    NextStart,
}

/// The answer to a change.
#[derive(Debug, Serialize)]
struct Switched {
    world: World,
    /// Who is to serve.
    digest: GuestDigest,
    /// Whether that is the guest which this program carries.
    built_in: bool,
    /// Who served before.
    previous: GuestDigest,
    at: Timestamp,
    effect: Effect,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Report>,
}

impl Install {
    /// Fails where the component does not pass, or the server cannot load it.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        super::super::keep_private();
        let config = self.place.settings()?;
        let bytes = Arc::new(read(&self.file)?);
        let report = examine(&config, &self.file, Arc::clone(&bytes), self.replay, None).await?;
        let Some(world) = report.world().filter(|_| report.passed()) else {
            let text = format!("{}not installed", report.told()?);
            self.place.operate.answer(&report, &text)?;
            return Ok(ExitCode::FAILURE);
        };
        let folder = Folder::new(&config.guests, world);
        let previous = serves(&folder.read()?, world);
        let from = std::path::absolute(&self.file)?.display().to_string();
        let now = Clock::system().now();
        let installing = folder.clone();
        let installed =
            tokio::task::spawn_blocking(move || installing.install(&bytes, from, now)).await?;
        let record = match installed {
            // Whoever repeats a command wants what it does, and has it.
            Err(RecordError::Serves) => folder.read()?,
            installed => installed?,
        };
        answer(&self.place, &config, world, &record, previous, Some(report)).await
    }
}

pub(super) async fn roll_back(world: World, place: &Place) -> anyhow::Result<ExitCode> {
    let config = place.settings()?;
    let folder = Folder::new(&config.guests, world);
    let previous = serves(&folder.read()?, world);
    let now = Clock::system().now();
    let rolled = tokio::task::spawn_blocking(move || folder.roll_back(None, now)).await?;
    answer(place, &config, world, &rolled?, previous, None).await
}

/// Who serves by a record.
fn serves(record: &Record, world: World) -> GuestDigest {
    let installed = record.top().map(|top| top.digest);
    installed.unwrap_or_else(|| GuestDigest::of(built_in(world)))
}

async fn answer(
    place: &Place,
    config: &Config,
    world: World,
    record: &Record,
    previous: GuestDigest,
    check: Option<Report>,
) -> anyhow::Result<ExitCode> {
    let digest = serves(record, world);
    let switched = Switched {
        world,
        digest,
        built_in: record.top().is_none(),
        previous,
        at: record
            .history
            .last()
            .map_or_else(|| Clock::system().now(), |last| last.at),
        effect: followed(config, world, record.sequence, digest).await?,
        check,
    };
    let which = if switched.built_in {
        "the built-in guest".to_owned()
    } else {
        format!("guest {digest}")
    };
    let text = match &switched.effect {
        Effect::Switched => format!("{world}: {which} serves"),
        Effect::NextStart => {
            format!("{world}: {which} serves from the next start on; no server runs")
        }
        Effect::Pending => format!("{world}: {which} is being loaded by the server"),
        Effect::Failed(why) => {
            let why = why.join("; ");
            format!("{world}: the server cannot load {which}, and what served goes on: {why}")
        }
    };
    place.operate.answer(&switched, &text)?;
    Ok(match switched.effect {
        Effect::Failed(_) => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Waits until a server that runs has followed the record.
async fn followed(
    config: &Config,
    world: World,
    sequence: u64,
    digest: GuestDigest,
) -> anyhow::Result<Effect> {
    for _ in 0..LOOKS {
        if !is_served(&config.data)? {
            return Ok(Effect::NextStart);
        }
        let said = status::read(&config.data)?;
        let serves = said.as_ref().map(|said| said.of(world));
        if let Some(serves) = serves.filter(|serves| serves.sequence >= sequence) {
            if serves.digest == Some(digest) || serves.sequence > sequence {
                return Ok(Effect::Switched);
            }
            if serves.failures.is_empty() && serves.digest.is_some() {
                bail!("the server has put another guest in its place: see `svc guest status`");
            }
            return Ok(Effect::Failed(serves.failures.clone()));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(Effect::Pending)
}
