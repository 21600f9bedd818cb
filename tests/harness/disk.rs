//! Contents of a data directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every file below a directory with its bytes. A file that goes away meanwhile is left out.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(bytes) = std::fs::read(&path) {
                found.insert(path, bytes);
            }
        }
    }
    found
}

/// The files below a directory, by their names relative to it, that hold these bytes or have them in their names.
pub fn holding(directory: &Path, needle: &str) -> Vec<String> {
    let in_bytes = |bytes: &[u8]| bytes.windows(needle.len()).any(|w| w == needle.as_bytes());
    files(directory)
        .into_iter()
        .map(|(path, bytes)| (relative(&path, directory), bytes))
        .filter(|(name, bytes)| in_bytes(bytes) || name.contains(needle))
        .map(|(name, _)| name)
        .collect()
}

/// Names of the files below a directory, relative to it.
pub fn names(directory: &Path) -> Vec<String> {
    files(directory)
        .keys()
        .map(|path| relative(path, directory))
        .collect()
}

fn relative(path: &Path, directory: &Path) -> String {
    let path = path.strip_prefix(directory).unwrap();
    path.to_string_lossy().into_owned()
}
