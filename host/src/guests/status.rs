//! What a server says of its guests to the commands beside it: a small file in the data directory, and a lock that tells whether a server
//! runs at all.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::sandbox::{GuestDigest, Usage, World};

/// The name of the file; what is in it is of use while its server runs, and a look back after.
const FILE: &str = "guests.status";
/// The name of the lock.
const LOCK: &str = "serving.lock";

/// What a server says of its guests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Said {
    /// When it said so.
    pub at: Timestamp,
    /// Renderers.
    pub render: Serves,
    /// Gates.
    pub gate: Serves,
}

impl Said {
    /// Of one world.
    pub fn of(&self, world: World) -> &Serves {
        match world {
            World::Render => &self.render,
            World::Gate => &self.gate,
        }
    }
}

/// What a server says of the guest of one world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Serves {
    /// Which change of the record it has followed.
    pub sequence: u64,
    /// Who serves; absent while it is being loaded.
    pub digest: Option<GuestDigest>,
    /// Why those that were rather to serve do not: empty as a rule.
    pub failures: Vec<String>,
    /// What the guest has done since it was loaded.
    pub usage: Usage,
}

/// Reads what the server, or the last one, said.
///
/// # Errors
/// The disk's, or a file that is something else.
pub fn read(data: &Path) -> anyhow::Result<Option<Said>> {
    match std::fs::read(data.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(Some(serde_json::from_slice(&text?)?)),
    }
}

/// Writes it down. Nobody relies on it after a power cut, so it is not synced; whoever reads finds the old or the new.
///
/// # Errors
/// The disk's.
pub fn write(data: &Path, said: &Said) -> anyhow::Result<()> {
    let new: PathBuf = data.join(format!(".{FILE}.new"));
    std::fs::write(&new, serde_json::to_vec(said)?)?;
    Ok(std::fs::rename(&new, data.join(FILE))?)
}

/// Says that a server runs, until it is dropped.
#[derive(Debug)]
pub struct Presence {
    _locked: File,
}

impl Presence {
    /// That of the server of a data directory.
    ///
    /// # Errors
    /// The disk's.
    pub fn announce(data: &Path) -> io::Result<Self> {
        let file = open(data)?;
        // Shared, because a command that looks has it for a moment, and must never keep a server from starting.
        file.lock_shared()?;
        Ok(Self { _locked: file })
    }
}

/// Whether a server runs on a data directory.
///
/// # Errors
/// The disk's.
pub fn is_served(data: &Path) -> io::Result<bool> {
    match open(data)?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open(data: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(data.join(LOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_seen_while_it_runs() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_served(data.path()).unwrap());
        let presence = Presence::announce(data.path()).unwrap();
        assert!(is_served(data.path()).unwrap());
        assert!(is_served(data.path()).unwrap(), "looking changes nothing");
        drop(presence);
        assert!(!is_served(data.path()).unwrap());
    }

    #[test]
    fn what_was_said_is_read() {
        let data = tempfile::tempdir().unwrap();
        assert!(read(data.path()).unwrap().is_none());
        let said = Said {
            at: Timestamp(1_795_176_000_000),
            render: Serves::default(),
            gate: Serves {
                sequence: 3,
                digest: Some(GuestDigest::of(b"gate")),
                failures: vec!["why".to_owned()],
                usage: Usage {
                    calls: 7,
                    ..Usage::default()
                },
            },
        };
        write(data.path(), &said).unwrap();
        let found = read(data.path()).unwrap().unwrap();
        assert_eq!((found.at, &found.gate), (said.at, &said.gate));
    }
}
