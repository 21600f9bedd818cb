//! The server's side: it applies the operators' choices, persists the sandbox's rollbacks, and writes the status.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::record::{Folder, Record, RecordError};
use super::status::{self, Paths, Presence, Said, Serves};
use crate::config::Config;
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{Fallen, GuestDigest, Origin, Sandbox, World};

/// Minimum time between two status files that differ in usage alone, in milliseconds.
const QUIET: i64 = 1000;

/// Handle to the watcher of the records; clones reach the same watcher.
#[derive(Clone, Debug)]
pub struct Looks(mpsc::Sender<Asked>);

/// Request for the status of a world, to be answered after a fresh look at the records.
#[derive(Debug)]
pub struct Asked {
    world: World,
    answer: oneshot::Sender<Serves>,
}

impl Looks {
    /// Creates a handle, and the receiver for the watcher.
    pub fn way() -> (Self, mpsc::Receiver<Asked>) {
        let (ask, asked) = mpsc::channel(1);
        (Self(ask), asked)
    }

    /// Returns the status of a world after a look that begins now; `None` once the watcher has stopped.
    pub async fn look(&self, world: World) -> Option<Serves> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Asked { world, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// Watcher of the records of both worlds. All its methods block.
#[derive(Debug)]
pub struct Watch {
    data: PathBuf,
    paths: Paths,
    sandbox: Sandbox,
    clock: Clock,
    worlds: [Followed; 2],
    said: Option<Said>,
    /// Rolled back guests that the records still list.
    fallen: Vec<Fallen>,
    _presence: Presence,
}

/// A world, with the state of its record that was applied last.
#[derive(Debug)]
struct Followed {
    world: World,
    folder: Folder,
    seen: Seen,
    /// End of the trial of the guest that serves.
    trial_until: Option<Timestamp>,
    sequence: u64,
    failures: Vec<String>,
}

/// State of a record's file when it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// The file was not read yet.
    Never,
    /// The file was missing.
    Missing,
    /// A file, by a stamp that changes when the file is replaced.
    File([u64; 2], [i64; 2]),
}

impl Seen {
    fn now(path: &Path) -> Self {
        match std::fs::metadata(path) {
            Ok(data) => Self::File([data.ino(), data.len()], [data.mtime(), data.mtime_nsec()]),
            Err(_) => Self::Missing,
        }
    }
}

impl Watch {
    /// Starts to follow the records, for the server of `data`.
    pub fn begin(data: &Path, config: &Config, sandbox: Sandbox, clock: Clock) -> io::Result<Self> {
        let worlds = World::ALL.map(|world| Followed {
            world,
            folder: Folder::new(&config.guests, world),
            seen: Seen::Never,
            trial_until: None,
            sequence: 0,
            failures: Vec::new(),
        });
        // The last server's status is removed before this server becomes visible.
        status::forget(data)?;
        Ok(Self {
            _presence: Presence::announce(data)?,
            data: data.to_owned(),
            paths: Paths::of(&config.guests, &config.cache)?,
            sandbox,
            clock,
            worlds,
            said: None,
            fallen: Vec::new(),
        })
    }

    /// Lets the next look retry a failed world, for a request: its author may have repaired it.
    pub fn try_again(&mut self, asked: &Asked) {
        for followed in &mut self.worlds {
            if followed.world == asked.world && !followed.failures.is_empty() {
                followed.seen = Seen::Never;
            }
        }
    }

    /// Looks at the records once and applies them; `fallen` are the guests that were rolled back since the last look.
    ///
    /// # Errors
    /// The disk's; the rest is done with the next look.
    pub fn look(&mut self, fallen: Vec<Fallen>) -> anyhow::Result<()> {
        let now = self.clock.now();
        self.keep_fallen(fallen, now);
        // During the first load there is nothing to switch.
        if !self.sandbox.loaded() {
            return self.say();
        }
        let changes: Vec<bool> = self
            .worlds
            .iter_mut()
            .map(|followed| followed.follow(&self.sandbox, &self.fallen, now))
            .collect();
        if changes.contains(&true) {
            self.said = None;
        }
        self.say()
    }

    /// Writes automatic rollbacks to the records, so that they survive a restart. A failed write is tried again with the next
    /// look; the guest does not serve meanwhile.
    fn keep_fallen(&mut self, new: Vec<Fallen>, now: Timestamp) {
        for fallen in new {
            if let Err(error) = self.keep(&fallen, now) {
                tracing::error!(guest = %fallen.guest, %error, "a guest that was rolled back comes back with the next start: that cannot be written down, and is tried again");
                self.fallen.push(fallen);
            }
        }
        let mut left = std::mem::take(&mut self.fallen);
        left.retain(|fallen| self.keep(fallen, now).is_err());
        self.fallen = left;
    }

    fn keep(&self, fallen: &Fallen, now: Timestamp) -> Result<(), RecordError> {
        match self.worlds.iter().find(|one| one.world == fallen.world) {
            Some(followed) => followed.folder.drop_fallen(fallen, now),
            None => Ok(()),
        }
    }

    /// Writes the status file, if the status has changed.
    fn say(&mut self) -> anyhow::Result<()> {
        let at = self.clock.now();
        let said = Said {
            at,
            paths: self.paths.clone(),
            render: self.serves(World::Render),
            gate: self.serves(World::Gate),
        };
        let due = self.said.as_ref().is_none_or(|last| {
            let another = last.render != said.render || last.gate != said.gate;
            let who = |said: &Said| (said.render.digest, said.gate.digest);
            another && (who(last) != who(&said) || at.0 - last.at.0 >= QUIET)
        });
        if due {
            status::write(&self.data, &said)?;
            self.said = Some(said);
        }
        Ok(())
    }

    /// Answers a request that came before the last look.
    pub fn answer(&self, asked: Asked) {
        // A requester that has gone away needs no answer.
        let _ = asked.answer.send(self.serves(asked.world));
    }

    fn serves(&self, world: World) -> Serves {
        let usage = self.sandbox.usage(world);
        let mut serves = Serves {
            digest: usage.map(|(digest, _)| digest),
            usage: usage.map(|(_, usage)| usage).unwrap_or_default(),
            ..Serves::default()
        };
        if let Some(followed) = self.worlds.iter().find(|one| one.world == world) {
            serves.sequence = followed.sequence;
            serves.failures.clone_from(&followed.failures);
        }
        serves
    }
}

impl Followed {
    /// Applies the record if it has changed; returns whether the status has changed. An unreadable record is read again with the
    /// next look.
    fn follow(&mut self, sandbox: &Sandbox, fallen: &[Fallen], now: Timestamp) -> bool {
        let found = Seen::now(&self.folder.record_path());
        let ended = self.trial_until.is_some_and(|until| now >= until);
        if self.seen == found && !ended {
            return false;
        }
        match self.folder.read() {
            Ok(record) => {
                self.apply(sandbox, &record, fallen, now);
                self.seen = found;
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

    fn apply(&mut self, sandbox: &Sandbox, record: &Record, fallen: &[Fallen], now: Timestamp) {
        let mut choice = self.folder.choice(record, now);
        let fell = |digest: &GuestDigest| fallen.iter().any(|fallen| fallen.guest == *digest);
        choice.origins.retain(
            |origin| !matches!(origin, Origin::File { digest: Some(digest), .. } if fell(digest)),
        );
        let applied = sandbox.apply(self.world, &choice);
        self.failures = applied.failures;
        self.sequence = record.sequence;
        let until = record.trial_until();
        self.trial_until = until.filter(|_| choice.on_trial);
    }
}
