//! The atomic switch from the old state to a restored one, which survives a crash at any time.
//!
//! The new state is in a directory of its own until it is complete and durable. Then a journal is written, which is the commit: before
//! it the old state is valid, and after it the new one; the next server or command finishes the moves of the journal. The place of a
//! file tells whether its move is done.

use std::io;
use std::path::Path;

use anyhow::{Context as _, bail};
use cap_std::fs::{Dir, MetadataExt};
use serde::{Deserialize, Serialize};

use crate::data_dir::{RESTORE_JOURNAL_FILE, is_unfinished};
use svc_base::clock::Timestamp;
use svc_base::{disk, fault};

/// Subdirectory of the data directory in which the new state is made.
pub(super) const NEW_STATE_DIRECTORY: &str = "restoring";
/// Entries of a data directory that a restore replaces.
const STATE_ENTRIES: [&str; 13] = [
    "control.db",
    "control.db-wal",
    "control.db-shm",
    "counters.db",
    "counters.db-wal",
    "counters.db-shm",
    "content",
    "content.url",
    "content.id",
    "cluster.id",
    "once",
    "backends",
    "guests",
];

/// Journal of the moves.
#[derive(Debug, Serialize, Deserialize)]
struct MoveJournal {
    /// Directory that the old state is moved to.
    before: String,
    /// Entries of the old state.
    old: Vec<String>,
}

/// Finishes an interrupted restore that was committed, or removes its new state. The caller holds the data directory's lock.
///
/// # Errors
/// The disk's; a repeated call continues.
pub fn finish_interrupted(data: &Path) -> anyhow::Result<()> {
    let dir = disk::open_directory(data)?;
    if is_unfinished(data) {
        finish_moves(&dir).context("finishing a restore that was interrupted")?;
    } else {
        disk::remove_directory(&dir, NEW_STATE_DIRECTORY)?;
    }
    Ok(())
}

/// Makes an empty directory for a new state.
pub(super) fn create_new_state(data: &Dir) -> io::Result<Dir> {
    disk::remove_directory(data, NEW_STATE_DIRECTORY)?;
    disk::ensure_subdirectory(data, NEW_STATE_DIRECTORY)
}

/// Switches to the complete new state; returns the directory of the old one, if there was one.
///
/// # Errors
/// The disk's; before the journal is written nothing has changed, afterwards [`finish_interrupted`] continues.
pub(super) fn switch_to_new_state(data: &Dir, now: Timestamp) -> anyhow::Result<Option<String>> {
    disk::sync_tree(&data.open_dir(NEW_STATE_DIRECTORY)?)?;
    disk::sync_directory(data)?;
    let old: Vec<String> = STATE_ENTRIES
        .into_iter()
        .filter(|part| disk::has_entry(data, part))
        .map(Into::into)
        .collect();
    check_movable(data, &old)?;
    let journal = MoveJournal {
        before: unused_directory_name(data, now),
        old,
    };
    fault::point("restore.complete");
    disk::replace_file(data, RESTORE_JOURNAL_FILE, &serde_json::to_vec(&journal)?)?;
    fault::point("restore.decided");
    finish_moves(data)?;
    Ok((!journal.old.is_empty()).then_some(journal.before))
}

/// Refuses entries that cannot be moved, such as mount points, before anything is moved.
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

/// Returns an unused name for the directory of the old state.
fn unused_directory_name(data: &Dir, now: Timestamp) -> String {
    let name = format!("before-restore-{now}").replace(':', "-");
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names
        .find(|name| !disk::has_entry(data, name))
        .unwrap_or(name)
}

fn finish_moves(data: &Dir) -> anyhow::Result<()> {
    let journal: MoveJournal = serde_json::from_slice(&data.read(RESTORE_JOURNAL_FILE)?)?;
    if !journal.old.is_empty() {
        let before = disk::ensure_subdirectory(data, &journal.before)?;
        disk::sync_directory(data)?;
        for part in &journal.old {
            // An entry that is there was moved before the interruption; the one in the data directory is new.
            if !disk::has_entry(&before, part) && disk::has_entry(data, part) {
                data.rename(part, &before, part)?;
                fault::point("restore.moved");
            }
        }
        disk::sync_directory(&before)?;
        disk::sync_directory(data)?;
    }
    fault::point("restore.cleared");
    if disk::has_entry(data, NEW_STATE_DIRECTORY) {
        let new = data.open_dir(NEW_STATE_DIRECTORY)?;
        for entry in new.entries()? {
            let name = entry?.file_name();
            new.rename(&name, data, &name)?;
            fault::point("restore.placed");
        }
        disk::sync_directory(data)?;
        disk::remove_directory(data, NEW_STATE_DIRECTORY)?;
    }
    fault::point("restore.finished");
    disk::remove_file(data, RESTORE_JOURNAL_FILE)?;
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
        let before = switch_to_new_state(&data, Timestamp(0)).unwrap().unwrap();
        assert_eq!(before, "before-restore-1970-01-01T00-00-00.000Z");
        let read = |name: &str| std::fs::read_to_string(at(name)).ok();
        let state = || ["control.db", "control.db-wal", "guests", "lock"].map(read);
        let switched = [Some("new"), None, Some("new"), Some("old")].map(|s| s.map(str::to_owned));
        assert_eq!(state(), switched);
        assert_eq!(
            read(&format!("{before}/control.db-wal")).as_deref(),
            Some("old")
        );
        assert!(!is_unfinished(directory.path()) && !at(NEW_STATE_DIRECTORY).exists());
        // The journal of a process that died just before it would have removed it: nothing is left to move.
        let journal = MoveJournal {
            before,
            old: vec!["control.db".into(), "control.db-wal".into()],
        };
        data.write(RESTORE_JOURNAL_FILE, serde_json::to_vec(&journal).unwrap())
            .unwrap();
        finish_interrupted(directory.path()).unwrap();
        assert_eq!(state(), switched);
        assert_ne!(unused_directory_name(&data, Timestamp(0)), journal.before);
    }
}
