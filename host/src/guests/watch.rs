//! The server's side: it follows what operators choose, keeps what the sandbox decided by itself, and says what it did.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::record::{Folder, Record, RecordError};
use super::status::{self, GuestPaths, GuestStatusFile, ServerPresence, WorldStatus};
use crate::config::Config;
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{GuestDigest, GuestOrigin, RolledBackGuest, Sandbox, World};

/// How long nothing is said of calls after something was, in milliseconds.
const STATUS_INTERVAL: i64 = 1000;

/// Has whoever follows the records look at once; clones ask the same one.
#[derive(Clone, Debug)]
pub struct WatcherHandle(mpsc::Sender<StatusRequest>);

/// Question who serves in a world, once the records have been looked at.
#[derive(Debug)]
pub struct StatusRequest {
    world: World,
    answer: oneshot::Sender<WorldStatus>,
}

impl WatcherHandle {
    /// Makes the way to whoever follows the records, with its end.
    pub fn channel() -> (Self, mpsc::Receiver<StatusRequest>) {
        let (ask, asked) = mpsc::channel(1);
        (Self(ask), asked)
    }

    /// Returns who serves in a world after a look that begins now; `None` once nobody looks any more.
    pub async fn request_status(&self, world: World) -> Option<WorldStatus> {
        let (answer, answered) = oneshot::channel();
        self.0.send(StatusRequest { world, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// Follows the records of both worlds, step by step. All of it blocks.
#[derive(Debug)]
pub struct GuestWatcher {
    data: PathBuf,
    paths: GuestPaths,
    sandbox: Sandbox,
    clock: Clock,
    worlds: [WatchedWorld; 2],
    last_status: Option<GuestStatusFile>,
    /// Those that fell and of whom the records do not say so yet.
    fallen: Vec<RolledBackGuest>,
    _presence: ServerPresence,
}

/// A world, and how far it is followed.
#[derive(Debug)]
struct WatchedWorld {
    world: World,
    folder: Folder,
    stamp: RecordStamp,
    /// Until when who serves is on trial.
    trial_until: Option<Timestamp>,
    sequence: u64,
    failures: Vec<String>,
}

/// State of a record's file when it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordStamp {
    /// It has yet to be read.
    Never,
    /// There was none.
    Missing,
    /// A file, by a stamp that changes when the file is replaced.
    File([u64; 2], [i64; 2]),
}

impl RecordStamp {
    fn read(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(data) => Self::File([data.ino(), data.len()], [data.mtime(), data.mtime_nsec()]),
            Err(_) => Self::Missing,
        }
    }
}

impl GuestWatcher {
    /// Begins to follow what is installed, for a server that has `data`.
    pub fn open(data: &Path, config: &Config, sandbox: Sandbox, clock: Clock) -> io::Result<Self> {
        let worlds = World::ALL.map(|world| WatchedWorld {
            world,
            folder: Folder::new(&config.guests, world),
            stamp: RecordStamp::Never,
            trial_until: None,
            sequence: 0,
            failures: Vec::new(),
        });
        // Before anybody can see that a server runs: what the last one said is not what this one does.
        status::remove_status_file(data)?;
        Ok(Self {
            _presence: ServerPresence::announce(data)?,
            data: data.to_owned(),
            paths: GuestPaths::resolve(&config.guests, &config.cache)?,
            sandbox,
            clock,
            worlds,
            last_status: None,
            fallen: Vec::new(),
        })
    }

    /// Has the next look try again what failed where somebody asks: they may have mended it.
    pub fn retry_failed(&mut self, asked: &StatusRequest) {
        for followed in &mut self.worlds {
            if followed.world == asked.world && !followed.failures.is_empty() {
                followed.stamp = RecordStamp::Never;
            }
        }
    }

    /// WatcherHandle once, and does what has to be done; `fallen` are the guests that lost their places since the last look.
    ///
    /// # Errors
    /// The disk's; what is left is done with the next look.
    pub fn poll(&mut self, fallen: Vec<RolledBackGuest>) -> anyhow::Result<()> {
        let now = self.clock.now();
        self.record_rollbacks(fallen, now);
        // While the guests are being loaded for the first time there is nothing to switch.
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

    /// Makes the falls of guests durable, so that a start does not bring them back. What cannot be written now is
    /// written with a later look; until then the guest does not serve either.
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
    ) -> Result<(), RecordError> {
        match self.worlds.iter().find(|one| one.world == fallen.world) {
            Some(followed) => followed.folder.remove_rolled_back(fallen, now),
            None => Ok(()),
        }
    }

    /// Writes down what is so, if it is something else than was said last.
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
            another && (who(last) != who(&said) || at.0 - last.at.0 >= STATUS_INTERVAL)
        });
        if due {
            status::write_status_file(&self.data, &said)?;
            self.last_status = Some(said);
        }
        Ok(())
    }

    /// Answers who asked before the last look.
    pub fn answer(&self, asked: StatusRequest) {
        // Whoever does not wait any more misses nothing.
        let _ = asked.answer.send(self.world_status(asked.world));
    }

    fn world_status(&self, world: World) -> WorldStatus {
        let usage = self.sandbox.usage(world);
        let mut serves = WorldStatus {
            digest: usage.map(|(digest, _)| digest),
            usage: usage.map(|(_, usage)| usage).unwrap_or_default(),
            ..WorldStatus::default()
        };
        if let Some(followed) = self.worlds.iter().find(|one| one.world == world) {
            serves.sequence = followed.sequence;
            serves.failures.clone_from(&followed.failures);
        }
        serves
    }
}

impl WatchedWorld {
    /// Does what the record says, if it says something new; returns whether it did. A record that cannot be read is
    /// read again with the next look.
    fn follow_record(
        &mut self,
        sandbox: &Sandbox,
        fallen: &[RolledBackGuest],
        now: Timestamp,
    ) -> bool {
        let found = RecordStamp::read(&self.folder.record_path());
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
        record: &Record,
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
