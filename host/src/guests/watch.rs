//! The server's side: it applies the operators' choices, persists the sandbox's rollbacks, and writes the status.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::record::{GuestRecord, GuestRecordError, WorldFolder};
use super::status::{self, GuestPaths, GuestStatusFile, ServerPresenceLock, WorldGuestStatus};
use crate::config::Config;
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{GuestDigest, GuestOrigin, RolledBackGuest, Sandbox, World};

/// Minimum time between two status files that differ in usage alone, in milliseconds.
const STATUS_INTERVAL_MILLIS: i64 = 1000;

/// Handle to the watcher of the records; clones reach the same watcher.
#[derive(Clone, Debug)]
pub struct GuestWatcherHandle(mpsc::Sender<GuestStatusRequest>);

/// Request for the status of a world, to be answered after a fresh look at the records.
#[derive(Debug)]
pub struct GuestStatusRequest {
    world: World,
    answer: oneshot::Sender<WorldGuestStatus>,
}

impl GuestWatcherHandle {
    /// Creates a handle, and the receiver for the watcher.
    pub fn channel() -> (Self, mpsc::Receiver<GuestStatusRequest>) {
        let (ask, asked) = mpsc::channel(1);
        (Self(ask), asked)
    }

    /// Returns the status of a world after a look that begins now; `None` once the watcher has stopped.
    pub async fn request_status(&self, world: World) -> Option<WorldGuestStatus> {
        let (answer, answered) = oneshot::channel();
        self.0
            .send(GuestStatusRequest { world, answer })
            .await
            .ok()?;
        answered.await.ok()
    }
}

/// Watcher of the records of both worlds. All its methods block.
#[derive(Debug)]
pub struct GuestWatcher {
    data: PathBuf,
    paths: GuestPaths,
    sandbox: Sandbox,
    clock: Clock,
    worlds: [WatchedWorld; 2],
    last_status: Option<GuestStatusFile>,
    /// Guests that were rolled back and that the records still list.
    fallen: Vec<RolledBackGuest>,
    _presence: ServerPresenceLock,
}

/// State of the records of a node of several. They follow the cluster's, which is told of guests that were rolled back.
#[derive(Clone, Debug, Default)]
pub struct FollowedRecords {
    /// Guests that were rolled back here and that the records still list.
    pub fallen: Vec<RolledBackGuest>,
    /// Reasons why records of worlds do not follow.
    pub failures: Vec<(World, String)>,
}

/// A world, with the state of its record that was applied last.
#[derive(Debug)]
struct WatchedWorld {
    world: World,
    folder: WorldFolder,
    stamp: RecordFileStamp,
    /// End of the trial of the guest that serves.
    trial_until: Option<Timestamp>,
    sequence: u64,
    failures: Vec<String>,
    /// Reason why the record does not follow the cluster's.
    unfollowed: Option<String>,
}

/// State of a record's file when it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordFileStamp {
    /// The file was not read yet.
    Never,
    /// The file was missing.
    Missing,
    /// A file, by a stamp that changes when the file is replaced.
    File([u64; 2], [i64; 2]),
}

impl RecordFileStamp {
    fn read(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(data) => Self::File([data.ino(), data.len()], [data.mtime(), data.mtime_nsec()]),
            Err(_) => Self::Missing,
        }
    }
}

impl GuestWatcher {
    /// Starts to follow the records, for the server of `data`.
    pub fn open(data: &Path, config: &Config, sandbox: Sandbox, clock: Clock) -> io::Result<Self> {
        let worlds = World::ALL.map(|world| WatchedWorld {
            world,
            folder: WorldFolder::new(&config.guests, world),
            stamp: RecordFileStamp::Never,
            trial_until: None,
            sequence: 0,
            failures: Vec::new(),
            unfollowed: None,
        });
        // The last server's status is removed before this server becomes visible.
        status::remove_status_file(data)?;
        Ok(Self {
            _presence: ServerPresenceLock::announce(data)?,
            data: data.to_owned(),
            paths: GuestPaths::resolve(&config.guests, &config.cache)?,
            sandbox,
            clock,
            worlds,
            last_status: None,
            fallen: Vec::new(),
        })
    }

    /// Lets the next look retry a failed world, for a request: its author may have repaired it.
    pub fn retry_failed(&mut self, asked: &GuestStatusRequest) {
        for followed in &mut self.worlds {
            if followed.world == asked.world && !followed.failures.is_empty() {
                followed.stamp = RecordFileStamp::Never;
            }
        }
    }

    /// Looks at the records once and applies them; `fallen` are the guests that were rolled back since the last look.
    ///
    /// # Errors
    /// The disk's; the rest is done with the next look.
    pub fn poll(&mut self, fallen: Vec<RolledBackGuest>) -> anyhow::Result<()> {
        let now = self.clock.now();
        self.record_rollbacks(fallen, now);
        self.apply_records(now)
    }

    /// Looks at the records of a node of several, and applies them.
    ///
    /// # Errors
    /// The disk's; the rest is done with the next look.
    pub fn poll_followed(&mut self, followed: FollowedRecords) -> anyhow::Result<()> {
        self.fallen = followed.fallen;
        for watched in &mut self.worlds {
            let mut failures = followed.failures.iter();
            let failure = failures.find(|(world, _)| *world == watched.world);
            watched.unfollowed = failure.map(|(_, why)| why.clone());
        }
        self.apply_records(self.clock.now())
    }

    fn apply_records(&mut self, now: Timestamp) -> anyhow::Result<()> {
        // During the first load there is nothing to switch.
        if !self.sandbox.is_loaded() {
            return self.write_status();
        }
        let changes: Vec<bool> = self
            .worlds
            .iter_mut()
            .map(|followed| followed.follow_record(&self.sandbox, &self.fallen, now))
            .collect();
        if changes.contains(&true) {
            self.last_status = None;
        }
        self.write_status()
    }

    /// Writes automatic rollbacks to the records, so that they survive a restart. A failed write is tried again with the next
    /// look; the guest does not serve meanwhile.
    fn record_rollbacks(&mut self, new: Vec<RolledBackGuest>, now: Timestamp) {
        for fallen in new {
            if let Err(error) = self.remove_from_record(&fallen, now) {
                tracing::error!(guest = %fallen.guest, %error, "a guest that was rolled back comes back with the next start: that cannot be written down, and is tried again");
                self.fallen.push(fallen);
            }
        }
        let mut left = std::mem::take(&mut self.fallen);
        left.retain(|fallen| self.remove_from_record(fallen, now).is_err());
        self.fallen = left;
    }

    fn remove_from_record(
        &self,
        fallen: &RolledBackGuest,
        now: Timestamp,
    ) -> Result<(), GuestRecordError> {
        match self.worlds.iter().find(|one| one.world == fallen.world) {
            Some(followed) => followed.folder.remove_rolled_back(fallen, now),
            None => Ok(()),
        }
    }

    /// Writes the status file, if the status has changed.
    fn write_status(&mut self) -> anyhow::Result<()> {
        let at = self.clock.now();
        let said = GuestStatusFile {
            at,
            paths: self.paths.clone(),
            render: self.world_status(World::Render),
            gate: self.world_status(World::Gate),
        };
        let due = self.last_status.as_ref().is_none_or(|last| {
            let another = last.render != said.render || last.gate != said.gate;
            let who = |said: &GuestStatusFile| (said.render.digest, said.gate.digest);
            another && (who(last) != who(&said) || at.0 - last.at.0 >= STATUS_INTERVAL_MILLIS)
        });
        if due {
            status::write_status_file(&self.data, &said)?;
            self.last_status = Some(said);
        }
        Ok(())
    }

    /// Answers a request that came before the last look.
    pub fn answer(&self, asked: GuestStatusRequest) {
        // A requester that has gone away needs no answer.
        let _ = asked.answer.send(self.world_status(asked.world));
    }

    fn world_status(&self, world: World) -> WorldGuestStatus {
        let usage = self.sandbox.usage(world);
        let mut serves = WorldGuestStatus {
            digest: usage.map(|(digest, _)| digest),
            usage: usage.map(|(_, usage)| usage).unwrap_or_default(),
            ..WorldGuestStatus::default()
        };
        if let Some(followed) = self.worlds.iter().find(|one| one.world == world) {
            serves.sequence = followed.sequence;
            serves.failures.clone_from(&followed.failures);
            serves.failures.extend(followed.unfollowed.clone());
        }
        serves
    }
}

impl WatchedWorld {
    /// Applies the record if it has changed; returns whether the status has changed. An unreadable record is read again with the
    /// next look.
    fn follow_record(
        &mut self,
        sandbox: &Sandbox,
        fallen: &[RolledBackGuest],
        now: Timestamp,
    ) -> bool {
        let found = RecordFileStamp::read(&self.folder.record_path());
        let ended = self.trial_until.is_some_and(|until| now >= until);
        if self.stamp == found && !ended {
            return false;
        }
        match self.folder.read() {
            Ok(record) => {
                self.apply(sandbox, &record, fallen, now);
                self.stamp = found;
                true
            }
            Err(error) => {
                let failures = vec![format!("{error:#}")];
                let new = failures != self.failures;
                if new {
                    tracing::error!(guest = %self.world, error = failures[0], "it is not known which guest is installed; what serves goes on");
                    self.failures = failures;
                }
                new
            }
        }
    }

    fn apply(
        &mut self,
        sandbox: &Sandbox,
        record: &GuestRecord,
        fallen: &[RolledBackGuest],
        now: Timestamp,
    ) {
        let mut choice = self.folder.choice(record, now);
        let fell = |digest: &GuestDigest| fallen.iter().any(|fallen| fallen.guest == *digest);
        choice.origins.retain(
            |origin| !matches!(origin, GuestOrigin::File { digest: Some(digest), .. } if fell(digest)),
        );
        let applied = sandbox.apply(self.world, &choice);
        self.failures = applied.failures;
        self.sequence = record.sequence;
        let until = record.trial_until();
        self.trial_until = until.filter(|_| choice.on_trial);
    }
}
