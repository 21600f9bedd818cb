//! Putting a restored state in the place of the one that was there, whole, whenever the process dies.
//!
//! The new state lies in a directory of its own until it is complete and durable. Then a journal is written: before it the
//! old state is the one that counts, after it the new one, and the next server or command finishes the
//! moves that the journal describes. Each move is done or not done, and finding out which is looking where the file is.

use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};
use cap_std::fs::{Dir, MetadataExt};
use serde::{Deserialize, Serialize};

use crate::data_dir::{JOURNAL, is_unfinished};
use svc_base::clock::Timestamp;
use svc_base::{disk, fault};

/// Where the new state is made, in the data directory.
pub(super) const NEW_STATE: &str = "restoring";
/// Parts of a data directory's state: everything else in it is not restored and stays.
const STATE_ENTRIES: [&str; 12] = [
    "control.db",
    "control.db-wal",
    "control.db-shm",
    "counters.db",
    "counters.db-wal",
    "counters.db-shm",
    "content",
    "content.url",
    "content.id",
    "once",
    "backends",
    "guests",
];

/// Journal of the moves.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// The directory that the old state goes to.
    before: String,
    /// The parts of the old state.
    old: Vec<String>,
}

/// Finishes a restore that was interrupted, or removes what it had begun. The caller has the data directory.
///
/// # Errors
/// The disk's; calling again goes on.
pub fn finish_interrupted(data: &Path) -> anyhow::Result<()> {
    let dir = disk::open_directory(data)?;
    if is_unfinished(data) {
        finish(&dir).context("finishing a restore that was interrupted")?;
    } else {
        disk::remove_directory(&dir, NEW_STATE)?;
    }
    Ok(())
}

/// Makes the directory for a new state.
pub(super) fn create_new_state(data: &Dir) -> io::Result<Dir> {
    disk::remove_directory(data, NEW_STATE)?;
    disk::ensure_subdirectory(data, NEW_STATE)
}

/// Puts the new state, which is complete, in the place of the old one; returns where the old one is kept, if there was
/// one.
///
/// # Errors
/// The disk's; until the journal is written nothing has changed, afterwards [`finish_interrupted`] goes on.
pub(super) fn commit(data: &Dir, now: Timestamp) -> anyhow::Result<Option<String>> {
    disk::sync_tree(&data.open_dir(NEW_STATE)?)?;
    disk::sync_directory(data)?;
    let old: Vec<String> = STATE_ENTRIES
        .into_iter()
        .filter(|part| disk::has_entry(data, part))
        .map(Into::into)
        .collect();
    check_movable(data, &old)?;
    let journal = Journal {
        before: free_name(data, now),
        old,
    };
    fault::point("restore.complete");
    disk::replace_file(data, JOURNAL, &serde_json::to_vec(&journal)?)?;
    fault::point("restore.decided");
    finish(data)?;
    Ok((!journal.old.is_empty()).then_some(journal.before))
}

/// Refuses what cannot be moved before anything is: a mount has to stay where it is.
fn check_movable(data: &Dir, parts: &[String]) -> anyhow::Result<()> {
    let device = data.dir_metadata()?.dev();
    for part in parts {
        if data.symlink_metadata(part)?.dev() != device {
            bail!(
                "{part} in the data directory is a file system of its own: unmount it, and mount it again on what is restored"
            );
        }
    }
    Ok(())
}

/// A name for the old state that nothing has.
fn free_name(data: &Dir, now: Timestamp) -> String {
    let name = format!("before-restore-{now}").replace(':', "-");
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names
        .find(|name| !disk::has_entry(data, name))
        .unwrap_or(name)
}

fn finish(data: &Dir) -> anyhow::Result<()> {
    let journal: Journal = serde_json::from_slice(&data.read(JOURNAL)?)?;
    if !journal.old.is_empty() {
        let before = disk::ensure_subdirectory(data, &journal.before)?;
        disk::sync_directory(data)?;
        for part in &journal.old {
            // One that is there already was moved before the interruption; what has its name now is the new one.
            if !disk::has_entry(&before, part) && disk::has_entry(data, part) {
                data.rename(part, &before, part)?;
                fault::point("restore.moved");
            }
        }
        disk::sync_directory(&before)?;
        disk::sync_directory(data)?;
    }
    fault::point("restore.cleared");
    if disk::has_entry(data, NEW_STATE) {
        let new = data.open_dir(NEW_STATE)?;
        for entry in new.entries()? {
            let name = entry?.file_name();
            new.rename(&name, data, &name)?;
            fault::point("restore.placed");
        }
        disk::sync_directory(data)?;
        disk::remove_directory(data, NEW_STATE)?;
    }
    fault::point("restore.finished");
    disk::remove_file(data, JOURNAL)?;
    disk::sync_directory(data)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_new_takes_the_place_of_the_old_however_often_it_is_begun_again() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let data = disk::open_directory(directory.path()).unwrap();
        for part in ["control.db", "control.db-wal", "lock"] {
            std::fs::write(at(part), "old").unwrap();
        }
        let new = create_new_state(&data).unwrap();
        for part in ["control.db", "guests"] {
            new.write(part, "new").unwrap();
        }
        let before = commit(&data, Timestamp(0)).unwrap().unwrap();
        assert_eq!(before, "before-restore-1970-01-01T00-00-00.000Z");
        let read = |name: &str| std::fs::read_to_string(at(name)).ok();
        let state = || ["control.db", "control.db-wal", "guests", "lock"].map(read);
        let switched = [Some("new"), None, Some("new"), Some("old")].map(|s| s.map(str::to_owned));
        assert_eq!(state(), switched);
        assert_eq!(
            read(&format!("{before}/control.db-wal")).as_deref(),
            Some("old")
        );
        assert!(!is_unfinished(directory.path()) && !at(NEW_STATE).exists());
        // The journal of a process that died just before it would have removed it: nothing is left to move.
        let journal = Journal {
            before,
            old: vec!["control.db".into(), "control.db-wal".into()],
        };
        data.write(JOURNAL, serde_json::to_vec(&journal).unwrap())
            .unwrap();
        finish_interrupted(directory.path()).unwrap();
        assert_eq!(state(), switched);
        assert_ne!(free_name(&data, Timestamp(0)), journal.before);
    }
}
