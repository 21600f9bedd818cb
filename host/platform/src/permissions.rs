//! File permissions: directories that hold secrets are closed to other users.
//!
//! An existing directory keeps its mode, and `mkdir` and systemd's `StateDirectory` give 0755. So every command sets the umask 077, and
//! closes the directories that it opens with all our files in them.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// All permissions of group and others.
const OTHERS_MODE: u32 = 0o077;
/// Write permissions of group and others.
const OTHERS_WRITE: u32 = 0o022;
/// Sticky bit: users can only replace their own files, as in `/tmp`.
const STICKY_BIT: u32 = 0o1000;
/// Most names in a message.
const MAX_NAMES: usize = 5;

/// Layout of a directory: the names of our files in it.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryLayout {
    /// Name in messages.
    pub what: &'static str,
    /// Names of entries.
    pub names: &'static [&'static str],
    /// Prefixes of further names.
    pub prefixes: &'static [&'static str],
    /// Entries that the running user must own.
    pub owned: &'static [&'static str],
    /// Entries that may have very many files: below a closed directory of theirs, where nobody reaches them, files are left as they are.
    pub vast: &'static [&'static str],
}

impl DirectoryLayout {
    fn contains(&self, name: &str) -> bool {
        self.names.contains(&name) || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Has the process create files without permissions for other users.
pub fn set_umask() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Closes our files in a directory to other users, and the directory itself if it has no foreign files; returns its earlier mode if
/// others could read one of our files. Foreign files stay as they are.
///
/// # Errors
/// When it belongs to another user, or others can replace its files, or the disk's.
pub fn restrict(directory: &Path, layout: &DirectoryLayout) -> anyhow::Result<Option<u32>> {
    let shown = directory.display();
    let found = fs::metadata(directory).with_context(|| format!("looking at {shown}"))?;
    if !found.is_dir() {
        bail!("{shown} is not a directory");
    }
    let pure = has_only_ours(directory, layout)?;
    if pure {
        check_owner(&found, &format!("the {} {shown}", layout.what))?;
        // The directory first: its content is out of reach from then on.
        restrict_one(directory, &found)?;
    } else if found.mode() & OTHERS_WRITE != 0 && found.mode() & STICKY_BIT == 0 {
        bail!(
            "{shown} holds other things and other users can write to it (mode {:04o}): choose a directory of its own for the {}",
            found.mode() & 0o7777,
            layout.what
        );
    }
    let mut was_open = false;
    for (path, entry) in directory_entries(directory)? {
        let name = file_name_of(&path);
        if !layout.contains(&name) {
            continue;
        }
        if layout.owned.contains(&name.as_str()) {
            check_owner(&entry, &format!("{name} in {shown}"))?;
        }
        let is_open = |found: &Metadata| found.mode() & OTHERS_MODE != 0;
        was_open |= is_open(&found) && is_open(&entry) && !entry.is_symlink();
        restrict_below(&path, &entry, layout.vast.contains(&name.as_str()))?;
    }
    Ok(was_open.then_some(found.mode() & 0o7777))
}

/// Describes which of our files in a directory other users can read; `None` if it is closed.
pub fn describe_exposure(directory: &Path, layout: &DirectoryLayout) -> io::Result<Option<String>> {
    let found = fs::metadata(directory)?;
    if found.mode() & OTHERS_MODE == 0 {
        return Ok(None);
    }
    let mut reached = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(inner) = open.pop() {
        for (path, entry) in directory_entries(&inner)? {
            let ours = inner != *directory || layout.contains(&file_name_of(&path));
            if !ours || entry.is_symlink() || entry.mode() & OTHERS_MODE == 0 {
                continue;
            }
            if entry.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(directory).unwrap_or(&path);
                reached.push(name.display().to_string());
            }
        }
    }
    if reached.is_empty() && !has_only_ours(directory, layout)? {
        return Ok(None);
    }
    reached.sort_unstable();
    let more = reached.len().saturating_sub(MAX_NAMES);
    reached.truncate(MAX_NAMES);
    let files = match (reached.is_empty(), more) {
        (true, _) => "no file in it".to_owned(),
        (false, 0) => reached.join(", "),
        (false, more) => format!("{} and {more} more", reached.join(", ")),
    };
    Ok(Some(format!(
        "the {} is open to other users (mode {:04o}), who can read {files}",
        layout.what,
        found.mode() & 0o7777
    )))
}

/// Whether a directory has no foreign files.
fn has_only_ours(directory: &Path, layout: &DirectoryLayout) -> io::Result<bool> {
    // The root of a file system has `lost+found`.
    let ours = |name: &str| layout.contains(name) || name == "lost+found";
    let entries = directory_entries(directory)?;
    Ok(entries.iter().all(|(path, _)| ours(&file_name_of(path))))
}

fn check_owner(found: &Metadata, what: &str) -> anyhow::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    if found.uid() != user {
        bail!(
            "{what} belongs to user {} and this runs as user {user}: run it as that user, or give everything there to this one (chown)",
            found.uid()
        );
    }
    Ok(())
}

fn restrict_below(path: &Path, found: &Metadata, is_vast: bool) -> anyhow::Result<()> {
    let mut open: Vec<(PathBuf, Metadata)> = vec![(path.to_owned(), found.clone())];
    let user = rustix::process::geteuid().as_raw();
    while let Some((path, found)) = open.pop() {
        // A symbolic link has no mode, and may lead to foreign files.
        if found.is_symlink() || found.uid() != user {
            continue;
        }
        restrict_one(&path, &found)?;
        if found.is_dir() && !(is_vast && found.mode() & OTHERS_MODE == 0) {
            open.extend(directory_entries(&path)?);
        }
    }
    Ok(())
}

fn restrict_one(path: &Path, found: &Metadata) -> anyhow::Result<()> {
    if found.mode() & OTHERS_MODE == 0 {
        return Ok(());
    }
    let mode = found.mode() & 0o7777 & !OTHERS_MODE;
    match fs::set_permissions(path, Permissions::from_mode(mode)) {
        // A running server may have removed the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.with_context(|| format!("closing {} to other users", path.display())),
    }
}

/// Lists the entries of a directory; those that are removed meanwhile are left out.
fn directory_entries(directory: &Path) -> io::Result<Vec<(PathBuf, Metadata)>> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut found = Vec::new();
    for entry in listed {
        let path = entry?.path();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            metadata => found.push((path, metadata?)),
        }
    }
    Ok(found)
}

fn file_name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: DirectoryLayout = DirectoryLayout {
        what: "data directory",
        names: &["control.db", "content"],
        prefixes: &["before-"],
        owned: &["control.db"],
        vast: &[],
    };

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn everything_of_ours_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("content/ab")).unwrap();
        fs::create_dir_all(at("before-restore/once")).unwrap();
        let files = ["control.db", "content/ab/page", "before-restore/once/x"];
        let directories = ["", "content", "content/ab", "before-restore"];
        for name in files {
            fs::write(at(name), "x").unwrap();
            set(&at(name), 0o644);
        }
        for name in directories {
            set(&at(name), 0o755);
        }
        std::os::unix::fs::symlink("/etc/hostname", at("content/link")).unwrap();
        let said = describe_exposure(root.path(), &LAYOUT).unwrap().unwrap();
        for part in ["mode 0755", "control.db", "content/ab/page"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(restrict(root.path(), &LAYOUT).unwrap(), Some(0o755));
        for name in directories {
            assert_eq!(mode(&at(name)), 0o700, "{name}");
        }
        for name in files {
            assert_eq!(mode(&at(name)), 0o600, "{name}");
        }
        assert_eq!(describe_exposure(root.path(), &LAYOUT).unwrap(), None);
        // Behind a closed door, too.
        set(&at("control.db"), 0o664);
        assert_eq!(restrict(root.path(), &LAYOUT).unwrap(), None);
        assert_eq!(mode(&at("control.db")), 0o600);
    }

    #[test]
    fn very_many_files_are_left_below_a_closed_directory() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for (directory, its_mode) in [("content", 0o700), ("before-restore", 0o755)] {
            fs::create_dir(at(directory)).unwrap();
            fs::write(at(directory).join("file"), "x").unwrap();
            set(&at(directory).join("file"), 0o644);
            set(&at(directory), its_mode);
        }
        let layout = DirectoryLayout {
            vast: &["content", "before-restore"],
            ..LAYOUT
        };
        restrict(root.path(), &layout).unwrap();
        let files = ["content/file", "before-restore/file"];
        assert_eq!(files.map(|name| mode(&at(name))), [0o644, 0o600]);
        assert_eq!(mode(&at("before-restore")), 0o700);
    }

    #[test]
    fn what_is_not_ours_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let (photo, database) = (
            root.path().join("holiday.jpg"),
            root.path().join("control.db"),
        );
        for file in [&photo, &database] {
            fs::write(file, "x").unwrap();
            set(file, 0o644);
        }
        set(root.path(), 0o755);
        assert!(describe_exposure(root.path(), &LAYOUT).unwrap().is_some());
        assert_eq!(restrict(root.path(), &LAYOUT).unwrap(), Some(0o755));
        let modes = [root.path(), &photo, &database].map(mode);
        assert_eq!(modes, [0o755, 0o644, 0o600]);
        assert_eq!(
            describe_exposure(root.path(), &LAYOUT).unwrap(),
            None,
            "nothing of ours"
        );
        assert_eq!(restrict(root.path(), &LAYOUT).unwrap(), None);
        // Where others could put another database in the place of ours.
        set(root.path(), 0o777);
        let refused = restrict(root.path(), &LAYOUT).unwrap_err().to_string();
        assert!(refused.contains("of its own"), "{refused}");
        assert_eq!(mode(root.path()), 0o777);
        fs::remove_file(photo).unwrap();
        assert_eq!(
            restrict(root.path(), &LAYOUT).unwrap(),
            None,
            "nothing to read"
        );
        assert_eq!(mode(root.path()), 0o700);
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("control.db");
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
        let refused = restrict(root.path(), &LAYOUT).unwrap_err().to_string();
        assert!(refused.contains("control.db"), "{refused}");
        assert!(refused.contains("user 65534"), "{refused}");
        std::os::unix::fs::chown(root.path(), Some(65_534), None).unwrap();
        let refused = restrict(root.path(), &LAYOUT).unwrap_err().to_string();
        assert!(refused.contains("the data directory"), "{refused}");
    }
}
