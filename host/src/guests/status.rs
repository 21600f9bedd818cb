//! Status of a server's guests, for the commands beside it: a small file in the data directory, and a lock that tells
//! whether a server runs at all.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use svc_base::clock::Timestamp;
use svc_base::disk;
use svc_base::file_lock::FileLock;
use svc_sandbox::{GuestDigest, GuestUsage, World};

/// The name of the file; what is in it is of use while its server runs, and a look back after.
const STATUS_FILE: &str = "guests.status";
/// The name of the lock: a server holds it exclusively, and whoever looks shares it for a moment.
const LOCK_FILE: &str = "serving.lock";
/// Both are their owner's alone.
const PRIVATE_MODE: u32 = 0o600;
/// How often a server tries to get the lock, and how long it rests in between: a second in all.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Status of a server's guests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestStatusFile {
    /// When it said so.
    pub at: Timestamp,
    /// Where it has its guests.
    pub paths: GuestPaths,
    /// Status of the renderer.
    pub render: WorldStatus,
    /// Status of the gate.
    pub gate: WorldStatus,
}

impl GuestStatusFile {
    /// Of one world.
    pub fn of_world(&self, world: World) -> &WorldStatus {
        match world {
            World::Render => &self.render,
            World::Gate => &self.gate,
        }
    }
}

/// Where guests are, with links followed: how commands and the server tell that they mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPaths {
    /// Those that are installed.
    pub guests: String,
    /// Those that are compiled.
    pub cache: String,
}

impl GuestPaths {
    /// Of the directories of installed and of compiled guests.
    ///
    /// # Errors
    /// A directory without a name.
    pub fn resolve(guests: &Path, cache: &Path) -> io::Result<Self> {
        let name = |path| disk::resolve_path(path).map(|path| path.display().to_string());
        Ok(Self {
            guests: name(guests)?,
            cache: name(cache)?,
        })
    }
}

/// Status of the guest of one world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorldStatus {
    /// Which change of the record it has followed.
    pub sequence: u64,
    /// Digest of the guest that serves; absent while it is being loaded.
    pub digest: Option<GuestDigest>,
    /// Why those that were rather to serve do not: empty as a rule.
    pub failures: Vec<String>,
    /// Work of the guest since it was loaded.
    pub usage: GuestUsage,
}

/// Reads what the server, or the last one, said. What another version of this program has written says nothing.
pub fn read_status_file(data: &Path) -> io::Result<Option<GuestStatusFile>> {
    match std::fs::read(data.join(STATUS_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(serde_json::from_slice(&text?).ok()),
    }
}

/// Says for a backup where the server has its guests, if that is not in its data directory.
pub fn location_note(data: &Path) -> io::Result<Option<String>> {
    let ours = disk::resolve_path(&data.join("guests"))?;
    let folder = read_status_file(data)?.map(|said| said.paths.guests);
    let folder = folder.filter(|folder| Path::new(folder) != ours);
    Ok(folder.map(|folder| {
        format!("guests are installed in {folder}, which is not in this backup: copy it, too")
    }))
}

/// Writes it down. Nobody relies on it after a power cut, so it is not synced; whoever reads finds the old or the new.
pub fn write_status_file(data: &Path, said: &GuestStatusFile) -> anyhow::Result<()> {
    Ok(disk::replace_file_unsynced(
        data,
        STATUS_FILE,
        &serde_json::to_vec(said)?,
    )?)
}

/// Forgets what an earlier server said.
pub fn remove_status_file(data: &Path) -> io::Result<()> {
    match std::fs::remove_file(data.join(STATUS_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Says that a server runs, until it is dropped.
#[derive(Debug)]
pub struct ServerPresence {
    _lock: FileLock,
}

impl ServerPresence {
    /// That of the server of a data directory. Commands that look have the lock for a moment, so it is tried for some time.
    ///
    /// # Errors
    /// The disk's, or somebody who keeps the lock.
    pub fn announce(data: &Path) -> io::Result<Self> {
        for _ in 0..LOCK_ATTEMPTS {
            let file = FileLock::open_file(&data.join(LOCK_FILE))?;
            file.set_permissions(Permissions::from_mode(PRIVATE_MODE))?;
            if let Some(_lock) = FileLock::try_exclusive(file)? {
                return Ok(Self { _lock });
            }
            std::thread::sleep(LOCK_RETRY_PAUSE);
        }
        let why = format!(
            "another process keeps {} locked",
            data.join(LOCK_FILE).display()
        );
        Err(io::Error::new(io::ErrorKind::WouldBlock, why))
    }
}

/// Whether a server runs on a data directory. Any number may look at once, and none takes another for the server.
pub fn is_server_running(data: &Path) -> io::Result<bool> {
    // Only servers make the file: one that a command had made would be that command's user's.
    let file = match File::open(data.join(LOCK_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    Ok(FileLock::try_shared(file)?.is_none())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_server_is_seen_while_it_runs() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_server_running(data.path()).unwrap());
        let presence = ServerPresence::announce(data.path()).unwrap();
        assert!(is_server_running(data.path()).unwrap());
        assert!(
            is_server_running(data.path()).unwrap(),
            "looking changes nothing"
        );
        drop(presence);
        assert!(!is_server_running(data.path()).unwrap());
    }

    #[test]
    fn who_looks_is_no_server_and_keeps_none_from_starting() {
        let data = tempfile::tempdir().unwrap();
        drop(ServerPresence::announce(data.path()).unwrap());
        let looks = File::open(data.path().join(LOCK_FILE)).unwrap();
        looks.try_lock_shared().unwrap();
        assert!(!is_server_running(data.path()).unwrap());
        std::thread::scope(|scope| {
            let starts = scope.spawn(|| ServerPresence::announce(data.path()));
            std::thread::sleep(LOCK_RETRY_PAUSE);
            drop(looks);
            assert!(starts.join().unwrap().is_ok());
        });
    }

    #[test]
    fn a_lock_that_somebody_keeps_does_not_hang_a_start() {
        let data = tempfile::tempdir().unwrap();
        let first = ServerPresence::announce(data.path()).unwrap();
        let second = ServerPresence::announce(data.path()).unwrap_err();
        assert!(second.to_string().contains(LOCK_FILE), "{second}");
        drop(first);
    }

    #[test]
    fn what_was_said_is_read() {
        let data = tempfile::tempdir().unwrap();
        assert!(read_status_file(data.path()).unwrap().is_none());
        let said = GuestStatusFile {
            at: Timestamp(1_795_176_000_000),
            paths: GuestPaths::resolve(data.path(), &data.path().join("cache")).unwrap(),
            render: WorldStatus::default(),
            gate: WorldStatus {
                sequence: 3,
                digest: Some(GuestDigest::of(b"gate")),
                failures: vec!["why".to_owned()],
                usage: GuestUsage {
                    calls: 7,
                    ..GuestUsage::default()
                },
            },
        };
        write_status_file(data.path(), &said).unwrap();
        drop(ServerPresence::announce(data.path()).unwrap());
        for name in [STATUS_FILE, LOCK_FILE] {
            let mode = std::fs::metadata(data.path().join(name)).unwrap().mode();
            assert_eq!(mode & 0o777, PRIVATE_MODE, "{name}");
        }
        let found = read_status_file(data.path()).unwrap().unwrap();
        assert_eq!((found.at, &found.gate), (said.at, &said.gate));
        for other in ["", "{", r#"{"serving":"render"}"#] {
            std::fs::write(data.path().join(STATUS_FILE), other).unwrap();
            assert!(read_status_file(data.path()).unwrap().is_none(), "{other}");
        }
    }
}
