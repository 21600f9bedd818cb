//! Operators' choice of who serves: `svc guest install` and `svc guest rollback`, once the component lies in its folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use super::installation::{Answer, Installation};
use crate::control::Error;
use crate::control::audit::AuditAction;
use crate::guests::status::WorldStatus;
use crate::guests::{Folder, Record, RecordError};
use svc_base::clock::Timestamp;
use svc_base::disk;
use svc_sandbox::{GuestDigest, World, built_in};

/// How often the server looks at what was chosen, until it has loaded its first guests: ten seconds.
const MAX_POLLS: u32 = 200;
/// How long it waits between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Has another guest serve.
#[derive(Debug, Serialize, Deserialize)]
pub struct SwitchGuest {
    /// Directory of the installed guests: an absolute path.
    pub guests: PathBuf,
    /// Which guest.
    pub world: World,
    /// Change that is to be made.
    pub change: GuestChange,
}

/// Change of who serves.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestChange {
    /// A component of the folder is to serve.
    Install {
        /// The component.
        digest: GuestDigest,
        /// Where it came from.
        from: String,
    },
    /// The guest before it is to serve again.
    RollBack {
        /// The guest that loses its place: this one and no other.
        from: GuestDigest,
    },
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchEffect {
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

/// Outcome of a change.
#[derive(Debug, Serialize, Deserialize)]
pub struct SwitchOutcome {
    /// Absent for a component that is no guest.
    pub world: Option<World>,
    /// Digest of the guest that is to serve; of a component that was refused, its own.
    pub digest: GuestDigest,
    /// Whether that is the guest which this program carries.
    pub built_in: bool,
    /// Digest of the guest before it; absent where nothing was changed.
    pub previous: Option<GuestDigest>,
    /// Time of the change.
    pub at: Option<Timestamp>,
    /// Whether it serves.
    pub effect: SwitchEffect,
    /// Why it has no effect: a sentence each.
    pub failures: Vec<String>,
}

/// A change that the record has.
#[derive(Clone, Copy, Debug)]
struct RecordedChange {
    world: World,
    /// Digest of the guest that is to serve since.
    digest: GuestDigest,
    built_in: bool,
    /// Digest of the guest before it.
    previous: GuestDigest,
    at: Timestamp,
    /// The number of the change.
    sequence: u64,
}

impl SwitchGuest {
    /// Changes the record; where a server runs, answers once it serves by that.
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<Answer> {
        if let Some(app) = &at.server {
            check_guests_directory(&app.config.guests, &self.guests)?;
        }
        let (world, now) = (self.world, at.clock.now());
        let folder = Folder::new(&self.guests, world);
        let (changing, change) = (folder.clone(), self.change);
        let make = move || match change {
            GuestChange::Install { digest, from } => install(&changing, world, (digest, from), now),
            GuestChange::RollBack { from } => roll_back(&changing, world, from, now),
        };
        let (changed, deed) = match tokio::task::spawn_blocking(make).await?? {
            Ok(changed) => changed,
            Err(refused) => return Answer::new(&refused, ""),
        };
        let noted: Result<(), Error> = at
            .control
            .write(move |tx| tx.record_audit(AuditAction::GuestSwitch, None, &world, now))
            .await;
        let (effect, mut failures) = wait_for_server(at, &folder, &changed).await;
        // The change is made, whatever becomes of the entry.
        let unnoted = noted.err();
        failures.extend(unnoted.map(|error| format!("the audit log does not have it: {error}")));
        let outcome = SwitchOutcome {
            world: Some(world),
            digest: changed.digest,
            built_in: changed.built_in,
            previous: Some(changed.previous),
            at: Some(changed.at),
            effect,
            failures,
        };
        Ok(Answer::new(&outcome, "")?.logged_as(deed))
    }
}

/// Refuses a directory of guests that the server does not follow.
///
/// # Errors
/// The text for the operator.
pub fn check_guests_directory(theirs: &Path, ours: &Path) -> anyhow::Result<()> {
    let (theirs, ours) = (disk::resolve_path(theirs)?, disk::resolve_path(ours)?);
    if theirs != ours {
        bail!(
            "the server has its guests in {}, not in {}: name its directory with --guests",
            theirs.display(),
            ours.display()
        );
    }
    Ok(())
}

/// A change with its command for the log, or why nothing was changed.
type ChangeResult = Result<(RecordedChange, String), SwitchOutcome>;

fn install(
    folder: &Folder,
    world: World,
    (digest, from): (GuestDigest, String),
    now: Timestamp,
) -> anyhow::Result<ChangeResult> {
    let (record, previous) = match folder.choose(digest, from, now) {
        // Whoever repeats a command wants what it does, and has it.
        Err(RecordError::AlreadyServing) => (folder.read()?, digest),
        chosen => {
            let record = chosen?;
            let before = record.serving.iter().rev().nth(1);
            let previous = before.map_or_else(|| built_in_digest(world), |before| before.digest);
            (record, previous)
        }
    };
    let changed = RecordedChange {
        world,
        digest,
        built_in: false,
        previous,
        at: record.history.last().map_or(now, |last| last.at),
        sequence: record.sequence,
    };
    let deed = format!("guest install: {digest} is to be {world}");
    Ok(Ok((changed, deed)))
}

fn roll_back(
    folder: &Folder,
    world: World,
    from: GuestDigest,
    now: Timestamp,
) -> anyhow::Result<ChangeResult> {
    let record = match folder.roll_back(Some(from), now) {
        Err(RecordError::OtherGuestServes | RecordError::NoPreviousGuest(_)) => {
            return Ok(Err(refused_outcome(world, from, &folder.read()?)));
        }
        rolled => rolled?,
    };
    let digest = serving_digest(&record, world);
    let changed = RecordedChange {
        world,
        digest,
        built_in: record.current_guest().is_none(),
        previous: from,
        at: now,
        sequence: record.sequence,
    };
    let deed = format!("guest rollback {world}: {digest} is to serve");
    Ok(Ok((changed, deed)))
}

/// The outcome where a guest had lost its place already: nothing is changed.
fn refused_outcome(world: World, seen: GuestDigest, record: &Record) -> SwitchOutcome {
    let why = format!(
        "guest {seen} does not serve any more: {}",
        record.describe_latest()
    );
    SwitchOutcome {
        world: Some(world),
        digest: serving_digest(record, world),
        built_in: record.current_guest().is_none(),
        previous: None,
        at: None,
        effect: SwitchEffect::Refused,
        failures: vec![why],
    }
}

/// The guest that is built in.
fn built_in_digest(world: World) -> GuestDigest {
    GuestDigest::of(built_in(world))
}

/// Returns the guest that serves by a record.
fn serving_digest(record: &Record, world: World) -> GuestDigest {
    record
        .current_guest()
        .map_or_else(|| built_in_digest(world), |top| top.digest)
}

/// Has the server of this process follow the record, and waits until it has loaded what it is to serve; with why, where it
/// cannot.
async fn wait_for_server(
    at: &Installation,
    folder: &Folder,
    change: &RecordedChange,
) -> (SwitchEffect, Vec<String>) {
    let Some(watcher) = &at.watcher else {
        return (SwitchEffect::NextStart, Vec::new());
    };
    for _ in 0..MAX_POLLS {
        let Some(said) = watcher.request_status(change.world).await else {
            // It is stopping.
            return (SwitchEffect::NextStart, Vec::new());
        };
        let record = match folder.read() {
            Ok(record) => record,
            Err(error) => return (SwitchEffect::Failed, vec![error.to_string()]),
        };
        if serving_digest(&record, change.world) != change.digest {
            let why = format!("changed again meanwhile: {}", record.describe_latest());
            return (SwitchEffect::Failed, vec![why]);
        }
        if let Some(done) = reported_effect(change, record.sequence, &said) {
            return done;
        }
        // It looks at every record at once, and says where it cannot.
        if !said.failures.is_empty() {
            return (SwitchEffect::Failed, said.failures);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    (SwitchEffect::Pending, Vec::new())
}

/// Returns the effect of `change` according to what the server says, where the record has come to the number `latest`
/// since; `None` until the server has reported on it.
fn reported_effect(
    change: &RecordedChange,
    latest: u64,
    serves: &WorldStatus,
) -> Option<(SwitchEffect, Vec<String>)> {
    // A higher number is that of another record, such as one from before a restore.
    if !(change.sequence..=latest).contains(&serves.sequence) {
        return None;
    }
    if serves.digest == Some(change.digest) {
        return Some((SwitchEffect::Switched, Vec::new()));
    }
    (!serves.failures.is_empty()).then(|| (SwitchEffect::Failed, serves.failures.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_of_a_change_counts() {
        let [new, old] = [b"new", b"old"].map(|bytes| GuestDigest::of(bytes));
        let change = RecordedChange {
            world: World::Render,
            digest: new,
            built_in: false,
            previous: old,
            at: Timestamp(0),
            sequence: 5,
        };
        let switched = Some(SwitchEffect::Switched);
        for (sequence, digest, failure, expected) in [
            (4, Some(old), None, None),
            (4, Some(new), None, None),
            (4, Some(old), Some("earlier"), None),
            (5, Some(new), None, switched),
            (5, Some(new), Some("the other world's"), switched),
            (5, None, None, None),
            (5, Some(old), None, None),
            (5, Some(old), Some("it is gone"), Some(SwitchEffect::Failed)),
            (6, Some(new), None, switched),
            (7, Some(new), None, None),
            (7, Some(old), Some("before a restore"), None),
        ] {
            let serves = WorldStatus {
                sequence,
                digest,
                failures: failure.map(str::to_owned).into_iter().collect(),
                ..WorldStatus::default()
            };
            let found = reported_effect(&change, 6, &serves);
            let why = found.as_ref().map_or(&[][..], |(_, why)| why);
            let named = expected == Some(SwitchEffect::Failed);
            assert_eq!(why.is_empty(), !named, "{serves:?}");
            assert_eq!(found.map(|(effect, _)| effect), expected, "{serves:?}");
        }
    }
}
