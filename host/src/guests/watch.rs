//! The server's side: it follows what operators choose, keeps what the sandbox decided by itself, and says what it did.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio::sync::{mpsc, oneshot};

use super::record::{Folder, Record, RecordError};
use super::status::{self, Paths, Presence, Said, Serves};
use crate::config::Config;
use svc_base::clock::{Clock, Timestamp};
use svc_sandbox::{Fallen, GuestDigest, Origin, Sandbox, World};

/// How long nothing is said of calls after something was, in milliseconds.
const QUIET: i64 = 1000;

/// Has whoever follows the records look at once; clones ask the same one.
#[derive(Clone, Debug)]
pub struct Looks(mpsc::Sender<Asked>);

/// Question who serves in a world, once the records have been looked at.
#[derive(Debug)]
pub struct Asked {
    world: World,
    answer: oneshot::Sender<Serves>,
}

impl Looks {
    /// Makes the way to whoever follows the records, with its end.
    pub fn way() -> (Self, mpsc::Receiver<Asked>) {
        let (ask, asked) = mpsc::channel(1);
        (Self(ask), asked)
    }

    /// Returns who serves in a world after a look that begins now; `None` once nobody looks any more.
    pub async fn look(&self, world: World) -> Option<Serves> {
        let (answer, answered) = oneshot::channel();
        self.0.send(Asked { world, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// Follows the records of both worlds, step by step. All of it blocks.
#[derive(Debug)]
pub struct Watch {
    data: PathBuf,
    paths: Paths,
    sandbox: Sandbox,
    clock: Clock,
    worlds: [Followed; 2],
    said: Option<Said>,
    /// Those that fell and of whom the records do not say so yet.
    fallen: Vec<Fallen>,
    _presence: Presence,
}

/// A world, and how far it is followed.
#[derive(Debug)]
struct Followed {
    world: World,
    folder: Folder,
    seen: Seen,
    /// Until when who serves is on trial.
    trial_until: Option<Timestamp>,
    sequence: u64,
    failures: Vec<String>,
}

/// State of a record's file when it was read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// It has yet to be read.
    Never,
    /// There was none.
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
    /// Begins to follow what is installed, for a server that has `data`.
    pub fn begin(data: &Path, config: &Config, sandbox: Sandbox, clock: Clock) -> io::Result<Self> {
        let worlds = World::ALL.map(|world| Followed {
            world,
            folder: Folder::new(&config.guests, world),
            seen: Seen::Never,
            trial_until: None,
            sequence: 0,
            failures: Vec::new(),
        });
        // Before anybody can see that a server runs: what the last one said is not what this one does.
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

    /// Has the next look try again what failed where somebody asks: they may have mended it.
    pub fn try_again(&mut self, asked: &Asked) {
        for followed in &mut self.worlds {
            if followed.world == asked.world && !followed.failures.is_empty() {
                followed.seen = Seen::Never;
            }
        }
    }

    /// Looks once, and does what has to be done; `fallen` are the guests that lost their places since the last look.
    ///
    /// # Errors
    /// The disk's; what is left is done with the next look.
    pub fn look(&mut self, fallen: Vec<Fallen>) -> anyhow::Result<()> {
        let now = self.clock.now();
        self.keep_fallen(fallen, now);
        // While the guests are being loaded for the first time there is nothing to switch.
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

    /// Makes the falls of guests durable, so that a start does not bring them back. What cannot be written now is
    /// written with a later look; until then the guest does not serve either.
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

    /// Writes down what is so, if it is something else than was said last.
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

    /// Answers who asked before the last look.
    pub fn answer(&self, asked: Asked) {
        // Whoever does not wait any more misses nothing.
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
    /// Does what the record says, if it says something new; returns whether it did. A record that cannot be read is
    /// read again with the next look.
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
