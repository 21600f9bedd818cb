//! The data directory belongs to one server, or to a command that replaces it, at a time.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};

use svc_base::file_lock::FileLock;

const FILE: &str = "lock";
/// How the words of a holder begin that is a restore.
const RESTORE_HOLDER: &str = "a restore";
/// How the words of a holder begin that is an operator's command.
const COMMAND_HOLDER: &str = "a command";
/// How long a server waits for commands, which take milliseconds.
const COMMAND_WAIT: Duration = Duration::from_secs(5);
/// How long to wait between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Holds the data directory until it is dropped, or the process ends.
#[derive(Debug)]
pub struct DataLock(FileLock);

impl DataLock {
    /// Takes the directory, which is made if it is missing.
    ///
    /// # Errors
    /// When another server has it; the error says which.
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
        let path = data.join(FILE);
        let file =
            FileLock::open_file(&path).with_context(|| format!("opening {}", path.display()))?;
        let locked =
            FileLock::try_exclusive(file).with_context(|| format!("locking {}", path.display()))?;
        if let Some(locked) = locked {
            // What the last holder said of itself does not hold for this one.
            locked
                .set_len(0)
                .with_context(|| format!("writing {}", path.display()))?;
            return Ok(Self(locked));
        }
        // What the holder has not written yet cannot be told.
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

    /// Takes the directory for a command, which has no server to ask; a server that starts meanwhile waits for it.
    ///
    /// # Errors
    /// When somebody else has it; the error says who.
    pub fn take_for_command(data: &Path) -> anyhow::Result<Self> {
        let lock = Self::try_take(data)?;
        lock.write_holder(&format!("{COMMAND_HOLDER}, process {}", std::process::id()))?;
        Ok(lock)
    }

    /// Whether somebody has it, or had it.
    pub fn file_exists(data: &Path) -> bool {
        data.join(FILE).exists()
    }

    /// Writes down who holds it, for whoever asks.
    pub fn announce(&self, address: SocketAddr) -> anyhow::Result<()> {
        self.write_holder(&format!(
            "process {} on http://{address}",
            std::process::id()
        ))
    }

    /// Announces a restore.
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

/// Whether the holder is a command, or has not said yet what it is.
fn is_command(data: &Path) -> bool {
    let holder = std::fs::read_to_string(data.join(FILE)).unwrap_or_default();
    holder.is_empty() || holder.starts_with(COMMAND_HOLDER)
}

/// Refuses a data directory that a restore holds: what is changed in it now is about to be put aside. Beside a server
/// there is no harm.
///
/// # Errors
/// When a restore holds it, or the disk's.
pub fn check_not_restoring(data: &Path) -> anyhow::Result<()> {
    let path = data.join(FILE);
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.with_context(|| format!("opening {}", path.display()))?,
    };
    let mut holder = String::new();
    file.read_to_string(&mut holder)
        .with_context(|| format!("reading {}", path.display()))?;
    // The words of one that has ended stay; only then is the lock free for this moment.
    if holder.starts_with(RESTORE_HOLDER) && matches!(FileLock::try_shared(file), Ok(None)) {
        bail!(
            "{} has the data directory {}: run this again when it is done",
            holder.trim(),
            data.display()
        );
    }
    Ok(())
}

/// Makes a data directory that is missing, durably: it holds secrets, so nobody else may look into it.
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
