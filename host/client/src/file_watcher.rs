//! Watches files by polling, which works on every file system, and with editors that replace a file.

use std::collections::{BTreeMap, VecDeque};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The most files and folders that are watched.
pub(super) const MAX_WATCHED: usize = 10_000;
/// Folders that are not watched.
const SKIPPED_FOLDERS: [&str; 2] = ["node_modules", "target"];

/// State of a file by which a change is noticed: inode, length, and modification time.
type FileFingerprint = (u64, u64, i64, i64);

/// Watcher of files and folders.
#[derive(Debug)]
pub(super) struct FileWatcher {
    roots: Vec<PathBuf>,
    seen: BTreeMap<PathBuf, FileFingerprint>,
    is_whole: bool,
}

impl FileWatcher {
    /// Watches files, and folders with everything in them.
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        let (seen, is_whole) = fingerprint_files(&roots, MAX_WATCHED);
        Self {
            roots,
            seen,
            is_whole,
        }
    }

    /// Whether everything in the folders is watched, and there is no more of it than [`MAX_WATCHED`].
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Waits until a file has changed, and then has stayed the same for one poll.
    pub(super) async fn wait_for_change(&mut self) {
        let before = self.seen.clone();
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let (now, _) = fingerprint_files(&self.roots, MAX_WATCHED);
            let still = now == self.seen;
            self.seen = now;
            if still && self.seen != before {
                return;
            }
        }
    }
}

/// Takes the fingerprints of files, and of those in folders. Visits `most` files and folders; returns also whether these are all.
fn fingerprint_files(roots: &[PathBuf], most: usize) -> (BTreeMap<PathBuf, FileFingerprint>, bool) {
    let mut stamps = BTreeMap::new();
    // Folders nearest to the roots come first: people work there, even where a folder is very large.
    let mut open: VecDeque<_> = roots.to_vec().into();
    for _ in 0..most {
        let Some(path) = open.pop_front() else {
            break;
        };
        let Ok(found) = std::fs::metadata(&path) else {
            continue;
        };
        if found.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let entries = entries.map(|entry| entry.path());
            open.extend(entries.filter(|path| is_watched(path)).take(most));
        } else {
            let stamp = (found.ino(), found.len(), found.mtime(), found.mtime_nsec());
            stamps.insert(path, stamp);
        }
    }
    (stamps, open.is_empty())
}

fn is_watched(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let link = path
        .symlink_metadata()
        .is_ok_and(|found| found.is_symlink());
    // Files of editors and version control are skipped, and links, which may form a circle.
    !name.starts_with('.')
        && !name.ends_with('~')
        && !SKIPPED_FOLDERS.contains(&name.as_ref())
        && !link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_large_folder_is_watched_in_part() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let roots = [folder.path().to_owned()];
        for (most, files, is_whole) in [(4, 3, true), (3, 2, false), (1, 0, false)] {
            let (found, found_all) = fingerprint_files(&roots, most);
            assert_eq!((found.len(), found_all), (files, is_whole), "{most}");
        }
    }

    #[tokio::test]
    async fn a_save_is_seen_however_the_editor_saves() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        std::fs::write(&file, "one").unwrap();
        let mut watching = FileWatcher::new(vec![folder.path().to_owned()]);
        std::fs::write(&file, "two!").unwrap();
        watching.wait_for_change().await;
        // Written beside it, and renamed over it, with the same length.
        let new = folder.path().join(".a.md.new");
        std::fs::write(&new, "thr!").unwrap();
        std::fs::rename(&new, &file).unwrap();
        watching.wait_for_change().await;
        std::fs::remove_file(&file).unwrap();
        watching.wait_for_change().await;
        std::fs::create_dir(folder.path().join("below")).unwrap();
        std::fs::write(folder.path().join("below/b.md"), "").unwrap();
        watching.wait_for_change().await;
    }
}
