//! The lock of the data directory: one server, or one command that replaces it, has it at a time.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use svc_base::file_lock::FileLock;

const LOCK_FILE: &str = "lock";
/// Begin of the holder's description for a restore.
const RESTORE_HOLDER: &str = "a restore";
/// Begin of the holder's description for an operator's command.
const COMMAND_HOLDER: &str = "a command";
/// How long a server waits for commands, which take milliseconds.
const COMMAND_WAIT: Duration = Duration::from_secs(5);
/// Pause between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The lock of a data directory, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct DataLock(FileLock);

impl DataLock {
    /// Locks the directory, which is made if it is missing.
    ///
    /// # Errors
    /// When another process has it; the error says which.
    pub fn take(data: &Path) -> anyhow::Result<Self> {
        let mut waited = Duration::ZERO;
        loop {
            match Self::try_take(data) {
                Err(error) if waited < COMMAND_WAIT && is_command(data) => {
                    tracing::debug!(%error, "waiting for a command");
                    std::thread::sleep(POLL_INTERVAL);
                    waited += POLL_INTERVAL;
                }
                taken => return taken,
            }
        }
    }

    fn try_take(data: &Path) -> anyhow::Result<Self> {
        create_private_dir(data)
            .with_context(|| format!("making the data directory {}", data.display()))?;
        let path = data.join(LOCK_FILE);
        let file =
            FileLock::open_file(&path).with_context(|| format!("opening {}", path.display()))?;
        let locked =
            FileLock::try_exclusive(file).with_context(|| format!("locking {}", path.display()))?;
        if let Some(locked) = locked {
            // The description of the last holder is out of date.
            locked
                .set_len(0)
                .with_context(|| format!("writing {}", path.display()))?;
            return Ok(Self(locked));
        }
        // The holder may not have described itself yet.
        let holder = std::fs::read_to_string(&path).unwrap_or_default();
        let holder = holder.trim();
        let holder = if holder.is_empty() {
            "another server"
        } else {
            holder
        };
        bail!(
            "the data directory {} is in use by {holder}",
            data.display()
        )
    }

    /// Locks the directory for a command; a server that starts meanwhile waits for it.
    ///
    /// # Errors
    /// When another process has it; the error says which.
    pub fn take_for_command(data: &Path) -> anyhow::Result<Self> {
        let lock = Self::try_take(data)?;
        lock.write_holder(&format!("{COMMAND_HOLDER}, process {}", std::process::id()))?;
        Ok(lock)
    }

    /// Whether the lock's file exists: the directory was locked before.
    pub fn file_exists(data: &Path) -> bool {
        data.join(LOCK_FILE).exists()
    }

    /// Describes the holder in the file: a server at an address.
    pub fn announce(&self, address: SocketAddr) -> anyhow::Result<()> {
        self.write_holder(&format!(
            "process {} on http://{address}",
            std::process::id()
        ))
    }

    /// Describes the holder in the file: a restore.
    pub fn announce_restore(&self) -> anyhow::Result<()> {
        self.write_holder(&format!("{RESTORE_HOLDER}, process {}", std::process::id()))
    }

    fn write_holder(&self, holder: &str) -> anyhow::Result<()> {
        let mut file = &*self.0;
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{holder}")?;
        Ok(())
    }
}

/// Whether the holder is a command, or has not described itself yet.
fn is_command(data: &Path) -> bool {
    let holder = std::fs::read_to_string(data.join(LOCK_FILE)).unwrap_or_default();
    holder.is_empty() || holder.starts_with(COMMAND_HOLDER)
}

/// Refuses a data directory that a restore holds: changes in it now would be lost. Beside a server there is no harm.
///
/// # Errors
/// When a restore holds it, or the disk's.
pub fn check_not_restoring(data: &Path) -> anyhow::Result<()> {
    let path = data.join(LOCK_FILE);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.with_context(|| format!("opening {}", path.display()))?,
    };
    let mut holder = String::new();
    file.read_to_string(&mut holder)
        .with_context(|| format!("reading {}", path.display()))?;
    // The description stays after the holder has ended, so the lock itself is tested, too.
    if holder.starts_with(RESTORE_HOLDER) && matches!(FileLock::try_shared(file), Ok(None)) {
        bail!(
            "{} has the data directory {}: run this again when it is done",
            holder.trim(),
            data.display()
        );
    }
    Ok(())
}

/// Creates a missing directory durably, with mode 0700: it holds secrets.
pub fn create_private_dir(data: &Path) -> io::Result<()> {
    let data = std::path::absolute(data)?;
    let missing: Vec<&Path> = data.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&data)?;
    for parent in missing.into_iter().filter_map(Path::parent) {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_with_what_leads_to_it() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("a/b/../c");
        create_private_dir(&data).unwrap();
        create_private_dir(&data).unwrap();
        assert!(root.path().join("a/c").is_dir());
    }

    #[test]
    fn the_second_is_told_who_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let lock = DataLock::take(directory.path()).unwrap();
        lock.announce(SocketAddr::from(([127, 0, 0, 1], 80)))
            .unwrap();
        let error = DataLock::take(directory.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        drop(lock);
        DataLock::take(directory.path()).unwrap();
    }

    #[test]
    fn a_server_waits_for_a_command_and_a_command_for_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        let command = DataLock::take_for_command(data).unwrap();
        let refused = DataLock::take_for_command(data).unwrap_err().to_string();
        assert!(refused.contains("a command, process"), "{refused}");
        std::thread::scope(|scope| {
            let server = scope.spawn(|| DataLock::take(data).unwrap());
            std::thread::sleep(POLL_INTERVAL);
            assert!(!server.is_finished());
            drop(command);
            server.join().unwrap();
        });
    }

    #[test]
    fn only_a_restore_that_runs_is_in_the_way() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path();
        check_not_restoring(data).unwrap();
        let lock = DataLock::take(data).unwrap();
        lock.announce_restore().unwrap();
        let refused = check_not_restoring(data).unwrap_err().to_string();
        assert!(refused.starts_with("a restore, process"), "{refused}");
        drop(lock);
        check_not_restoring(data).unwrap();
        // A server that has not said yet who it is.
        let lock = DataLock::take(data).unwrap();
        check_not_restoring(data).unwrap();
        lock.announce(SocketAddr::from(([127, 0, 0, 1], 80)))
            .unwrap();
        check_not_restoring(data).unwrap();
    }
}
