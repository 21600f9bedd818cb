//! Status of a server's guests, for commands beside it: a small file in the data directory, and a lock that shows whether a
//! server runs.

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

/// Name of the file. After its server has ended, it shows the last state.
const STATUS_FILE: &str = "guests.status";
/// Name of the lock: the server holds it exclusively, and readers share it for a moment.
const LOCK_FILE: &str = "serving.lock";
/// Mode of both files.
const PRIVATE_MODE: u32 = 0o600;
/// A server tries this often to get the lock, with a pause in between: a second in all.
const LOCK_ATTEMPTS: u32 = 200;
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Status of a server's guests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestStatusFile {
    /// Time of writing.
    pub at: Timestamp,
    /// Directories of the guests.
    pub paths: GuestPaths,
    /// Status of the renderer.
    pub render: WorldGuestStatus,
    /// Status of the gate.
    pub gate: WorldGuestStatus,
}

impl GuestStatusFile {
    /// Returns the status of one world.
    pub fn of_world(&self, world: World) -> &WorldGuestStatus {
        match world {
            World::Render => &self.render,
            World::Gate => &self.gate,
        }
    }
}

/// Directories of guests with links resolved: commands and the server compare them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestPaths {
    /// Directory of installed guests.
    pub guests: String,
    /// Directory of compiled guests.
    pub cache: String,
}

impl GuestPaths {
    /// Resolves the directories of installed and of compiled guests.
    ///
    /// # Errors
    /// A path is empty.
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
pub struct WorldGuestStatus {
    /// Sequence number of the record that the server has applied.
    pub sequence: u64,
    /// Digest of the guest that serves; absent while it is being loaded.
    pub digest: Option<GuestDigest>,
    /// Reasons why newer guests of the record do not serve; usually empty.
    pub failures: Vec<String>,
    /// Calls of the guest since it was loaded.
    pub usage: GuestUsage,
}

/// Reads the status of the server, or of the last one. A file of another version of this program counts as missing.
pub fn read_status_file(data: &Path) -> io::Result<Option<GuestStatusFile>> {
    match std::fs::read(data.join(STATUS_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        text => Ok(serde_json::from_slice(&text?).ok()),
    }
}

/// Returns a note for a backup if the server's guests are outside of its data directory.
pub fn location_note(data: &Path) -> io::Result<Option<String>> {
    let ours = disk::resolve_path(&data.join("guests"))?;
    let folder = read_status_file(data)?.map(|said| said.paths.guests);
    let folder = folder.filter(|folder| Path::new(folder) != ours);
    Ok(folder.map(|folder| {
        format!("guests are installed in {folder}, which is not in this backup: copy it, too")
    }))
}

/// Writes the status. It is not synced: nobody needs it after a power cut.
pub fn write_status_file(data: &Path, said: &GuestStatusFile) -> anyhow::Result<()> {
    Ok(disk::replace_file_unsynced(
        data,
        STATUS_FILE,
        &serde_json::to_vec(said)?,
    )?)
}

/// Removes the status of an earlier server.
pub fn remove_status_file(data: &Path) -> io::Result<()> {
    match std::fs::remove_file(data.join(STATUS_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Shows that a server runs, until it is dropped.
#[derive(Debug)]
pub struct ServerPresenceLock {
    _lock: FileLock,
}

impl ServerPresenceLock {
    /// Takes the lock for the server of a data directory. It is tried for some time, because commands share the lock for a
    /// moment.
    ///
    /// # Errors
    /// The disk's errors, or another process that keeps the lock.
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

/// Whether a server runs on a data directory. Several commands may look at once.
pub fn is_server_running(data: &Path) -> io::Result<bool> {
    // Only servers create the file: a command of another user would own it.
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
        let presence = ServerPresenceLock::announce(data.path()).unwrap();
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
        drop(ServerPresenceLock::announce(data.path()).unwrap());
        let looks = File::open(data.path().join(LOCK_FILE)).unwrap();
        looks.try_lock_shared().unwrap();
        assert!(!is_server_running(data.path()).unwrap());
        std::thread::scope(|scope| {
            let starts = scope.spawn(|| ServerPresenceLock::announce(data.path()));
            std::thread::sleep(LOCK_RETRY_PAUSE);
            drop(looks);
            assert!(starts.join().unwrap().is_ok());
        });
    }

    #[test]
    fn a_lock_that_somebody_keeps_does_not_hang_a_start() {
        let data = tempfile::tempdir().unwrap();
        let first = ServerPresenceLock::announce(data.path()).unwrap();
        let second = ServerPresenceLock::announce(data.path()).unwrap_err();
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
            render: WorldGuestStatus::default(),
            gate: WorldGuestStatus {
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
        drop(ServerPresenceLock::announce(data.path()).unwrap());
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
