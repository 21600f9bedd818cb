//! The server's side: it follows what operators choose, keeps what the sandbox decided by itself, and says what it did.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::record::{Folder, Record, RecordError};
use super::status::{self, Presence, Said, Serves};
use crate::clock::{Clock, Timestamp};
use crate::config::Config;
use crate::sandbox::{Fallen, Sandbox, World};

/// How long nothing is said of calls after something was, in milliseconds.
const QUIET: i64 = 1000;

/// Follows the records of both worlds, step by step. All of it blocks.
#[derive(Debug)]
pub struct Watch {
    data: PathBuf,
    sandbox: Sandbox,
    clock: Clock,
    worlds: [Followed; 2],
    said: Option<Said>,
    _presence: Presence,
}

/// A world, and how far it is followed.
#[derive(Debug)]
struct Followed {
    world: World,
    folder: Folder,
    /// What the record's file looked like when it was read last, if there was one.
    seen: Option<Option<Stamp>>,
    /// Until when who serves is on trial.
    trial_until: Option<Timestamp>,
    sequence: u64,
    failures: Vec<String>,
}

/// What changes when a file is replaced.
type Stamp = (u64, i64, i64, u64);

fn stamp(path: &Path) -> Option<Stamp> {
    let data = std::fs::metadata(path).ok()?;
    Some((data.ino(), data.mtime(), data.mtime_nsec(), data.len()))
}

impl Watch {
    /// Begins to follow what is installed, for a server that has `data`.
    ///
    /// # Errors
    /// The disk's.
    pub fn begin(data: &Path, config: &Config, sandbox: Sandbox, clock: Clock) -> io::Result<Self> {
        let worlds = World::ALL.map(|world| Followed {
            world,
            folder: Folder::new(&config.guests, world),
            seen: None,
            trial_until: None,
            sequence: 0,
            failures: Vec::new(),
        });
        Ok(Self {
            _presence: Presence::announce(data)?,
            data: data.to_owned(),
            sandbox,
            clock,
            worlds,
            said: None,
        })
    }

    /// Looks once, and does what has to be done.
    ///
    /// # Errors
    /// The disk's; what is left is done with the next look.
    pub fn look(&mut self) -> anyhow::Result<()> {
        // While the guests are being loaded for the first time there is nothing to switch.
        if !self.sandbox.loaded() {
            return self.say();
        }
        for fallen in self.sandbox.take_fallen() {
            self.keep(fallen);
        }
        let now = self.clock.now();
        let changes: Vec<bool> = self
            .worlds
            .iter_mut()
            .map(|followed| followed.follow(&self.sandbox, now))
            .collect();
        if changes.contains(&true) {
            self.said = None;
        }
        self.say()
    }

    /// Makes a guest's fall durable, so that a start does not bring it back.
    fn keep(&self, fallen: Fallen) {
        let Some(followed) = self.worlds.iter().find(|one| one.world == fallen.world) else {
            return;
        };
        let only = Some((fallen.guest, fallen.why));
        match followed.folder.roll_back(only, self.clock.now()) {
            Ok(_) | Err(RecordError::Another | RecordError::NothingBefore(_)) => {}
            Err(error) => {
                tracing::error!(guest = %fallen.guest, %error, "a guest that was rolled back comes back with the next start, because that cannot be written down");
            }
        }
    }

    /// Writes down what is so, if it is something else than was said last.
    fn say(&mut self) -> anyhow::Result<()> {
        let at = self.clock.now();
        let said = Said {
            at,
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
    /// Does what the record says, if it says something new; answers whether it did.
    fn follow(&mut self, sandbox: &Sandbox, now: Timestamp) -> bool {
        let found = stamp(&self.folder.record_path());
        let ended = self.trial_until.is_some_and(|until| now >= until);
        if self.seen == Some(found) && !ended {
            return false;
        }
        match self.folder.read() {
            Ok(record) => self.apply(sandbox, &record, now),
            Err(error) => {
                tracing::error!(guest = %self.world, error = format!("{error:#}"), "it is not known which guest is installed; what serves goes on");
                self.failures = vec![format!("{error:#}")];
            }
        }
        self.seen = Some(found);
        true
    }

    fn apply(&mut self, sandbox: &Sandbox, record: &Record, now: Timestamp) {
        let choice = self.folder.choice(record, now);
        let applied = sandbox.apply(self.world, &choice);
        self.failures = applied.failures;
        self.sequence = record.sequence;
        let until = record.trial_until();
        self.trial_until = until.filter(|_| choice.on_trial);
    }
}
