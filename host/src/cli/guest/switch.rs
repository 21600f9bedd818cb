//! `svc guest install|rollback`: what serves is changed, and the server seen to follow.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde::Serialize;

use super::check::{Report, examine};
use super::status::told_change;
use super::{LOOK, Place, Site};
use crate::guests::replay::Differences;
use crate::guests::status::{self, Serves, is_served};
use crate::guests::{Record, RecordError};
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{GuestDigest, World, built_in, read};

/// How often the server is looked at: ten seconds. It needs one at most, where the component is compiled.
const LOOKS: u32 = 200;

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
    place: Place,
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Effect {
    /// It serves.
    Switched,
    /// No server runs: from the next start on.
    NextStart,
    /// The server has not said yet.
    Pending,
    /// The server cannot follow, or another change came after it.
    Failed,
    /// Nothing was changed.
    Refused,
}

impl Effect {
    fn exit(self) -> ExitCode {
        match self {
            Self::Switched | Self::NextStart => ExitCode::SUCCESS,
            Self::Failed | Self::Refused => ExitCode::FAILURE,
            Self::Pending => ExitCode::from(2),
        }
    }
}

/// The answer to a change.
#[derive(Debug, Serialize)]
struct Answer {
    /// Absent for a component that is no guest.
    world: Option<World>,
    /// Digest of the guest that is to serve; of a component that was refused, its own.
    digest: GuestDigest,
    /// Whether that is the guest which this program carries.
    built_in: bool,
    /// Digest of the guest before it; absent where nothing was changed.
    previous: Option<GuestDigest>,
    /// Time of the change.
    at: Option<Timestamp>,
    effect: Effect,
    /// Why it has no effect: a sentence each.
    failures: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Report>,
}

/// A change that the record has.
#[derive(Clone, Debug)]
struct Change {
    world: World,
    /// Digest of the guest that is to serve since.
    digest: GuestDigest,
    built_in: bool,
    /// Digest of the guest before it.
    previous: GuestDigest,
    at: Timestamp,
    /// The number of the change.
    sequence: u64,
    /// Failures that the server had before.
    failures: Vec<String>,
}

impl Install {
    /// Fails where the component does not pass, or the server cannot load it.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let (config, site) = self.place.config()?;
        site.agree().await?;
        let bytes = Arc::new(read(&self.file)?);
        let differences = match self.out {
            _ if self.no_replay => None,
            Some(out) => Some(Differences::to(out)?),
            None => Some(Differences::nowhere()),
        };
        let report = examine(
            (&config, &site),
            &self.file,
            Arc::clone(&bytes),
            differences,
        )
        .await?;
        let Some(world) = report.world().filter(|_| report.passed()) else {
            return refused(&self.place, report);
        };
        let folder = site.folder(world);
        let from = std::path::absolute(&self.file)?.display().to_string();
        let (now, digest) = (Clock::system().now(), report.digest());
        let failures = site.failures(world)?;
        let installing = folder.clone();
        let installed =
            tokio::task::spawn_blocking(move || installing.install(&bytes, from, now)).await?;
        let (record, previous) = match installed {
            // Whoever repeats a command wants what it does, and has it.
            Err(RecordError::Serves) => (folder.read()?, digest),
            installed => {
                let record = installed?;
                let before = record.serving.iter().rev().nth(1);
                let previous = before.map_or_else(|| own(world), |before| before.digest);
                (record, previous)
            }
        };
        let change = Change {
            world,
            digest,
            built_in: false,
            previous,
            at: record.history.last().map_or(now, |last| last.at),
            sequence: record.sequence,
            failures,
        };
        answer(&self.place, &site, change, Some(report)).await
    }
}

/// Says that a component may not serve, and changes nothing.
fn refused(place: &Place, report: Report) -> anyhow::Result<ExitCode> {
    let text = format!("{}not installed", report.told()?);
    let document = Answer {
        world: report.world(),
        digest: report.digest(),
        built_in: false,
        previous: None,
        at: None,
        effect: Effect::Refused,
        failures: report.reasons(),
        check: Some(report),
    };
    place.args.answer(&document, &text)?;
    Ok(document.effect.exit())
}

pub(super) async fn roll_back(
    world: World,
    from: Option<GuestDigest>,
    place: &Place,
) -> anyhow::Result<ExitCode> {
    let site = place.site()?;
    site.agree().await?;
    let (folder, now) = (site.folder(world), Clock::system().now());
    let Some(top) = folder.read()?.top().map(|top| top.digest) else {
        return Err(RecordError::NothingBefore(world).into());
    };
    let seen = from.unwrap_or(top);
    let failures = site.failures(world)?;
    let rolling = folder.clone();
    let rolled = tokio::task::spawn_blocking(move || rolling.roll_back(Some(seen), now)).await?;
    let record = match rolled {
        Err(RecordError::Another | RecordError::NothingBefore(_)) => {
            return too_late(place, world, seen, &folder.read()?);
        }
        rolled => rolled?,
    };
    let change = Change {
        world,
        digest: serves(&record, world),
        built_in: record.top().is_none(),
        previous: seen,
        at: now,
        sequence: record.sequence,
        failures,
    };
    answer(place, &site, change, None).await
}

/// Says that a guest had lost its place already, and changes nothing.
fn too_late(
    place: &Place,
    world: World,
    seen: GuestDigest,
    record: &Record,
) -> anyhow::Result<ExitCode> {
    let why = format!("guest {seen} does not serve any more: {}", latest(record));
    let text = format!("{world}: not rolled back: {why}");
    let document = Answer {
        world: Some(world),
        digest: serves(record, world),
        built_in: record.top().is_none(),
        previous: None,
        at: None,
        effect: Effect::Refused,
        failures: vec![why],
        check: None,
    };
    place.args.answer(&document, &text)?;
    Ok(document.effect.exit())
}

/// The latest change of a record.
fn latest(record: &Record) -> String {
    record
        .history
        .last()
        .map_or_else(|| "its record is gone".to_owned(), told_change)
}

/// The guest that is built in.
fn own(world: World) -> GuestDigest {
    GuestDigest::of(built_in(world))
}

/// Returns the guest that serves by a record.
fn serves(record: &Record, world: World) -> GuestDigest {
    record.top().map_or_else(|| own(world), |top| top.digest)
}

impl Site {
    /// Lists what the server could not do.
    fn failures(&self, world: World) -> anyhow::Result<Vec<String>> {
        let said = status::read(&self.data)?;
        Ok(said.map_or_else(Vec::new, |said| said.of(world).failures.clone()))
    }
}

async fn answer(
    place: &Place,
    site: &Site,
    change: Change,
    check: Option<Report>,
) -> anyhow::Result<ExitCode> {
    let (world, digest) = (change.world, change.digest);
    let command = match check {
        Some(_) => format!("guest install: {digest} is to be {world}"),
        None => format!("guest rollback {world}: {digest} is to serve"),
    };
    site.note(command, Some(world.to_string())).await;
    let (effect, failures) = followed(site, &change).await?;
    let document = Answer {
        world: Some(change.world),
        digest: change.digest,
        built_in: change.built_in,
        previous: Some(change.previous),
        at: Some(change.at),
        effect,
        failures,
        check,
    };
    place
        .args
        .answer(&document, &told(&document, change.world))?;
    Ok(effect.exit())
}

/// Writes the answer for people.
fn told(answer: &Answer, world: World) -> String {
    let which = if answer.built_in {
        "the built-in guest".to_owned()
    } else {
        format!("guest {}", answer.digest)
    };
    let why = answer.failures.join("; ");
    match answer.effect {
        Effect::Switched => format!("{world}: {which} serves"),
        Effect::NextStart => {
            format!("{world}: {which} serves from the next start on; no server runs")
        }
        Effect::Pending => {
            format!(
                "{world}: {which} was chosen, and the server has not said yet that it serves: see `svc guest status`"
            )
        }
        Effect::Failed | Effect::Refused => format!("{world}: {which} does not serve: {why}"),
    }
}

/// Waits until a server that runs has followed the record; with why, where it has not.
async fn followed(site: &Site, change: &Change) -> anyhow::Result<(Effect, Vec<String>)> {
    let mut failures = Vec::new();
    for _ in 0..LOOKS {
        let record = site.folder(change.world).read()?;
        if serves(&record, change.world) != change.digest {
            let why = format!("changed again meanwhile: {}", latest(&record));
            return Ok((Effect::Failed, vec![why]));
        }
        if !is_served(&site.data)? {
            return Ok((Effect::NextStart, Vec::new()));
        }
        if let Some(said) = status::read(&site.data)? {
            site.agree_with(&said)?;
            let serves = said.of(change.world);
            if let Some(done) = judged(change, record.sequence, serves) {
                return Ok(done);
            }
            // It reads every record once, and says at once where it cannot.
            if said.at >= change.at {
                failures.clone_from(&serves.failures);
            }
            if !failures.is_empty() && failures != change.failures {
                break;
            }
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(if failures.is_empty() {
        (Effect::Pending, failures)
    } else {
        (Effect::Failed, failures)
    })
}

/// Returns the effect of `change` according to the server's status, where the record has come to the number `latest`
/// since; `None` until the server has reported on it.
fn judged(change: &Change, latest: u64, serves: &Serves) -> Option<(Effect, Vec<String>)> {
    // A higher number is that of another record, such as one from before a restore.
    if !(change.sequence..=latest).contains(&serves.sequence) {
        return None;
    }
    if serves.digest == Some(change.digest) {
        return Some((Effect::Switched, Vec::new()));
    }
    (!serves.failures.is_empty()).then(|| (Effect::Failed, serves.failures.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_of_a_change_counts() {
        let [new, old] = [b"new", b"old"].map(|bytes| GuestDigest::of(bytes));
        let change = Change {
            world: World::Render,
            digest: new,
            built_in: false,
            previous: old,
            at: Timestamp(0),
            sequence: 5,
            failures: Vec::new(),
        };
        let switched = Some(Effect::Switched);
        for (sequence, digest, failure, expected) in [
            (4, Some(old), None, None),
            (4, Some(new), None, None),
            (4, Some(old), Some("earlier"), None),
            (5, Some(new), None, switched),
            (5, Some(new), Some("the other world's"), switched),
            (5, None, None, None),
            (5, Some(old), None, None),
            (5, Some(old), Some("it is gone"), Some(Effect::Failed)),
            (6, Some(new), None, switched),
            (7, Some(new), None, None),
            (7, Some(old), Some("before a restore"), None),
        ] {
            let serves = Serves {
                sequence,
                digest,
                failures: failure.map(str::to_owned).into_iter().collect(),
                ..Serves::default()
            };
            let found = judged(&change, 6, &serves);
            let why = found.as_ref().map_or(&[][..], |(_, why)| why);
            let named = expected == Some(Effect::Failed);
            assert_eq!(why.is_empty(), !named, "{serves:?}");
            assert_eq!(found.map(|(effect, _)| effect), expected, "{serves:?}");
        }
    }
}
