//! The operators' choice of the serving guest: `svc guest install` and `svc guest rollback`, once the component is in its folder. At a
//! node of several the choice is that of all nodes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use super::installation::{Installation, OperationAnswer};
use super::{Operation, forward};
use crate::cluster::ServingClusterNode;
use crate::control::Error;
use crate::control::audit::AuditAction;
use crate::guests::status::WorldGuestStatus;
use crate::guests::{GuestRecord, GuestRecordError, WorldFolder, shared};
use svc_base::clock::Timestamp;
use svc_base::disk;
use svc_sandbox::{GuestDigest, World, built_in_digest};

/// Most looks of the server at the choice, until it has loaded its first guests: ten seconds.
const MAX_POLLS: u32 = 200;
/// Pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Operation that has another guest serve.
#[derive(Debug, Serialize, Deserialize)]
pub struct SwitchGuest {
    /// Directory of the installed guests: an absolute path.
    pub guests: PathBuf,
    /// Kind of the guest.
    pub world: World,
    /// Change that is to be made.
    pub change: GuestChange,
}

/// Change of the serving guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestChange {
    /// Serve a component of the folder.
    Install {
        /// The component.
        digest: GuestDigest,
        /// Source of the component.
        from: String,
    },
    /// Serve the previous guest again.
    RollBack {
        /// The guest to be replaced: the change is refused if another one serves.
        from: GuestDigest,
    },
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestChangeEffect {
    /// The guest serves.
    Switched,
    /// No server runs: the guest serves from the next start on.
    NextStart,
    /// The server has not reported yet.
    Pending,
    /// The server cannot load the guest, or another change came later.
    Failed,
    /// Nothing was changed.
    Refused,
}

/// Outcome of a change.
#[derive(Debug, Serialize, Deserialize)]
pub struct GuestChangeOutcome {
    /// Kind of the guest; absent for a component that is not a guest.
    pub world: Option<World>,
    /// Digest of the chosen guest, or of the refused component.
    pub digest: GuestDigest,
    /// Whether this is the built-in guest.
    pub built_in: bool,
    /// Digest of the previous guest; absent if nothing was changed.
    pub previous: Option<GuestDigest>,
    /// Time of the change.
    pub at: Option<Timestamp>,
    /// Effect of the change.
    pub effect: GuestChangeEffect,
    /// Reasons for having no effect: a sentence each.
    pub failures: Vec<String>,
}

/// A recorded change.
#[derive(Clone, Copy, Debug)]
struct RecordedGuestChange {
    world: World,
    /// Digest of the chosen guest.
    digest: GuestDigest,
    built_in: bool,
    /// Digest of the previous guest.
    previous: GuestDigest,
    at: Timestamp,
    /// Number of the change.
    sequence: u64,
}

/// Record of which guest serves, where it is kept.
#[derive(Debug)]
enum GuestRecordStore<'i> {
    /// The folder of one machine.
    Folder(WorldFolder),
    /// Rows of control, which the folders of all nodes follow; with that of this node.
    Rows(&'i ServingClusterNode, WorldFolder),
}

impl GuestRecordStore<'_> {
    /// Makes a change, with its entry in the audit where both are one transaction.
    async fn change(
        &self,
        at: &Installation,
        change: GuestChange,
        now: Timestamp,
    ) -> Result<GuestRecord, GuestRecordError> {
        match (self, change) {
            (Self::Folder(folder), change) => {
                let folder = folder.clone();
                let make = move || match change {
                    GuestChange::Install { digest, from } => folder.choose(digest, from, now),
                    GuestChange::RollBack { from } => folder.roll_back(Some(from), now),
                };
                let made = tokio::task::spawn_blocking(make).await;
                made.map_err(anyhow::Error::from)?
            }
            (Self::Rows(node, folder), GuestChange::Install { digest, from }) => {
                let (guests, chosen) = (node.guests(), (digest, from));
                guests.install(&at.control, folder, chosen, now).await
            }
            (Self::Rows(node, folder), GuestChange::RollBack { from }) => {
                let (guests, world) = (node.guests(), folder.world());
                guests.roll_back(&at.control, world, from, now).await
            }
        }
    }

    /// Adds the entry of a change in a folder to the audit.
    async fn record_audit(&self, at: &Installation, now: Timestamp) -> Result<(), Error> {
        let Self::Folder(folder) = self else {
            return Ok(());
        };
        let world = folder.world();
        let noted = at
            .control
            .write(move |tx| tx.record_audit(AuditAction::GuestSwitch, None, &world, now));
        noted.await
    }

    /// Reads the record.
    async fn read(&self, at: &Installation) -> anyhow::Result<GuestRecord> {
        match self {
            Self::Folder(folder) => folder.read(),
            Self::Rows(_, folder) => shared::read(&at.control, folder.world()).await,
        }
    }
}

impl SwitchGuest {
    /// Changes the record; where a server runs, answers once it follows the record.
    pub(super) async fn run(self, at: &Installation) -> anyhow::Result<OperationAnswer> {
        let (world, now) = (self.world, at.clock.now());
        let store = self.store(at)?;
        let made = store.change(at, self.change.clone(), now).await;
        let (record, is_changed) = match made {
            Err(error) if error.is_refusal() => (store.read(at).await?, false),
            made => (made?, true),
        };
        let (changed, deed) = match self.change {
            // A repeated command succeeds: its effect is there already.
            GuestChange::Install { digest, .. } => {
                installed((world, digest), &record, is_changed, now)
            }
            GuestChange::RollBack { from } if is_changed => rolled_back(world, from, &record, now),
            GuestChange::RollBack { from } => {
                return OperationAnswer::new(&refused_outcome(world, from, &record), "");
            }
        };
        let noted = store.record_audit(at, now).await;
        let (effect, mut failures) = wait_for_server(at, &store, &changed).await;
        // The change is made, even if the audit entry fails.
        let unnoted = noted.err();
        failures.extend(unnoted.map(|error| format!("the audit log does not have it: {error}")));
        let outcome = GuestChangeOutcome {
            world: Some(world),
            digest: changed.digest,
            built_in: changed.built_in,
            previous: Some(changed.previous),
            at: Some(changed.at),
            effect,
            failures,
        };
        Ok(OperationAnswer::new(&outcome, "")?.logged_as(deed))
    }

    /// Finds where it is decided which guest serves.
    fn store<'i>(&self, at: &'i Installation) -> anyhow::Result<GuestRecordStore<'i>> {
        let folder = WorldFolder::new(&self.guests, self.world);
        let Some(app) = &at.server else {
            return Ok(GuestRecordStore::Folder(folder));
        };
        Ok(match &app.cluster {
            // The command may be of another node, which has its guests elsewhere.
            Some(node) => {
                let folder = WorldFolder::new(&app.config.guests, self.world);
                GuestRecordStore::Rows(node, folder)
            }
            None => {
                check_guests_directory(&app.config.guests, &self.guests)?;
                GuestRecordStore::Folder(folder)
            }
        })
    }

    /// Has the node that has control make the change for all nodes; answers once that node follows it, and this one has begun to.
    pub(super) async fn pass_on(
        self,
        at: &Installation,
        node: &ServingClusterNode,
        actor: &str,
    ) -> anyhow::Result<OperationAnswer> {
        if let Some(app) = &at.server {
            check_guests_directory(&app.config.guests, &self.guests)?;
        }
        let world = self.world;
        if let GuestChange::Install { digest, .. } = &self.change {
            let folder = WorldFolder::new(&self.guests, world);
            node.guests().upload(&folder, *digest).await?;
        }
        let answer = forward::pass_on(node.node(), &Operation::Guest(self), actor).await?;
        if let Some(watcher) = &at.watcher {
            // A server that stops follows after its next start.
            let _ = watcher.request_status(world).await;
        }
        Ok(answer)
    }
}

/// Refuses a directory of guests that is not the server's.
///
/// # Errors
/// A text for the operator.
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

/// Describes an installation and its command, for the log. One that has changed nothing found its guest serving.
fn installed(
    (world, digest): (World, GuestDigest),
    record: &GuestRecord,
    is_changed: bool,
    now: Timestamp,
) -> (RecordedGuestChange, String) {
    let before = record.serving.iter().rev().nth(1);
    let previous = match is_changed {
        true => before.map_or_else(|| built_in_digest(world), |before| before.digest),
        false => digest,
    };
    let changed = RecordedGuestChange {
        world,
        digest,
        built_in: false,
        previous,
        at: record.history.last().map_or(now, |last| last.at),
        sequence: record.sequence,
    };
    (changed, format!("guest install: {digest} is to be {world}"))
}

/// Describes a rollback and its command, for the log.
fn rolled_back(
    world: World,
    from: GuestDigest,
    record: &GuestRecord,
    now: Timestamp,
) -> (RecordedGuestChange, String) {
    let digest = serving_digest(record, world);
    let changed = RecordedGuestChange {
        world,
        digest,
        built_in: record.current_guest().is_none(),
        previous: from,
        at: now,
        sequence: record.sequence,
    };
    (
        changed,
        format!("guest rollback {world}: {digest} is to serve"),
    )
}

/// Returns the outcome of a rollback of a guest that no longer serves: nothing is changed.
fn refused_outcome(world: World, seen: GuestDigest, record: &GuestRecord) -> GuestChangeOutcome {
    let why = format!(
        "guest {seen} does not serve any more: {}",
        record.describe_latest()
    );
    GuestChangeOutcome {
        world: Some(world),
        digest: serving_digest(record, world),
        built_in: record.current_guest().is_none(),
        previous: None,
        at: None,
        effect: GuestChangeEffect::Refused,
        failures: vec![why],
    }
}

/// Returns the guest that serves by a record.
fn serving_digest(record: &GuestRecord, world: World) -> GuestDigest {
    record
        .current_guest()
        .map_or_else(|| built_in_digest(world), |guest| guest.digest)
}

/// Has the server of this process follow the record, and waits until it has loaded the chosen guest; returns the effect and the
/// reasons of a failure.
async fn wait_for_server(
    at: &Installation,
    store: &GuestRecordStore<'_>,
    change: &RecordedGuestChange,
) -> (GuestChangeEffect, Vec<String>) {
    let Some(watcher) = &at.watcher else {
        return (GuestChangeEffect::NextStart, Vec::new());
    };
    for _ in 0..MAX_POLLS {
        let Some(said) = watcher.request_status(change.world).await else {
            // The server is stopping.
            return (GuestChangeEffect::NextStart, Vec::new());
        };
        let record = match store.read(at).await {
            Ok(record) => record,
            Err(error) => return (GuestChangeEffect::Failed, vec![error.to_string()]),
        };
        if serving_digest(&record, change.world) != change.digest {
            let why = format!("changed again meanwhile: {}", record.describe_latest());
            return (GuestChangeEffect::Failed, vec![why]);
        }
        if let Some(done) = reported_effect(change, record.sequence, &said) {
            return done;
        }
        // The server reports a record that it cannot read.
        if !said.failures.is_empty() {
            return (GuestChangeEffect::Failed, said.failures);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    (GuestChangeEffect::Pending, Vec::new())
}

/// Returns the effect of `change` according to what the server says, where the record has come to the number `latest`
/// since; `None` until the server has reported on it.
fn reported_effect(
    change: &RecordedGuestChange,
    latest: u64,
    serves: &WorldGuestStatus,
) -> Option<(GuestChangeEffect, Vec<String>)> {
    // A higher number belongs to another record, such as one from before a restore.
    if !(change.sequence..=latest).contains(&serves.sequence) {
        return None;
    }
    if serves.digest == Some(change.digest) {
        return Some((GuestChangeEffect::Switched, Vec::new()));
    }
    (!serves.failures.is_empty()).then(|| (GuestChangeEffect::Failed, serves.failures.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_of_a_change_counts() {
        let [new, old] = [b"new", b"old"].map(|bytes| GuestDigest::of(bytes));
        let change = RecordedGuestChange {
            world: World::Render,
            digest: new,
            built_in: false,
            previous: old,
            at: Timestamp(0),
            sequence: 5,
        };
        let switched = Some(GuestChangeEffect::Switched);
        for (sequence, digest, failure, expected) in [
            (4, Some(old), None, None),
            (4, Some(new), None, None),
            (4, Some(old), Some("earlier"), None),
            (5, Some(new), None, switched),
            (5, Some(new), Some("the other world's"), switched),
            (5, None, None, None),
            (5, Some(old), None, None),
            (
                5,
                Some(old),
                Some("it is gone"),
                Some(GuestChangeEffect::Failed),
            ),
            (6, Some(new), None, switched),
            (7, Some(new), None, None),
            (7, Some(old), Some("before a restore"), None),
        ] {
            let serves = WorldGuestStatus {
                sequence,
                digest,
                failures: failure.map(str::to_owned).into_iter().collect(),
                ..WorldGuestStatus::default()
            };
            let found = reported_effect(&change, 6, &serves);
            let why = found.as_ref().map_or(&[][..], |(_, why)| why);
            let named = expected == Some(GuestChangeEffect::Failed);
            assert_eq!(why.is_empty(), !named, "{serves:?}");
            assert_eq!(found.map(|(effect, _)| effect), expected, "{serves:?}");
        }
    }
}
